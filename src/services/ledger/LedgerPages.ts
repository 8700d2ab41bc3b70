import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { listing } from "../sql/Listing.ts"
import { numberOf } from "../sql/PublicIds.ts"
import { inScope, inTimeRange, recordsOf, whenDefined } from "../sql/Statement.ts"
import { Entry, type EntryKind, entryColumns, isOfKind, ListedEntry } from "./Entry.ts"
import { refundsOf } from "./RefundSql.ts"

export interface EntryQuery {
  readonly org?: OrgId | undefined
  readonly kind?: EntryKind | undefined
  /** Only its charge and refunds. */
  readonly hold?: string | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export const makePages = (sql: SqlClient.SqlClient) => {
  const entryListing = (
    scope: OrganizationScope,
    { after, kind, limit, org, ...range }: EntryQuery,
    from = "ledger_entries"
  ) =>
    listing(sql, {
      equal: { org_id: scope.narrow(org) },
      where: [
        // The partial indexes `ledger_entries_org_paid` and `ledger_entries_paid` have all kinds but charges.
        ...whenDefined(kind, (kind) => sql.literal(isOfKind(kind, from))),
        ...inTimeRange(sql, "at", range),
        ...whenDefined(after, (shown) => {
          const id = numberOf(sql, scope, "ledger_entries", shown)
          const named = sql.and([sql`id = ${id}`, ...inScope(sql, scope)])
          return sql`(at, id) < ((SELECT at FROM ledger_entries WHERE ${named}), ${id})`
        })
      ],
      by: ["at", "id"],
      limit
    })

  const entriesOf = (hold: string) => sql`(
    SELECT * FROM ledger_entries WHERE hold_id = ${hold}
    UNION ALL SELECT ledger_entries.* FROM (SELECT ${hold}::uuid AS id) AS held, ledger_entries
    WHERE ${sql.literal(refundsOf("held.id"))}
  )`

  /** Newest first. */
  const entries = (org: OrgId, { limit }: { readonly limit: number }) =>
    recordsOf(Entry)(sql`
      SELECT ${sql.literal(entryColumns("ledger_entries"))} FROM ledger_entries ${entryListing(OrganizationScope.only(org), { limit })}`)

  // The planner expects few ids of an array, and looks the requests of these up.
  const page = Effect.fn("LedgerAdmin.page")((scope: OrganizationScope, query: EntryQuery) => {
    const from = query.hold === undefined ? sql.literal("ledger_entries") : entriesOf(query.hold)
    return recordsOf(ListedEntry)(sql`
      SELECT ${sql.literal(entryColumns("entry", scope))}, organizations.name AS org_name, log.id AS request,
        (SELECT name FROM api_keys WHERE id = entry.key_id) AS key_name,
        coalesce(log.request_id, (SELECT request_id FROM videos WHERE hold_id = entry.paid_hold)) AS request_id
      FROM (
        SELECT *, coalesce(hold_id, substring(ref FROM '^refund:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})')::uuid) AS paid_hold
        FROM ledger_entries WHERE id = ANY (ARRAY(SELECT id FROM ${from} AS entries ${entryListing(scope, query, "entries")}))
      ) AS entry
      JOIN organizations ON organizations.id = entry.org_id
      LEFT JOIN request_log AS log ON log.id = entry.paid_hold AND log.hold_id = log.id
      ORDER BY entry.at DESC, entry.id DESC`)
  })

  return { entries, page }
}

import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { idFor, listing, numberOf } from "../sql/Listing.ts"
import { inScope, inTimeRange, recordsOf, whenDefined } from "../sql/SqlStatement.ts"
import { refundPrefix, refundsOf } from "./Refunds.ts"

/** `refund`: of the charge of a request. `payment_reversal`: of a payment, by a refund or a dispute. */
export const EntryKind = Schema.Literal("top_up", "charge", "refund", "payment_reversal", "adjustment")
export type EntryKind = typeof EntryKind.Type

/**
 * Returns the condition for refunds, which are stored as adjustments. Its text must match that of their partial index.
 */
const isRefund = (from: string): string => `${from}.kind = 'adjustment' AND ${from}.ref LIKE '${refundPrefix}%'`

/** Returns the SQL for the kind of a stored entry. `from` is a table or an alias. */
export const kindOf = (from: string): string => `CASE WHEN ${isRefund(from)} THEN 'refund' ELSE ${from}.kind END`

/** Returns the condition for entries of a kind, in a form that the partial indexes serve. */
const isOfKind = (kind: EntryKind, from: string): string => {
  if (kind === "refund") return isRefund(from)
  if (kind === "adjustment") return `${from}.kind = 'adjustment' AND (${from}.ref LIKE '${refundPrefix}%') IS NOT TRUE`
  return `${from}.kind = '${kind}'`
}

/** One movement of money. Entries are immutable. */
export const Entry = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds,
  org: OrgId,
  kind: EntryKind,
  amount_usd: Usd,
  ref: TextOrNull,
  note: TextOrNull,
  key_id: Schema.NullOr(KeyId),
  hold_id: TextOrNull
}).annotations({ identifier: "Entry" })
export type Entry = typeof Entry.Type

/** Returns the select list of an entry. `from` is a table or an alias. */
export const entryColumns = (from: string, scope = OrganizationScope.all): string => {
  const columns = ["at", "org_id AS org", "amount AS amount_usd", "ref", "note", "key_id", "hold_id"]
  const id = idFor(scope, "ledger_entries", from)
  return [`${id} AS id`, `${kindOf(from)} AS kind`, ...columns.map((column) => `${from}.${column}`)].join(", ")
}

export const ListedEntry = Schema.Struct({
  ...Entry.fields,
  org_name: Schema.String,
  request: TextOrNull.annotations({
    description: "The id of the charged or refunded request, if the request log still has it."
  }),
  request_id: TextOrNull,
  key_name: TextOrNull
}).annotations({ identifier: "ListedEntry" })
export type ListedEntry = typeof ListedEntry.Type

export interface EntryQuery {
  readonly org?: OrgId | undefined
  readonly kind?: EntryKind | undefined
  /** Selects the charge and the refunds of this hold. */
  readonly hold?: string | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export const makeEntryQueries = (sql: SqlClient.SqlClient) => {
  const entryListing = (
    scope: OrganizationScope,
    { after, kind, limit, org, ...range }: EntryQuery,
    from = "ledger_entries"
  ) =>
    listing(sql, {
      equal: { org_id: scope.narrow(org) },
      where: [
        // Lets the planner use the partial indexes `ledger_entries_org_kind_time` and `ledger_entries_kind_time`.
        ...whenDefined(kind, (kind) => sql.literal(isOfKind(kind, from))),
        ...inTimeRange(sql, "at", range),
        ...whenDefined(after, (publicId) => {
          const id = numberOf(sql, scope, "ledger_entries", publicId)
          const cursor = sql.and([sql`id = ${id}`, ...inScope(sql, scope)])
          return sql`(at, id) < ((SELECT at FROM ledger_entries WHERE ${cursor}), ${id})`
        })
      ],
      by: ["at", "id"],
      indexed: "asc",
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

  // The ids are in an array, because the planner expects arrays to be short and so finds the requests by index.
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

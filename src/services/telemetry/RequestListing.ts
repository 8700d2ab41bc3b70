import type { SqlClient, SqlError } from "@effect/sql"
import { Array as Arr, Context, Effect, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import type { AddressRange } from "../access/AddressRange.ts"
import { listing } from "../sql/Listing.ts"
import { equals, inScope, inTimeRange, rowsOf, whenDefined } from "../sql/Statement.ts"

/** `ok`: answered and, if streamed, to its end; `error`: 5xx, or a stream that broke. */
export type StatusFilter = number | "4xx" | "5xx" | "ok" | "error"

export interface RequestQuery {
  readonly org?: OrgId | undefined
  readonly key?: KeyId | undefined
  readonly model?: string | undefined
  readonly route?: string | undefined
  readonly surface?: string | undefined
  readonly code?: string | undefined
  readonly user?: string | undefined
  readonly tag?: string | undefined
  readonly address?: AddressRange | undefined
  readonly status?: StatusFilter | undefined
  /** The client's request id, or a row's own id. */
  readonly id?: string | undefined
  /** Unix milliseconds. */
  readonly since?: number | undefined
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
  /** Unix milliseconds. */
  readonly endedSince?: number | undefined
  readonly limit: number
}

/** A page, newest first. */
export interface RequestPage<Row> {
  readonly rows: ReadonlyArray<Row>
  /** What `after` takes for the next page. A page may be short, and another follow: see `SearchLimit`. */
  readonly next: string | undefined
}

/** How many rows a page looks through for what no index finds, such as an address or a rare status of a key. */
export class SearchLimit extends Context.Reference<SearchLimit>()("gateway/SearchLimit", {
  defaultValue: () => 250_000
}) {}

const withStatus = (sql: SqlClient.SqlClient, status: StatusFilter) => {
  if (status === "ok") return sql`status < 400 AND code IS NULL`
  if (status === "error") return sql`(status >= 500 OR code = 'stream_error')`
  // A literal, so that a generic plan finds the index of all but 200.
  if (typeof status === "number") return status === 200 ? sql`status = 200` : sql`status = ${status} AND status <> 200`
  return status === "4xx" ? sql`status BETWEEN 400 AND 499` : sql`status BETWEEN 500 AND 599`
}

/** `unknown`, and what names an interface, are no addresses to PostgreSQL. */
const isWithin = (sql: SqlClient.SqlClient, range: AddressRange) =>
  sql`CASE WHEN address ~ '^[0-9a-f.:]+$' THEN address::inet <<= ${range}::inet END`

const isUuid = Schema.is(Schema.UUID)

/** The rows that the page's index has in its order, and what of them is wanted. */
const partsOf = (sql: SqlClient.SqlClient, scope: OrganizationScope, query: RequestQuery) => {
  const { address, after, code, endedSince, id, key, model, org, route, status, surface, tag, user } = query
  const given = Object.entries({ end_user: user, tag, code, key_id: key, org_id: org, model }).filter(
    ([, value]) => value !== undefined
  )
  // The first that is given names the index. The last row looked through is the next cursor, so it must be in the scope.
  const [others, indexed] = Arr.partition(
    given,
    ([column], index) => index === 0 || (column === "org_id" && scope.org !== undefined)
  )
  const isByStatus = given.length === 0 && typeof status === "number"
  const timeOf = (after: string) =>
    sql`(SELECT at FROM request_log WHERE ${sql.and([sql`id = ${after}`, ...inScope(sql, scope)])})`
  return {
    equal: Object.fromEntries(indexed),
    searched: [
      ...(isByStatus ? [withStatus(sql, status)] : []),
      ...whenDefined(id, (id) =>
        isUuid(id) ? sql`(request_id = ${id} OR id = ${id}::uuid)` : sql`request_id = ${id}`
      ),
      ...inTimeRange(sql, "at", query),
      ...whenDefined(after, (id) => sql`(at, id) < (${timeOf(id)}, ${id}::uuid)`)
    ],
    wanted: [
      ...equals(sql, { ...Object.fromEntries(others), route, surface }),
      ...(isByStatus ? [] : whenDefined(status, (status) => withStatus(sql, status))),
      ...whenDefined(address, (range) => isWithin(sql, range)),
      ...whenDefined(endedSince, (from) => sql`at + total_ms * interval '1 millisecond' >= ${new Date(from)}`)
    ]
  }
}

const Place = Schema.Struct({ id: Schema.String })

/** Lists what matches; looks through at most as many rows as `SearchLimit` says. */
export const listRequests = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  given: RequestQuery,
  read: (statement: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) => Effect.Effect<ReadonlyArray<Row>>
) {
  const { limit } = given
  const most = yield* SearchLimit
  const { equal, searched, wanted } = partsOf(sql, scope, { ...given, org: scope.narrow(given.org) })
  const candidates = (limit: number) => listing(sql, { equal, where: searched, by: ["at", "id"], limit })
  const found = yield* read(
    wanted.length === 0
      ? sql`SELECT * FROM request_log ${candidates(limit + 1)}`
      : sql`SELECT * FROM (SELECT * FROM request_log ${candidates(most)}) AS searched
          WHERE ${sql.and(wanted)} ORDER BY at DESC, id DESC LIMIT ${limit + 1}`
  )
  const rows = found.slice(0, limit)
  if (found.length > limit) return { rows, next: rows.at(-1)?.id }
  if (wanted.length === 0) return { rows, next: undefined }
  const [last] = yield* rowsOf(Place)(sql`SELECT id FROM request_log ${candidates(most)} OFFSET ${most - 1}`)
  return { rows, next: last?.id }
})

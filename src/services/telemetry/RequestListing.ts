import type { SqlClient } from "@effect/sql"
import { Array as Arr, Context, Effect, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { joinWords } from "../../domain/Wording.ts"
import type { AddressRange } from "../access/BlockList.ts"
import { inLogSpan, isError, selectIds } from "../requests/RequestColumns.ts"
import { listing } from "../sql/Listing.ts"
import { equals, whenDefined } from "../sql/SqlStatement.ts"

/**
 * `ok` means a complete response, `error` a status 5xx or a broken stream, and `rejected` a 4xx except 499, which is the status
 * of a client that disconnected.
 */
export const statusNames = ["4xx", "5xx", "ok", "error", "rejected"] as const

export type StatusFilter = number | (typeof statusNames)[number]

/** For messages and help. */
export const statusForms = joinWords(["an HTTP status", ...statusNames], "or")

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
  /** A request id, or the id of a row. */
  readonly id?: string | undefined
  /** Only the id of a row. */
  readonly row?: string | undefined
  /** Unix milliseconds. */
  readonly since?: number | undefined
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined
  /** The `next` of the previous page. */
  readonly after?: string | undefined
  /** Excludes requests that ended before this time. Unix milliseconds. */
  readonly endedSince?: number | undefined
  readonly limit: number
}

/** A page, newest first. */
export interface RequestPage<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The cursor for `after` in the query of the next page. Undefined on the last page. */
  readonly next: string | undefined
  /** Whether the search stopped at `SearchLimit`, so the page may have fewer rows than requested although more match. */
  readonly isTruncated: boolean
}

/**
 * The number of rows that a page may read to find rows by a property without an index, such as an address, a model or a
 * status of a key. With a million rows, all in memory, such a page takes PostgreSQL 0.1 to 0.8 seconds.
 */
export class SearchLimit extends Context.Reference<SearchLimit>()("gateway/SearchLimit", {
  defaultValue: () => 50_000
}) {}

const hasStatus = (sql: SqlClient.SqlClient, status: StatusFilter) => {
  if (status === "ok") return sql`status < 400 AND code IS NULL`
  if (status === "error") return sql.literal(isError)
  if (status === "rejected") return sql`status BETWEEN 400 AND 498`
  if (typeof status === "number") return sql`status = ${status}`
  return status === "4xx" ? sql`status BETWEEN 400 AND 499` : sql`status BETWEEN 500 AND 599`
}

/** Checks the form first, because PostgreSQL cannot parse `unknown` or an address with an interface name. */
const isWithin = (sql: SqlClient.SqlClient, range: AddressRange) =>
  sql`CASE WHEN address ~ '^[0-9a-f.:]+$' THEN address::inet <<= ${range}::inet END`

export const isUuid = Schema.is(Schema.UUID)

const selectRowIds = (sql: SqlClient.SqlClient, id: string) =>
  isUuid(id) ? sql`${selectIds(sql, id)} UNION SELECT ${id}::uuid` : selectIds(sql, id)

/**
 * Splits the query by what one index supports. The index finds rows by `equal` and `range`, ordered by id. `filters` is then
 * checked for each of these rows. Of several indexed properties, the index of the first is used.
 */
const splitFilters = (sql: SqlClient.SqlClient, scope: OrganizationScope, query: RequestQuery) => {
  const { address, after, code, endedSince, id, key, model, org, route, row, status, surface, tag, user } = query
  // The index by status excludes 200. The statement must repeat the condition of the index exactly to use it.
  const failureStatus = typeof status === "number" && status !== 200 ? status : undefined
  const indexedFilters = Object.entries({
    end_user: user,
    tag,
    code,
    status: failureStatus,
    key_id: key,
    org_id: org
  }).filter(([, value]) => value !== undefined)
  // The cursor of a truncated page is the last row read, matching or not. The index must therefore find only rows in the scope.
  const [unindexed, indexed] = Arr.partition(
    indexedFilters,
    ([column], index) => index === 0 || (column === "org_id" && scope.org !== undefined)
  )
  return {
    equal: Object.fromEntries(indexed),
    range: [
      ...(indexed[0]?.[0] === "status" ? [sql`status <> 200`] : []),
      ...inLogSpan(sql, query),
      ...whenDefined(id, (id) => sql`id = ANY (ARRAY(${selectRowIds(sql, id)}))`),
      ...whenDefined(row, (id) => sql`id = ${id}::uuid`),
      ...whenDefined(after, (id) => sql`id < ${id}::uuid`)
    ],
    filters: [
      ...equals(sql, { ...Object.fromEntries(unindexed), model, route, surface }),
      ...whenDefined(failureStatus === undefined ? status : undefined, (status) => hasStatus(sql, status)),
      ...whenDefined(address, (range) => isWithin(sql, range)),
      ...whenDefined(endedSince, (from) => sql`at + total_ms * interval '1 millisecond' >= ${new Date(from)}`)
    ]
  }
}

/** `isLast` marks the row at which the search ended. That row need not match. */
const SearchRow = Schema.Struct({ id: Schema.String, isMatch: Schema.Boolean, isLast: Schema.Boolean })
const decodeSearchRows = Schema.decodeUnknown(Schema.Array(SearchRow))

/**
 * Lists the matching rows. One statement reads both the rows and the end of the search, because rows inserted between two
 * statements would shift the end, and the next page would repeat rows.
 */
export const listRequests = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  query: RequestQuery,
  decode: (rows: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>>
) {
  const { limit } = query
  const searchLimit = yield* SearchLimit
  const { equal, filters, range } = splitFilters(sql, scope, { ...query, org: scope.narrow(query.org) })
  const statement = sql`
    SELECT log.*, is_match, number = ${searchLimit} AS is_last FROM (
      SELECT * FROM (
        SELECT *, row_number() OVER () AS number FROM (
          SELECT id, (${sql.and([sql`true`, ...filters])}) IS TRUE AS is_match FROM request_log
          ${listing(sql, { equal, where: range, by: ["id"], indexed: "asc", limit: searchLimit })}
        ) AS candidates
      ) AS searched WHERE is_match OR number = ${searchLimit} LIMIT ${limit + 1}
    ) AS found, LATERAL (SELECT * FROM request_log WHERE id = found.id OFFSET 0) AS log ORDER BY log.id DESC`
  const searchRows = yield* Effect.uninterruptible(Effect.orDie(statement))
  const marks = yield* Effect.orDie(decodeSearchRows(searchRows))
  const rows = yield* decode(searchRows.filter((_, index) => marks[index]?.isMatch === true && index < limit))
  if (marks.length > limit) return { rows, next: marks[limit - 1]?.id, isTruncated: false }
  const last = marks.at(-1)
  return last?.isLast === true
    ? { rows, next: last.id, isTruncated: true }
    : { rows, next: undefined, isTruncated: false }
})

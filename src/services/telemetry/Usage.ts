import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Record, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { inLogSpan, toFields, totalColumns } from "../requests/RequestColumns.ts"
import { requestCounts } from "../requests/RequestCounts.ts"
import { isLockTimeout } from "../sql/Outage.ts"
import { equals, rowsOf, whenDefined } from "../sql/SqlStatement.ts"

/** Unix milliseconds. `to` is exclusive. Bounds may be infinite. */
export interface Range {
  readonly from: number
  readonly to: number
}

interface RangeBounds {
  /** The totals include all rows from this time on. */
  readonly filledFrom: number
  /** The log contains all rows from this time on. Older ones may be deleted. */
  readonly rowsFrom: number
}

/**
 * The ranges that a report reads: daily totals for `days`, hourly totals for the rest of `hours`, log rows for the rest of
 * `all`.
 */
interface UsageRanges {
  readonly all: Range
  readonly hours: Range
  readonly days: Range
}

const hour = 3_600_000
const day = 24 * hour

/** Returns the whole units within a range, or an empty range if there are none. */
const toWholeUnits = ({ from, to }: Range, unit: number): Range => {
  const units = { from: Math.ceil(from / unit) * unit, to: Math.floor(to / unit) * unit }
  return units.from < units.to ? units : { from: to, to }
}

/**
 * Totals cover whole hours, so log rows are read for the incomplete hours at both ends, and for times before the totals. If
 * the log rows of an incomplete hour are deleted, the whole hour counts if it starts in the range.
 */
export const rangesOf = (
  { from, to }: Range,
  { filledFrom, rowsFrom }: RangeBounds,
  isByHour: boolean
): UsageRanges => {
  const toWhole = (at: number) => (at < rowsFrom ? Math.ceil(at / hour) * hour : at)
  const until = toWhole(to)
  const all = { from: Math.min(from < filledFrom ? from : toWhole(from), until), to: until }
  const hours = toWholeUnits({ from: Math.min(Math.max(all.from, filledFrom), until), to: until }, hour)
  return { all, hours, days: isByHour ? { from: hours.to, to: hours.to } : toWholeUnits(hours, day) }
}

export const Grouping = Schema.Literal(
  "model",
  "key",
  "day",
  "hour",
  "provider",
  "org",
  "route",
  "surface",
  "status",
  "tag"
)
export type Grouping = typeof Grouping.Type

export const UsageSort = Schema.Literal("charge", "requests", "cost", "margin")
export type UsageSort = typeof UsageSort.Type

/** The position of a page's last row. */
export interface UsageCursor {
  readonly group: string | null
  readonly subgroup: string | null
}

export interface UsageQuery {
  readonly by: Grouping
  /** Splits each group further. */
  readonly thenBy?: Grouping | undefined
  readonly org?: OrgId | undefined
  readonly key?: KeyId | undefined
  readonly model?: string | undefined
  readonly route?: string | undefined
  readonly surface?: string | undefined
  readonly status?: number | "4xx" | "5xx" | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Sorts by this value, largest first. The default is by time for days and hours, and by charge otherwise. */
  readonly sort?: UsageSort | undefined
  readonly limit?: number | undefined
  /** The cursor of the previous page. */
  readonly after?: UsageCursor | undefined
}

/** The SQL expression of each grouping's value. */
const groupValues: Readonly<Record<Grouping, string>> = {
  model: "nullif(model, '')",
  key: "key_id",
  day: "usage_day(hour)",
  hour: "hour",
  provider: "nullif(provider, '')",
  org: "org_id",
  route: "nullif(route, '')",
  surface: "surface",
  status: "status",
  tag: "nullif(tag, '')"
}

/** The SQL expression of a group's name. `%` stands for the group's value. */
const groupNames: Partial<Record<Grouping, string>> = {
  day: "to_char(%, 'YYYY-MM-DD')",
  hour: `to_char(% AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')`,
  status: "%::text",
  model: "CASE WHEN % IS NULL OR bool_or(is_sold) OVER (PARTITION BY %) THEN % ELSE name_of_unsold END"
}

/** The SQL expression of a group's label, which reports show with its id. `%` stands for the id. */
const groupLabels: Partial<Record<Grouping, string>> = {
  key: "(SELECT name FROM api_keys WHERE id = %)",
  org: "(SELECT name FROM organizations WHERE id = %)"
}

const isTimeGrouping = (by: Grouping | undefined) => by === "day" || by === "hour"

const orderOf = ({ by, sort, thenBy }: UsageQuery) => {
  if (sort !== undefined) return `${sort} DESC NULLS LAST, "group", subgroup`
  if (thenBy !== undefined) return `"group", charge DESC, subgroup`
  return isTimeGrouping(by) ? `"group"` : `charge DESC, "group"`
}

const statusFilter = (sql: SqlClient.SqlClient, status: number | "4xx" | "5xx") => {
  if (typeof status === "number") return sql`status = ${status}`
  const from = status === "4xx" ? 400 : 500
  return sql`status BETWEEN ${from} AND ${from + 99}`
}

const filtersOf = (sql: SqlClient.SqlClient, { key, model, org, status, surface }: UsageQuery) =>
  sql.and([
    sql`true`,
    ...equals(sql, { org_id: org, key_id: key, model, surface }),
    ...whenDefined(status, (status) => statusFilter(sql, status))
  ])

const toTimestamp = (at: number) =>
  Number.isFinite(at) ? new Date(at).toISOString() : at < 0 ? "-infinity" : "infinity"

const finiteOrUndefined = (at: number) => (Number.isFinite(at) ? at : undefined)

/** Returns the list of all columns of the totals, each as `format` writes it. */
const listOf = (format: (column: string) => string) => totalColumns.map(format).join(", ")
const [totalList, negatedList] = [listOf((column) => column), listOf((column) => `-${column}`)]
/** The sums over the rows of a group. `reportSums` then adds up the groups with the same name. */
const groupSums = listOf((column) => `sum(${column}) AS ${column}`)
const reportSums = [...totalColumns.filter((column) => column !== "margin"), "refusals"]
  .map((column) => `coalesce(sum(${column}), 0) AS ${column}`)
  .join(", ")
const seriesColumns = "org_id, key_id, model, route, provider, surface, status, is_sold"

/**
 * Returns the common table expression `usage`, which combines totals and log rows of the ranges. Its rows have a series, a
 * tag, and an hour or the start of a day.
 */
const usageOf = (sql: SqlClient.SqlClient, query: UsageQuery, { all, days, hours }: UsageRanges) => {
  const [hourFrom, dayFrom, dayTo, hourTo] = [hours.from, days.from, days.to, hours.to].map(toTimestamp)
  const inLog = (from: number, to: number) => {
    if (from === to) return sql`false`
    return sql.and([sql`true`, ...inLogSpan(sql, { since: finiteOrUndefined(from), until: finiteOrUndefined(to) })])
  }
  const filter = filtersOf(sql, query)
  const inDays = sql`starts_at >= ${dayFrom}::timestamptz AND starts_at < ${dayTo}::timestamptz AND ${filter}`
  const inHours = sql`(starts_at >= ${hourFrom}::timestamptz AND starts_at < ${dayFrom}::timestamptz
      OR starts_at >= ${dayTo}::timestamptz AND starts_at < ${hourTo}::timestamptz) AND ${filter}`
  const [columns, ofSeries] = [sql.literal(totalList), sql.literal(seriesColumns)]
  // A lateral join, because the planner then looks up queued rows by key even if it expects many.
  const usage = sql`parts AS (
    SELECT p.* FROM (
      SELECT * FROM request_log WHERE (${inLog(all.from, hours.from)} OR ${inLog(hours.to, all.to)}) AND ${filter}
      UNION ALL
      SELECT r.* FROM uncounted_requests AS queued, LATERAL (SELECT * FROM request_log WHERE id = queued.id OFFSET 0) AS r
      WHERE at >= ${hourFrom}::timestamptz AND at < ${hourTo}::timestamptz AND ${filter}
    ) AS r, usage_parts(1, ROW(r.*)::request_log) AS p
  ), untagged AS (
    SELECT ${ofSeries}, '' AS tag, starts_at AS hour, ${columns}
    FROM usage_days JOIN usage_series ON id = series_id WHERE ${inDays}
    UNION ALL
    SELECT ${ofSeries}, '', starts_at, ${columns}
    FROM usage_hours JOIN usage_series ON id = series_id WHERE ${inHours}
  )`
  if (query.by !== "tag" && query.thenBy !== "tag") {
    return sql`${usage}, usage AS (
    SELECT * FROM untagged UNION ALL SELECT ${ofSeries}, tag, hour, ${columns} FROM parts
  )`
  }
  const tagged = (tag: string, columns: string, table: string) =>
    sql.literal(`SELECT ${seriesColumns}, ${tag}, starts_at, ${columns} FROM ${table} JOIN usage_tag_series AS tagged
      ON tagged.id = ${table}.series_id JOIN usage_series ON usage_series.id = tagged.series_id`)
  // The untagged totals include tagged requests, so those are subtracted from them. After 1,000 tags of an organization
  // in a day, a new tag counts as `other`, also in rows that are not yet part of the totals.
  return sql`${usage}, usage AS (
    SELECT * FROM untagged
    UNION ALL ${tagged("tag", totalList, "usage_tag_days")} WHERE ${inDays}
    UNION ALL ${tagged("tag", totalList, "usage_tag_hours")} WHERE ${inHours}
    UNION ALL ${tagged("''", negatedList, "usage_tag_days")} WHERE ${inDays}
    UNION ALL ${tagged("''", negatedList, "usage_tag_hours")} WHERE ${inHours}
    UNION ALL
    SELECT ${ofSeries}, CASE WHEN is_new AND dense_rank() OVER (PARTITION BY day, org_id, is_new ORDER BY tag) > 1000 - (
        SELECT coalesce(max(number), 0) FROM usage_tags WHERE usage_tags.day = named.day AND usage_tags.org_id = named.org_id
      ) THEN 'other' ELSE tag END, hour, ${columns}
    FROM (
      SELECT parts.*, usage_day(hour) AS day, parts.tag NOT IN ('', 'other') AND number IS NULL AS is_new
      FROM parts LEFT JOIN usage_tags AS t ON t.day = usage_day(hour) AND t.org_id = parts.org_id AND t.tag = parts.tag
    ) AS named
  )`
}

const Bounds = Schema.Tuple(Schema.Struct({ filledFrom: Schema.Number, rowsFrom: Schema.Number }))

const readBounds = (sql: SqlClient.SqlClient) =>
  sql`SELECT (extract(epoch FROM filled_from) * 1000)::float8 AS filled_from,
      (extract(epoch FROM rows_from) * 1000)::float8 AS rows_from FROM usage_bounds`.pipe(
    Effect.flatMap((rows) => Effect.orDie(Schema.decodeUnknown(Bounds)(rows))),
    Effect.map(([bounds]) => bounds)
  )

/** The planner expects many groups and would sort the rows, which takes twice as long. In fact there are few groups. */
const withHashAggregation = <A, E>(sql: SqlClient.SqlClient, statement: Effect.Effect<A, E>) =>
  sql`SELECT set_config('enable_sort', 'off', true), set_config('work_mem', '32MB', true)`.pipe(
    Effect.zipRight(statement),
    sql.withTransaction
  )

/** Returns a row for each group, then a row of totals. Models that are not on sale form the group `unknown`. */
export const report = (sql: SqlClient.SqlClient, query: UsageQuery, unknown: "unknown" | null) =>
  Effect.flatMap(readBounds(sql), (bounds) => {
    const { after, by, limit = null, route, since = -Infinity, thenBy, until = Infinity } = query
    const ranges = rangesOf({ from: since, to: until }, bounds, by === "hour" || thenBy === "hour")
    const fillIn = (text: string | undefined, column: string) =>
      sql.literal((text ?? "NULL::text").replaceAll("%", column))
    const key = (by: Grouping | undefined) => sql.literal(by === undefined ? "NULL::text" : groupValues[by])
    const name = (by: Grouping | undefined, column: string) => fillIn((by && groupNames[by]) ?? "%", column)
    const label = (by: Grouping | undefined, column: string) => fillIn(by && groupLabels[by], column)
    const start =
      after === undefined
        ? sql`0`
        : sql`coalesce((
      SELECT place FROM placed WHERE NOT is_total AND "group" IS NOT DISTINCT FROM ${after.group}::text
        AND subgroup IS NOT DISTINCT FROM ${after.subgroup}::text), 0)`
    return withHashAggregation(
      sql,
      sql`
  WITH ${usageOf(sql, query, ranges)}, grouped AS (
    SELECT ${key(by)} AS key, ${key(thenBy)} AS subkey, bool_or(is_sold) AS is_sold, ${unknown}::text AS name_of_unsold,
      sum(requests) FILTER (WHERE status BETWEEN 400 AND 498) AS refusals, ${sql.literal(groupSums)}
    FROM usage WHERE ${sql.and([sql`true`, ...equals(sql, { route })])} GROUP BY 1, 2
  ), named AS (
    SELECT *, ${name(by, "key")} AS "group", ${name(thenBy, "subkey")} AS subgroup FROM grouped
  ), summed AS (
    SELECT "group", subgroup, grouping("group") = 1 AS is_total, ${sql.literal(reportSums)},
      CASE WHEN sum(costed) > 0 THEN sum(margin) END AS margin
    FROM named GROUP BY GROUPING SETS (("group", subgroup), ())
  ), placed AS (
    SELECT *, row_number() OVER (ORDER BY is_total, ${sql.literal(orderOf(query))}) AS place
    FROM summed
    -- Excludes groups whose requests a refund has moved to another status.
    WHERE is_total OR requests <> 0 OR charge <> 0 OR cost <> 0
  )
  SELECT *, ${label(by, '"group"')} AS label, ${label(thenBy, "subgroup")} AS sublabel
  FROM placed, (SELECT ${start} AS start) AS page
  WHERE is_total OR place > start AND place <= coalesce(start + ${limit}::bigint + 1, place)
  ORDER BY place`
    )
  })

/** `cost` includes failed attempts. `margin` is that of the requests with a known cost, or null if there are none. */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  /** The value by which rows are grouped. Null for requests that lack it, such as a model. */
  group: Schema.NullOr(Schema.String),
  label: Schema.NullOr(Schema.String),
  /** The value of the second grouping. Null without a second grouping. */
  subgroup: Schema.NullOr(Schema.String),
  sublabel: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  /** Responses with status 500 or above, and broken streams. */
  errors: Schema.NumberFromString,
  /** Responses with status 400 to 498. */
  refusals: Schema.NumberFromString,
  ...toFields(Record.map(requestCounts, () => Schema.NumberFromString)),
  charge: NanoUsdFromRow,
  cost: NanoUsdFromRow,
  margin: Schema.NullOr(NanoUsdFromRow),
  uncosted: Schema.NumberFromString,
  /** The provider-reported cost, including requests without a known cost. */
  statedCost: NanoUsdFromRow,
  /** The catalog cost of the requests that have both costs. */
  comparedCost: NanoUsdFromRow,
  /** The provider-reported cost of the requests that have both costs, minus `comparedCost`. */
  costDrift: NanoUsdFromRow,
  isTotal: Schema.Boolean
}) {}

interface UsageReport {
  readonly rows: ReadonlyArray<UsageRow>
  /** Totals over all pages. */
  readonly totals: UsageRow
  /** The cursor of the next page. */
  readonly next: UsageCursor | undefined
}

/** Usage reports for any period. They include requests whose log rows are already deleted. */
export class Usage extends Context.Tag("gateway/Usage")<
  Usage,
  { readonly report: (scope: OrganizationScope, query: UsageQuery) => Effect.Effect<UsageReport> }
>() {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return Usage.of({
        report: Effect.fn("Usage.report")(function* (scope: OrganizationScope, query: UsageQuery) {
          const scopedQuery = { ...query, org: scope.narrow(query.org) }
          const reportRows = yield* rowsOf(UsageRow)(report(sql, scopedQuery, "unknown"))
          const totals = reportRows.at(-1)
          if (totals === undefined) return yield* Effect.dieMessage("a report has no totals")
          const { limit = Infinity } = query
          const rows = reportRows.slice(0, -1)
          const page = rows.slice(0, limit)
          const last = page.at(-1)
          const next = last !== undefined && page.length < rows.length ? last : undefined
          return { rows: page, totals, next: next && { group: next.group, subgroup: next.subgroup } }
        })
      })
    })
  )
}

/** The number of rows per transaction. Small, because updates of these rows wait for the transaction. */
const batchSize = 5_000

const CountResult = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ counted: Schema.Number })))

/**
 * Adds all queued log rows to the usage totals (see `requests/RequestColumns.ts`). Does nothing while another gateway does
 * so.
 */
export const countUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ counted }] = yield* Effect.flatMap(sql`SELECT count_uncounted(${batchSize}) AS counted`, CountResult)
  return counted === batchSize
}).pipe(
  Effect.catchIf(isLockTimeout, () => Effect.succeed(false)),
  Effect.uninterruptible,
  Effect.repeat({ while: (isFull) => isFull }),
  Effect.asVoid
)

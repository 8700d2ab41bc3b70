import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { taggedParts, totalColumns } from "../requests/RequestColumns.ts"
import { equals, whenDefined } from "../sql/Statement.ts"
import { type Range, rangesOf, type UsageRanges } from "./UsageRanges.ts"

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

/** A row's place among others. */
export interface UsagePlace {
  readonly group: string | null
  readonly subgroup: string | null
}

export interface UsageQuery {
  readonly by: Grouping
  /** Splits each group once more. */
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
  /** The largest first; by default days and hours in their order, and otherwise by charge. */
  readonly sort?: UsageSort | undefined
  readonly limit?: number | undefined
  /** Only what is listed after it. */
  readonly after?: UsagePlace | undefined
}

const names: Readonly<Record<Grouping, string>> = {
  model: "nullif(model, '')",
  key: "key_id",
  day: "to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
  hour: `to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')`,
  provider: "nullif(provider, '')",
  org: "org_id",
  route: "nullif(route, '')",
  surface: "surface",
  status: "status::text",
  tag: "nullif(tag, '')"
}

const isByTag = ({ by, thenBy }: UsageQuery) => by === "tag" || thenBy === "tag"
const isOfTime = (by: Grouping | undefined) => by === "day" || by === "hour"

const labelOf = (by: Grouping | undefined, column: string) =>
  by === "key" || by === "org"
    ? `(SELECT name FROM ${by === "key" ? "api_keys" : "organizations"} WHERE id = ${column})`
    : "NULL::text"

// Numbers of any length are dear to add up once more.
const added = totalColumns.map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const signed = totalColumns.map((name) => `sign * ${name} AS ${name}`).join(", ")
const columns = [...totalColumns, "refusals"]
const orderOf = ({ by, sort, thenBy }: UsageQuery) => {
  if (sort !== undefined) return `${sort} DESC NULLS LAST, "group", subgroup`
  if (thenBy !== undefined) return `"group", charge DESC, subgroup`
  return isOfTime(by) ? `"group"` : `charge DESC, "group"`
}

const moment = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString() : at < 0 ? "-infinity" : "infinity")

const inRanges = (sql: SqlClient.SqlClient, column: string, ranges: ReadonlyArray<Range>) =>
  sql.or([
    sql`false`,
    ...ranges.map(({ from, to }) => {
      const at = sql.literal(column)
      return sql`${at} >= ${moment(from)}::timestamptz AND ${at} < ${moment(to)}::timestamptz`
    })
  ])

const statusFilter = (sql: SqlClient.SqlClient, status: number | "4xx" | "5xx") => {
  if (typeof status === "number") return sql`status = ${status}`
  const from = status === "4xx" ? 400 : 500
  return sql`status BETWEEN ${from} AND ${from + 99}`
}

const filtersOf = (sql: SqlClient.SqlClient, { key, model, org, route, status, surface }: UsageQuery) => ({
  ofRequest: [
    ...equals(sql, { org_id: org, key_id: key, model, surface }),
    ...whenDefined(status, (status) => statusFilter(sql, status))
  ],
  ofRoute: equals(sql, { route })
})

const nameIn = (by: Grouping | undefined) => (by === undefined || isOfTime(by) ? "NULL::text" : names[by])

/** What names a row of a report, and a moment in its day or hour. */
const identity = ({ by, thenBy }: UsageQuery) =>
  `${nameIn(by)} AS name, ${nameIn(thenBy)} AS subname, is_sold, status BETWEEN 400 AND 498 AS is_refusal`

/** Rows that the totals lack yet, each found by its key whatever the planner believes of their number. */
export const uncountedRows = `(
  SELECT r.* FROM uncounted_requests, LATERAL (SELECT * FROM request_log WHERE id = uncounted_requests.id OFFSET 0) AS r
) AS uncounted`

/** The names of a group's part without a tag. */
const untagged = ({ by, thenBy }: UsageQuery) =>
  `${by === "tag" ? "NULL" : "name"}, ${thenBy === "tag" ? "NULL" : "subname"}`

const sourcesOf = (sql: SqlClient.SqlClient, query: UsageQuery, { days, hours, rows }: UsageRanges) => {
  const { ofRequest, ofRoute } = filtersOf(sql, query)
  // A list of ids is cheaper than a join for nearly all series; one NULL in it would scan through.
  const isOfAll = ofRequest.length + ofRoute.length === 0
  const isByTime = isOfTime(query.by) || isOfTime(query.thenBy)
  const ofTotals = (table: string, ranges: ReadonlyArray<Range>) => sql`
    SELECT name, subname, is_sold, is_refusal, hour, ${sql.literal(totalColumns.join(", "))} FROM (
      SELECT kind, ${sql.literal(isByTime ? "starts_at" : "NULL::timestamptz")} AS hour, ${sql.literal(added)}
      FROM (SELECT ${sql.literal(isOfAll ? "(SELECT kinds FROM of_series)[series_id] AS kind, *" : "*")}
        FROM ${sql(table)} ${sql.literal(isOfAll ? "" : "JOIN kinds ON kinds.id = series_id")}) AS totals
      WHERE ${inRanges(sql, "starts_at", ranges)} GROUP BY 1, 2
    ) AS added JOIN (SELECT DISTINCT kind, name, subname, is_sold, is_refusal FROM kinds) AS named USING (kind)`
  const readFrom = (table: string, ranges: ReadonlyArray<Range>) =>
    sql`SELECT * FROM ${sql.literal(table)} WHERE ${sql.and([inRanges(sql, "at", ranges), ...ofRequest])}`
  const parts = sql`
    SELECT p.* FROM (${readFrom(uncountedRows, [...days, ...hours])} UNION ALL ${readFrom("request_log", rows)}) AS r,
      usage_parts(1, ROW(r.*)::request_log) AS p`
  const ofRows = sql`
    SELECT ${sql.literal(identity(query))}, hour, ${sql.literal(totalColumns.join(", "))} FROM (
      ${isByTag(query) ? sql`${sql.literal(taggedParts.before)}${parts}${sql.literal(taggedParts.after)}` : parts}
    ) AS parts WHERE ${sql.and([sql`true`, ...ofRoute])}`
  const sums = `SELECT ${isByTime ? "starts_at" : "NULL::timestamptz"} AS hour, ${added}`
  // What has a tag is no part of what has none. Each is found by its key whatever the planner believes of their number.
  const ofTags = (table: string, ranges: ReadonlyArray<Range>) => sql`
    SELECT place.name, place.subname, is_sold, is_refusal, hour, ${sql.literal(signed)} FROM (
      SELECT tagged_id, ${sql.literal(identity(query))} FROM usage_series, LATERAL (
        SELECT id AS tagged_id, tag FROM usage_tag_series WHERE series_id = usage_series.id OFFSET 0
      ) AS tagged WHERE ${sql.and([sql`true`, ...ofRequest, ...ofRoute])}
    ) AS series, LATERAL (
      ${sql.literal(sums)} FROM ${sql(table)} WHERE series_id = tagged_id AND ${inRanges(sql, "starts_at", ranges)} GROUP BY 1
    ) AS totals, LATERAL (VALUES (name, subname, 1), (${sql.literal(untagged(query))}, -1)) AS place (name, subname, sign)`
  const sources = [
    ofTotals("usage_days", days),
    ofRows,
    ...(hours.length === 0 ? [] : [ofTotals("usage_hours", hours)]),
    ...(isByTag(query) ? [ofTags("usage_tag_days", days), ofTags("usage_tag_hours", hours)] : [])
  ]
  // Numbers are added up by: names are dear to compare.
  return sql`kinds AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY name, subname, is_sold, is_refusal) AS kind
    FROM (
      SELECT id, ${sql.literal(identity(query))} FROM (SELECT *, '' AS tag FROM usage_series) AS untagged
      WHERE ${sql.and([sql`true`, ...ofRequest, ...ofRoute])}
    ) AS series
  ), of_series AS MATERIALIZED (
    SELECT array_agg(coalesce(kind, 0) ORDER BY id) AS kinds
    FROM generate_series(1, (SELECT max(id) FROM kinds)) AS id LEFT JOIN kinds USING (id)
  ), parts AS (${sources.reduce((all, one) => sql`${all} UNION ALL ${one}`)})`
}

const Bounds = Schema.Tuple(Schema.Struct({ filledFrom: Schema.Number, rowsFrom: Schema.Number }))

const epochMillis = (column: string) => `(extract(epoch FROM ${column}) * 1000)::double precision`

const readBounds = (sql: SqlClient.SqlClient) =>
  sql`SELECT ${sql.literal(epochMillis("filled_from"))} AS filled_from, ${sql.literal(epochMillis("rows_from"))} AS rows_from
    FROM usage_bounds`.pipe(
    Effect.flatMap((rows) => Effect.orDie(Schema.decodeUnknown(Bounds)(rows))),
    Effect.map(([bounds]) => bounds)
  )

/** Groups are few, which the planner cannot know: sorting all rows by them takes twice as long. */
const withHashAggregation = <A, E>(sql: SqlClient.SqlClient, statement: Effect.Effect<A, E>) =>
  sql`SELECT set_config('enable_sort', 'off', true), set_config('work_mem', '32MB', true)`.pipe(
    Effect.zipRight(statement),
    sql.withTransaction
  )

/** A row for each group, and last one of them all; names that are not on sale form the group `unknown`. */
export const report = (sql: SqlClient.SqlClient, query: UsageQuery, unknown: "unknown" | null) =>
  Effect.flatMap(readBounds(sql), (bounds) => {
    const { after, by, limit, since = -Infinity, thenBy, until = Infinity } = query
    const ranges = rangesOf({ from: since, to: until }, bounds, by === "hour" || thenBy === "hour")
    const [name, subname] = [
      sql.literal(isOfTime(by) ? names[by] : "name"),
      sql.literal(thenBy !== undefined && isOfTime(thenBy) ? names[thenBy] : "subname")
    ]
    const nameOf = (of: Grouping | undefined, column: string) =>
      of === "model"
        ? sql`CASE WHEN ${sql.literal(column)} IS NULL OR is_sold THEN ${sql.literal(column)} ELSE ${unknown} END`
        : sql.literal(column)
    const start =
      after === undefined
        ? sql`0`
        : sql`coalesce((
      SELECT place FROM placed WHERE NOT is_total AND "group" IS NOT DISTINCT FROM ${after.group}::text
        AND subgroup IS NOT DISTINCT FROM ${after.subgroup}::text), 0)`
    const found = sql`
      WITH ${sourcesOf(sql, query, ranges)}, named AS (
        SELECT ${name} AS name, ${subname} AS subname,
          bool_or(bool_or(is_sold)) OVER (PARTITION BY ${thenBy === "model" ? subname : name}) AS is_sold,
          sum(requests) FILTER (WHERE is_refusal)::bigint AS refusals, ${sql.literal(added)}
        FROM parts GROUP BY 1, 2
      ), grouped AS (
        SELECT ${nameOf(by, "name")} AS "group", ${nameOf(thenBy, "subname")} AS subgroup, ${sql.literal(columns.join(", "))} FROM named
      ), summed AS (
        SELECT "group", subgroup, grouping("group") = 1 AS is_total,
          ${sql.literal(columns.map((name) => `coalesce(sum(${name}), 0) AS ${name === "margin" ? "known_margin" : name}`).join(", "))}
        FROM grouped GROUP BY GROUPING SETS (("group", subgroup), ())
      ), placed AS (
        SELECT *, row_number() OVER (ORDER BY is_total, ${sql.literal(orderOf(query))}) AS place
        FROM (SELECT *, CASE WHEN costed > 0 THEN known_margin END AS margin FROM summed) AS known
        -- Of requests that a refund has moved to another status.
        WHERE is_total OR requests <> 0 OR charge <> 0 OR cost <> 0
      )
      SELECT *, ${sql.literal(labelOf(by, '"group"'))} AS label, ${sql.literal(labelOf(thenBy, "subgroup"))} AS sublabel
      FROM placed, (SELECT ${start} AS start) AS page
      WHERE is_total OR place > start AND place <= coalesce(start + ${limit ?? null}::bigint + 1, place) ORDER BY place`
    return withHashAggregation(sql, found)
  })

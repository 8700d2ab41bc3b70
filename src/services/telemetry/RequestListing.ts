import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import type { AddressRange } from "../access/AddressRange.ts"
import { listing } from "../sql/Listing.ts"
import { equals, inScope, inTimeRange, whenDefined } from "../sql/Statement.ts"
import { isWithin } from "./RequestSearch.ts"
import { uncountedRows } from "./UsageSql.ts"

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
  /** Only rows that are listed after the one with this id. */
  readonly after?: string | undefined
  /** Unix milliseconds. */
  readonly endedSince?: number | undefined
  readonly limit: number
}

const withStatus = (sql: SqlClient.SqlClient, status: StatusFilter) => {
  if (status === "ok") return sql`status < 400 AND code IS NULL`
  if (status === "error") return sql`(status >= 500 OR code = 'stream_error')`
  // A literal, so that a generic plan finds the index of all but 200.
  if (typeof status === "number") return status === 200 ? sql`status = 200` : sql`status = ${status} AND status <> 200`
  return status === "4xx" ? sql`status BETWEEN 400 AND 499` : sql`status BETWEEN 500 AND 599`
}

const isUuid = Schema.is(Schema.UUID)

/** `org` is that of the scope. */
interface ScopedQuery extends RequestQuery {
  readonly scope: OrganizationScope
}

const timeOf = (sql: SqlClient.SqlClient, scope: OrganizationScope, after: string) =>
  sql`(SELECT at FROM request_log WHERE ${sql.and([sql`id = ${after}`, ...inScope(sql, scope)])})`

const conditionsOf = (sql: SqlClient.SqlClient, query: ScopedQuery) => {
  const { after, code, endedSince, id, key, model, org, route, status, surface, tag, user } = query
  return [
    ...equals(sql, { end_user: user, tag, org_id: org, key_id: key, model, route, surface, code }),
    ...whenDefined(status, (status) => withStatus(sql, status)),
    ...whenDefined(query.address, (range) => isWithin(sql, range)),
    ...whenDefined(id, (id) => (isUuid(id) ? sql`(request_id = ${id} OR id = ${id}::uuid)` : sql`request_id = ${id}`)),
    ...inTimeRange(sql, "at", query),
    ...whenDefined(after, (id) => sql`(at, id) < (${timeOf(sql, query.scope, id)}, ${id}::uuid)`),
    ...whenDefined(endedSince, (from) => sql`at + total_ms * interval '1 millisecond' >= ${new Date(from)}`)
  ]
}

/** What no index has in the order of time. */
const isByHours = ({ code, endedSince, id, key, model, org, route, status, surface, tag, user }: RequestQuery) => {
  if (user !== undefined || code !== undefined || id !== undefined || endedSince !== undefined) return false
  if (route !== undefined || surface !== undefined || status === "error" || status === "5xx") return true
  if (tag === undefined && org === undefined && key === undefined) return model !== undefined && status === "ok"
  return [org, key, model, status, tag].filter((one) => one !== undefined).length > 1
}

/** Series that have all matching requests, and perhaps others: a model that was not on sale yet counted as unknown. */
const seriesOf = (sql: SqlClient.SqlClient, { key, model, org, route, status, surface }: RequestQuery) =>
  sql.and([
    ...equals(sql, { org_id: org, key_id: key, route, surface }),
    ...whenDefined(model, (model) => sql`(model = ${model} OR NOT is_sold AND model = 'unknown')`),
    ...whenDefined(status, (status) => (status === "ok" ? sql`status < 400` : withStatus(sql, status)))
  ])

/** Of a tag there are series of their own; its part beyond a day's limit is in those of `other`. */
const totalsOf = (sql: SqlClient.SqlClient, query: RequestQuery) => {
  const { tag } = query
  if (tag === undefined) {
    return { hours: "usage_hours", series: sql`SELECT id, key_id FROM usage_series WHERE ${seriesOf(sql, query)}` }
  }
  return {
    hours: "usage_tag_hours",
    series: sql`
      SELECT tagged.id, key_id FROM usage_tag_series AS tagged JOIN usage_series ON usage_series.id = tagged.series_id
      WHERE tag IN (${tag}, 'other') AND ${seriesOf(sql, query)}`
  }
}

/** The newest hours that have such requests by the totals or uncounted, one after the other until the rows are enough. */
const listByHours = (sql: SqlClient.SqlClient, query: ScopedQuery) => {
  const { after, limit, since, until } = query
  const { hours, series } = totalsOf(sql, query)
  return sql`
    WITH RECURSIVE bounds AS MATERIALIZED (
      SELECT date_trunc('hour', greatest(min(at), ${since === undefined ? null : new Date(since)}::timestamptz), 'UTC') AS oldest
      FROM request_log
    ), series AS MATERIALIZED (
      ${series}
    ), uncounted AS MATERIALIZED (
      SELECT DISTINCT date_trunc('hour', at, 'UTC') AS starts_at, key_id FROM ${sql.literal(uncountedRows)}
      WHERE ${sql.and(conditionsOf(sql, query))}
    ), hours AS (
      SELECT least(${until === undefined ? null : new Date(until)}::timestamptz, ${
        after === undefined ? sql`'infinity'` : sql`${timeOf(sql, query.scope, after)} + interval '1 microsecond'`
      }) AS hour, 0::bigint AS found, NULL::request_log[] AS listed
      UNION ALL
      SELECT next.hour, found + cardinality(here.listed), here.listed FROM hours, LATERAL (
        SELECT starts_at AS hour, array_agg(DISTINCT key_id) AS keys FROM (
          SELECT starts_at, key_id FROM series, LATERAL (
            SELECT starts_at FROM ${sql(hours)}
            WHERE series_id = series.id AND starts_at < hours.hour
              AND starts_at >= (SELECT oldest FROM bounds) AND requests > 0
            ORDER BY starts_at DESC LIMIT 1
          ) AS newest
          UNION ALL
          SELECT starts_at, key_id FROM uncounted WHERE starts_at < hours.hour
        ) AS candidates GROUP BY 1 ORDER BY 1 DESC LIMIT 1
      ) AS next, LATERAL (
        SELECT array(
          SELECT request_log FROM request_log
          WHERE key_id = ANY (next.keys) AND at >= next.hour AND at < next.hour + interval '1 hour'
            AND ${sql.and(conditionsOf(sql, query))}
          ORDER BY at DESC, id DESC LIMIT ${limit}
        ) AS listed OFFSET 0
      ) AS here WHERE found < ${limit}
    )
    SELECT r.* FROM hours, unnest(listed) AS r ORDER BY at DESC, id DESC LIMIT ${limit}`
}

const Readiness = Schema.Tuple(Schema.Struct({ isReady: Schema.Boolean }))

/** Whether the totals know of every counted row that the query can match. */
const areTotalsReady = (sql: SqlClient.SqlClient, query: RequestQuery) =>
  sql`SELECT filled_from = '-infinity' AND (
      ${query.model ?? null}::text IS NULL OR EXISTS (SELECT FROM usage_series WHERE model = ${query.model ?? null} AND is_sold)
    ) AS is_ready FROM usage_bounds`.pipe(
    Effect.flatMap((rows) => Effect.orDie(Schema.decodeUnknown(Readiness)(rows))),
    Effect.map(([{ isReady }]) => isReady)
  )

const listPlainly = (sql: SqlClient.SqlClient, query: ScopedQuery) => {
  const { code, id, key, limit, model, org, status, tag, user, ...others } = query
  // An id finds its rows whatever else is asked for, and a status may be rarer than a model.
  const isFree =
    id !== undefined || ([code, key, org, tag, user].every((one) => one === undefined) && status !== undefined)
  return sql`SELECT * FROM request_log ${listing(sql, {
    equal: isFree ? {} : { end_user: user, tag, code, key_id: key, org_id: org, model },
    where: conditionsOf(sql, isFree ? query : { ...others, status, limit }),
    by: ["at", "id"],
    limit
  })}`
}

/** The two kinds of errors have an order each. */
const listErrors = (sql: SqlClient.SqlClient, query: ScopedQuery) => sql`
  SELECT * FROM (
    SELECT * FROM (${listByHours(sql, { ...query, status: "5xx" })}) AS failed UNION ALL
    SELECT * FROM (${listPlainly(sql, { ...query, status: undefined, code: "stream_error" })}) AS broken WHERE status < 500
  ) AS errors ORDER BY at DESC, id DESC LIMIT ${query.limit}`

/** The rows that match, newest first. */
export const listRequests = (sql: SqlClient.SqlClient, scope: OrganizationScope, given: RequestQuery) => {
  const query = { ...given, scope, org: scope.narrow(given.org) }
  return Effect.if(isByHours(query) ? areTotalsReady(sql, query) : Effect.succeed(false), {
    onTrue: () => (query.status === "error" ? listErrors(sql, query) : listByHours(sql, query)),
    onFalse: () => listPlainly(sql, query)
  })
}

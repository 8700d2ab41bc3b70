import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { refundsOf } from "../ledger/RefundSql.ts"
import { rowsOf } from "../sql/Statement.ts"

export const Grouping = Schema.Literal("model", "key", "day", "provider", "org", "route", "surface", "status")
export type Grouping = typeof Grouping.Type

/** `cost` includes failed attempts; `margin` covers what has a known cost, and is null without any. */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  /** Null: requests for an unknown model, for example. */
  group: Schema.NullOr(Schema.String),
  label: Schema.NullOr(Schema.String),
  /** Of the second grouping; null without one. */
  subgroup: Schema.NullOr(Schema.String),
  sublabel: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  promptTokens: Schema.NumberFromString,
  completionTokens: Schema.NumberFromString,
  cachedTokens: Schema.NumberFromString,
  cacheWriteTokens: Schema.NumberFromString,
  cacheWriteHourTokens: Schema.NumberFromString,
  reasoningTokens: Schema.NumberFromString,
  webSearches: Schema.NumberFromString,
  spend: NanoUsdFromRow,
  cost: NanoUsdFromRow,
  margin: Schema.NullOr(NanoUsdFromRow),
  uncosted: Schema.NumberFromString
}) {}

export interface UsageQuery {
  readonly by: Grouping
  /** Splits each group once more. */
  readonly thenBy?: Grouping | undefined
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

const day = "to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
const known = "r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL"
export const groups = {
  // Customers may request any name, and each would be a group of its own.
  model: { request: "r.model", attempt: "r.model", isKnown: known },
  key: { request: "r.key_id", attempt: "r.key_id", isKnown: "true" },
  day: { request: day, attempt: day, isKnown: "true" },
  provider: { request: "r.provider", attempt: "a.provider", isKnown: "true" },
  org: { request: "r.org_id", attempt: "r.org_id", isKnown: "true" },
  route: { request: "r.route", attempt: "a.route", isKnown: "true" },
  surface: { request: "r.surface", attempt: "r.surface", isKnown: "true" },
  status: { request: "r.status::text", attempt: "r.status::text", isKnown: "true" }
} as const

const noGroup = { request: "NULL::text", attempt: "NULL::text", isKnown: "true" }

const labelOf = (by: Grouping | undefined, column: string) =>
  by === "key" || by === "org"
    ? `(SELECT name FROM ${by === "key" ? "api_keys" : "organizations"} WHERE id = ${column})`
    : "NULL::text"

/** Names without a request that was sold are one group. */
const nameOf = (by: Grouping | undefined, column: string) =>
  by === "model" ? `CASE WHEN ${column} IS NULL OR is_sold THEN ${column} ELSE 'unknown' END` : column

/** A charge may follow its row; found one by one by the holds' index, because a join would read the whole ledger. */
export const charge = `CASE WHEN r.charge > 0 OR r.hold_id IS NULL THEN r.charge ELSE coalesce((
  SELECT h.charged - coalesce((
    SELECT sum(amount) FROM ledger_entries WHERE ${refundsOf("h.id")}
  ), 0) FROM holds h WHERE h.id = r.hold_id
), 0) END`
const cost = `CASE WHEN r.surface = 'video' THEN
  coalesce((SELECT v.cost FROM videos v WHERE v.hold_id = r.hold_id), r.cost) ELSE r.cost END`

/** Charges are the ledger's, also those made after the response. */
export class Usage extends Context.Tag("gateway/Usage")<
  Usage,
  { readonly report: (query: UsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>> }
>() {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = rowsOf(UsageRow)
      return Usage.of({
        report: Effect.fn("Usage.report")(({ by, org, since, thenBy, until }: UsageQuery) => {
          const where = sql.and([
            sql`true`,
            ...(org === undefined ? [] : [sql`r.org_id = ${org}`]),
            ...(since === undefined ? [] : [sql`r.at >= ${new Date(since)}`]),
            ...(until === undefined ? [] : [sql`r.at < ${new Date(until)}`])
          ])
          const first = groups[by]
          const second = thenBy === undefined ? noGroup : groups[thenBy]
          const isKnown = sql.literal(`(${first.isKnown}) AND (${second.isKnown})`)
          const order = thenBy !== undefined ? `"group", spend DESC, subgroup` : by === "day" ? "1" : "spend DESC, 1"
          return rows(sql`
              WITH parts AS (
                SELECT ${sql.literal(first.request)} AS name, ${sql.literal(second.request)} AS subname,
                  ${isKnown} AS is_known, 1 AS requests, prompt_tokens,
                  completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, web_searches,
                  ${sql.literal(charge)} AS charge, ${sql.literal(cost)} AS cost
                FROM request_log r WHERE ${where}
                UNION ALL
                SELECT ${sql.literal(first.attempt)}, ${sql.literal(second.attempt)}, ${isKnown}, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, a.cost_nano
                FROM request_log r, jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint)
                WHERE ${where} AND jsonb_path_exists(r.attempts, '$[*].cost_nano') AND a.cost_nano IS NOT NULL
              ), named AS (
                SELECT name, subname,
                  bool_or(bool_or(is_known)) OVER (PARTITION BY ${sql.literal(thenBy === "model" ? "subname" : "name")}) AS is_sold,
                  sum(requests) AS requests,
                  sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
                  sum(cached_tokens) AS cached_tokens, sum(cache_write_tokens) AS cache_write_tokens,
                  sum(cache_write_hour_tokens) AS cache_write_hour_tokens, sum(reasoning_tokens) AS reasoning_tokens,
                  sum(web_searches) AS web_searches,
                  sum(charge) AS spend, sum(cost) AS cost, sum(charge - cost) AS margin,
                  count(*) FILTER (WHERE cost IS NULL AND charge > 0) AS uncosted
                FROM parts GROUP BY name, subname
              ), totals AS (
                SELECT ${sql.literal(nameOf(by, "name"))} AS "group", ${sql.literal(nameOf(thenBy, "subname"))} AS subgroup,
                  sum(requests) AS requests,
                  coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
                  coalesce(sum(completion_tokens), 0) AS completion_tokens,
                  coalesce(sum(cached_tokens), 0) AS cached_tokens,
                  coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
                  coalesce(sum(cache_write_hour_tokens), 0) AS cache_write_hour_tokens,
                  coalesce(sum(reasoning_tokens), 0) AS reasoning_tokens,
                  coalesce(sum(web_searches), 0) AS web_searches,
                  sum(spend) AS spend, coalesce(sum(cost), 0) AS cost, sum(margin) AS margin, sum(uncosted) AS uncosted
                FROM named GROUP BY 1, 2
              )
              SELECT "group", subgroup, ${sql.literal(labelOf(by, '"group"'))} AS label,
                ${sql.literal(labelOf(thenBy, "subgroup"))} AS sublabel,
                requests, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
                reasoning_tokens, web_searches, spend, cost, margin, uncosted
              FROM totals ORDER BY ${sql.literal(order)}`)
        })
      })
    })
  )
}

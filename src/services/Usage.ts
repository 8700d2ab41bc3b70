import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { NanoUsdFromRow } from "../domain/Money.ts"
import type { OrgId } from "../domain/Organization.ts"

export const Grouping = Schema.Literal("model", "key", "day", "provider")
export type Grouping = typeof Grouping.Type

/**
 * One group's totals over the request log. `spend` is what customers were charged, `cost` what the providers charge
 * as far as the catalog knows, for tries that failed too; `margin` is over what has a known cost, null where nothing has.
 */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  /** Null: the requests that never came so far, such as those for an unknown model. */
  group: Schema.NullOr(Schema.String),
  /** What the group is called beside its id: a key's name. */
  label: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  promptTokens: Schema.NumberFromString,
  completionTokens: Schema.NumberFromString,
  cachedTokens: Schema.NumberFromString,
  reasoningTokens: Schema.NumberFromString,
  spend: NanoUsdFromRow,
  cost: NanoUsdFromRow,
  margin: Schema.NullOr(NanoUsdFromRow),
  /** Charged requests whose cost is not known. */
  uncosted: Schema.NumberFromString
}) {}

export interface UsageQuery {
  readonly by: Grouping
  readonly org?: OrgId | undefined
  /** From, and up to but not including; Unix milliseconds. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

const day = "to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
/** Customers may ask for any name, and each would be a group of its own. */
const model = "CASE WHEN r.model IS NULL OR r.model IN (SELECT model FROM known) THEN r.model ELSE 'unknown' END"
/** What a request counts to, and what a try of it that failed does. */
const groups = {
  model: { request: model, attempt: model },
  key: { request: "r.key_id", attempt: "r.key_id" },
  day: { request: day, attempt: day },
  provider: { request: "r.provider", attempt: "a.provider" }
} as const

const orders = { model: "spend DESC, 1", key: "spend DESC, 1", day: "1", provider: "spend DESC, 1" } as const

/** What was spent, by the request log. Charges are those of the ledger, also where they came after the answer. */
export class Usage extends Context.Tag("gateway/Usage")<
  Usage,
  { readonly report: (query: UsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>> }
>() {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const decode = Schema.decodeUnknown(Schema.Array(UsageRow))
      return Usage.of({
        report: Effect.fn("Usage.report")(
          ({ by, org, since, until }: UsageQuery) => {
            const conditions = [
              ...(org === undefined ? [] : [sql`r.org_id = ${org}`]),
              ...(since === undefined ? [] : [sql`r.at >= ${new Date(since)}`]),
              ...(until === undefined ? [] : [sql`r.at < ${new Date(until)}`])
            ]
            const where = conditions.length === 0 ? sql`true` : sql.and(conditions)
            const { attempt, request } = groups[by]
            return sql`
              WITH known AS MATERIALIZED (
                SELECT DISTINCT r.model FROM request_log r
                WHERE ${where} AND (r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL)
              )
              SELECT "group",
                ${sql.literal(by === "key" ? `(SELECT name FROM api_keys WHERE id = "group")` : "NULL::text")} AS label,
                sum(requests) AS requests,
                coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
                coalesce(sum(completion_tokens), 0) AS completion_tokens,
                coalesce(sum(cached_tokens), 0) AS cached_tokens,
                coalesce(sum(reasoning_tokens), 0) AS reasoning_tokens,
                sum(charge) AS spend,
                coalesce(sum(cost), 0) AS cost,
                sum(charge - cost) AS margin,
                count(*) FILTER (WHERE cost IS NULL AND charge > 0) AS uncosted
              FROM (
                SELECT ${sql.literal(request)} AS "group", 1 AS requests, prompt_tokens, completion_tokens, cached_tokens,
                  reasoning_tokens, coalesce(h.charged - coalesce(refund.amount, 0), r.charge) AS charge, coalesce(v.cost, r.cost) AS cost
                FROM request_log r
                LEFT JOIN holds h ON h.id = r.hold_id
                LEFT JOIN ledger_entries refund ON refund.ref = 'refund:' || h.id AND refund.kind = 'adjustment'
                LEFT JOIN videos v ON r.surface = 'video' AND v.hold_id = r.hold_id
                WHERE ${where}
                UNION ALL
                SELECT ${sql.literal(attempt)}, 0, NULL, NULL, NULL, NULL, 0, a.cost_nano
                FROM request_log r, jsonb_to_recordset(r.attempts) AS a (provider text, cost_nano bigint)
                WHERE ${where} AND jsonb_path_exists(r.attempts, '$[*].cost_nano') AND a.cost_nano IS NOT NULL
              ) parts
              GROUP BY 1 ORDER BY ${sql.literal(orders[by])}`.pipe(Effect.flatMap(decode))
          },
          Effect.orDie,
          Effect.uninterruptible
        )
      })
    })
  )
}

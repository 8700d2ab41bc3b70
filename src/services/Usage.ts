import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { NanoUsdFromRow } from "../domain/Money.ts"
import type { OrgId } from "../domain/Organization.ts"

export const Grouping = Schema.Literal("model", "key", "day", "provider")
export type Grouping = typeof Grouping.Type

/**
 * One group's totals over the request log. `spend` is what customers were charged, `cost` what the providers charge
 * as far as the catalog knows; `margin` is over the requests whose cost is known, null where there are none.
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

const groups = {
  model: "r.model",
  key: "r.key_id",
  day: "to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
  provider: "r.provider"
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
            return sql`
              SELECT ${sql.literal(groups[by])} AS "group",
                ${sql.literal(by === "key" ? "max(k.name)" : "NULL::text")} AS label,
                count(*) AS requests,
                coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
                coalesce(sum(completion_tokens), 0) AS completion_tokens,
                coalesce(sum(cached_tokens), 0) AS cached_tokens,
                coalesce(sum(reasoning_tokens), 0) AS reasoning_tokens,
                sum(coalesce(h.charged, r.charge)) AS spend,
                coalesce(sum(coalesce(v.cost, r.cost)), 0) AS cost,
                sum(coalesce(h.charged, r.charge) - coalesce(v.cost, r.cost)) AS margin,
                count(*) FILTER (WHERE coalesce(v.cost, r.cost) IS NULL AND coalesce(h.charged, r.charge) > 0) AS uncosted
              FROM request_log r
              LEFT JOIN holds h ON h.id = r.hold_id
              LEFT JOIN videos v ON r.surface = 'video' AND v.hold_id = r.hold_id
              LEFT JOIN api_keys k ON k.id = r.key_id
              WHERE ${conditions.length === 0 ? sql`true` : sql.and(conditions)}
              GROUP BY 1 ORDER BY ${sql.literal(orders[by])}`.pipe(Effect.flatMap(decode))
          },
          Effect.orDie,
          Effect.uninterruptible
        )
      })
    })
  )
}

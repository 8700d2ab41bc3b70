import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { GatewayBusy, RequestNotFound, UsageTooLarge } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { makeKeyedSemaphore } from "../sql/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { RequestRow } from "./RequestLog.ts"
import { RequestTokens } from "./RequestTokens.ts"
import { charge, groups } from "./Usage.ts"

export type CustomerGrouping = "day" | "model" | "key"

const UsageSum = Schema.Struct({
  /** Null: requests without a model, or for one that does not exist. */
  group: Schema.NullOr(Schema.String),
  /** A key's name. */
  label: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  promptTokens: Schema.NumberFromString,
  completionTokens: Schema.NumberFromString,
  cachedTokens: Schema.NumberFromString,
  cacheWriteTokens: Schema.NumberFromString,
  webSearches: Schema.NumberFromString,
  charge: NanoUsdFromRow
})
export type UsageSum = typeof UsageSum.Type

const CustomerRequest = Schema.Struct({
  requestId: Schema.String,
  at: Schema.DateFromSelf,
  status: Schema.Number,
  code: Schema.NullOr(Schema.String),
  surface: Schema.String,
  model: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  attempts: RequestRow.fields.attempts,
  ...RequestTokens,
  hold: Schema.NullOr(NanoUsdFromRow),
  charge: NanoUsdFromRow,
  firstByteMs: Schema.NullOr(Schema.Number),
  totalMs: Schema.Number
})
export type CustomerRequest = typeof CustomerRequest.Type

export interface CustomerUsageQuery {
  readonly org: OrgId
  readonly by: CustomerGrouping
  /** Unix milliseconds; `until` is exclusive. */
  readonly since: number
  readonly until: number
}

/** For all customers together, so that their questions leave the database to their requests. */
const queriesAtOnce = 2
const queryTimeout = "3000"
const longestWait = "5 seconds"

const order = { day: "1", model: "charge DESC, 1", key: "charge DESC, 1" } as const

/** What an organization may see of the request log: its own rows, without providers. */
export class CustomerUsage extends Context.Tag("gateway/CustomerUsage")<
  CustomerUsage,
  {
    readonly sum: (query: CustomerUsageQuery) => Effect.Effect<ReadonlyArray<UsageSum>, UsageTooLarge | GatewayBusy>
    /** The newest request with this id, which clients may repeat. */
    readonly find: (org: OrgId, requestId: string) => Effect.Effect<CustomerRequest, RequestNotFound | GatewayBusy>
  }
>() {
  static readonly layer = Layer.effect(
    CustomerUsage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inTurn = yield* makeKeyedSemaphore(queriesAtOnce)

      const limited = <A>(org: OrgId, statement: Effect.Effect<A, SqlError.SqlError>) =>
        sql`SELECT set_config('statement_timeout', ${queryTimeout}, true)`.pipe(
          Effect.zipRight(statement),
          sql.withTransaction,
          Effect.catchAll((error) => (isStatementTimeout(error) ? new UsageTooLarge() : Effect.die(error))),
          Effect.uninterruptible,
          inTurn(org),
          Effect.timeoutFail({ duration: longestWait, onTimeout: () => new GatewayBusy() })
        )

      return CustomerUsage.of({
        sum: Effect.fn("CustomerUsage.sum")(function* ({ by, org, since, until }: CustomerUsageQuery) {
          const { isKnown, request } = groups[by]
          const sums = yield* limited(
            org,
            sql`
              WITH named AS (
                SELECT ${sql.literal(request)} AS name, bool_or(${sql.literal(isKnown)}) AS is_known,
                  count(*) AS requests, sum(prompt_tokens) AS prompt_tokens,
                  sum(completion_tokens) AS completion_tokens, sum(cached_tokens) AS cached_tokens,
                  sum(cache_write_tokens) AS cache_write_tokens, sum(web_searches) AS web_searches,
                  sum(${sql.literal(charge)}) AS charge
                FROM request_log r
                WHERE r.org_id = ${org} AND r.at >= ${new Date(since)} AND r.at < ${new Date(until)} GROUP BY 1
              )
              SELECT CASE WHEN is_known THEN name END AS "group",
                ${sql.literal(by === "key" ? "min((SELECT k.name FROM api_keys k WHERE k.id = named.name))" : "NULL::text")} AS label,
                sum(requests) AS requests, coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
                coalesce(sum(completion_tokens), 0) AS completion_tokens,
                coalesce(sum(cached_tokens), 0) AS cached_tokens,
                coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
                coalesce(sum(web_searches), 0) AS web_searches, sum(charge) AS charge
              FROM named GROUP BY 1 ORDER BY ${sql.literal(order[by])}`
          )
          return yield* rowsOf(UsageSum)(Effect.succeed(sums))
        }),
        find: Effect.fn("CustomerUsage.find")(function* (org: OrgId, requestId: string) {
          const found = yield* limited(
            org,
            // Not by the organization's index, in whose order one might be found late.
            sql`
              WITH r AS MATERIALIZED (SELECT * FROM request_log WHERE request_id = ${requestId} AND org_id = ${org})
              SELECT r.*, (SELECT amount FROM holds WHERE id = r.hold_id) AS hold, ${sql.literal(charge)}::bigint AS charge
              FROM r ORDER BY at DESC, id DESC LIMIT 1`
          ).pipe(Effect.catchTag("UsageTooLarge", () => new GatewayBusy()))
          const [request] = yield* rowsOf(CustomerRequest)(Effect.succeed(found))
          return request ?? (yield* new RequestNotFound())
        })
      })
    })
  )
}

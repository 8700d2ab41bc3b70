import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Layer, Record, Schema, Struct } from "effect"
import { GatewayBusy, RequestNotFound } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { countFields } from "../requests/RequestColumns.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { RequestRow } from "./RequestLog.ts"
import { UsageRow } from "./Usage.ts"
import { report } from "./UsageSql.ts"

/** For all customers together, so that their questions leave the database to their requests. */
const queriesAtOnce = 2
const queryTimeout = "3000"
const longestWait = "5 seconds"

/** Runs customers' reports, a few at a time. */
export const makeCustomerReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const inTurn = yield* makeKeyedSemaphore(queriesAtOnce)
  return <A>(org: OrgId, statement: Effect.Effect<A, SqlError.SqlError>) =>
    sql`SELECT set_config('statement_timeout', ${queryTimeout}, true)`.pipe(
      Effect.zipRight(statement),
      sql.withTransaction,
      Effect.catchAll((error) => (isStatementTimeout(error) ? new GatewayBusy() : Effect.die(error))),
      Effect.uninterruptible,
      inTurn(org),
      Effect.timeoutFail({ duration: longestWait, onTimeout: () => new GatewayBusy() })
    )
})

export type CustomerGrouping = "day" | "model" | "key" | "tag"

const CustomerRequest = Schema.Struct({
  ...Struct.pick(
    RequestRow.fields,
    "requestId",
    "at",
    "status",
    "code",
    "error",
    "surface",
    "model",
    "stream",
    "endUser",
    "tag",
    "attempts"
  ),
  ...Struct.pick(RequestRow.fields, ...Record.values(countFields)),
  hold: Schema.NullOr(NanoUsdFromRow),
  ...Struct.pick(RequestRow.fields, "charge", "firstByteMs", "totalMs")
})
export type CustomerRequest = typeof CustomerRequest.Type

interface CustomerUsageQuery {
  readonly org: OrgId
  readonly by: CustomerGrouping
  /** Unix milliseconds; `until` is exclusive. */
  readonly since: number
  readonly until: number
}

/** What an organization may see of the request log: its own rows, without providers. */
export class CustomerUsage extends Context.Tag("gateway/CustomerUsage")<
  CustomerUsage,
  {
    readonly sum: (query: CustomerUsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>, GatewayBusy>
    /** The newest request with this id, which clients may repeat. */
    readonly find: (org: OrgId, requestId: string) => Effect.Effect<CustomerRequest, RequestNotFound | GatewayBusy>
  }
>() {
  static readonly layer = Layer.effect(
    CustomerUsage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const withLimits = yield* makeCustomerReads

      return CustomerUsage.of({
        sum: Effect.fn("CustomerUsage.sum")(function* (query: CustomerUsageQuery) {
          const sums = yield* withLimits(query.org, report(sql, query, null))
          return (yield* rowsOf(UsageRow)(Effect.succeed(sums))).filter(({ isTotal }) => !isTotal)
        }),
        find: Effect.fn("CustomerUsage.find")(function* (org: OrgId, requestId: string) {
          const found = yield* withLimits(
            org,
            // Not by the organization's index, in whose order one might be found late.
            sql`
              WITH r AS MATERIALIZED (SELECT * FROM request_log WHERE request_id = ${requestId} AND org_id = ${org})
              SELECT r.*, (SELECT amount FROM all_holds WHERE id = r.hold_id) AS hold FROM r ORDER BY at DESC, id DESC LIMIT 1`
          )
          const [request] = yield* rowsOf(CustomerRequest)(Effect.succeed(found))
          return request ?? (yield* new RequestNotFound())
        })
      })
    })
  )
}

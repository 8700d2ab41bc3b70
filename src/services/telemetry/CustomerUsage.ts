import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Layer, Record, Schema, Struct } from "effect"
import { GatewayBusy, RequestNotFound } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { countFields, selectIds } from "../requests/RequestColumns.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import { RequestRow } from "./RequestLog.ts"
import { report, UsageRow } from "./Usage.ts"

/** Limits the reports of all customers together, because they must leave database connections to requests. */
const maxQueries = 2
const queryTimeout = "3000"
const maxWait = "5 seconds"

/** Returns a function that runs a customer's report. Limits its duration and the number of concurrent reports. */
export const makeCustomerReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const withSlot = yield* makeKeyedSemaphore(maxQueries)
  return <A>(org: OrgId, statement: Effect.Effect<A, SqlError.SqlError>) =>
    sql`SELECT set_config('statement_timeout', ${queryTimeout}, true)`.pipe(
      Effect.zipRight(statement),
      sql.withTransaction,
      Effect.catchAll((error) => (isStatementTimeout(error) ? new GatewayBusy() : Effect.die(error))),
      Effect.uninterruptible,
      withSlot(org),
      Effect.timeoutFail({ duration: maxWait, onTimeout: () => new GatewayBusy() })
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

/** The request log for customers: only the organization's own rows, without provider details. */
export class CustomerUsage extends Context.Tag("gateway/CustomerUsage")<
  CustomerUsage,
  {
    readonly sum: (query: CustomerUsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>, GatewayBusy>
    /** Returns the newest request with this id, because clients may reuse ids. */
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
          const rows = yield* withLimits(
            org,
            // Selects the ids first. Otherwise PostgreSQL might search the organization's index row by row, which takes long.
            sql`
              WITH r AS MATERIALIZED (
                SELECT * FROM request_log WHERE id = ANY (ARRAY(${selectIds(sql, requestId)})) AND org_id = ${org}
              )
              SELECT r.*, (SELECT amount FROM all_holds WHERE id = r.hold_id) AS hold FROM r ORDER BY id DESC LIMIT 1`
          )
          const [request] = yield* rowsOf(CustomerRequest)(Effect.succeed(rows))
          return request ?? (yield* new RequestNotFound())
        })
      })
    })
  )
}

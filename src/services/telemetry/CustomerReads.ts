import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"

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

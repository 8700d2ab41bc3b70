import { SqlError } from "@effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg/PgClient"
import { Effect, Option } from "effect"

/**
 * Makes a transaction fail whose COMMIT or ROLLBACK fails, so that its caller can try again: @effect/sql makes a
 * defect of it. Needed by @effect/sql 0.52.
 */
export const failLostTransactions = (client: PgClient) => {
  const inTransaction = client.withTransaction
  return Object.assign(client, {
    withTransaction: <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
      Effect.catchSomeDefect(inTransaction(self), (defect) =>
        defect instanceof SqlError ? Option.some(Effect.fail(defect)) : Option.none()
      )
  })
}

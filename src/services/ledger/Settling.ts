import type { SqlClient, SqlError } from "@effect/sql"
import { Data, Effect, Metric, Schema, type Scope } from "effect"
import { min, type NanoUsd, zero } from "../../domain/Money.ts"
import * as DatabaseRetry from "../DatabaseRetry.ts"
import type { Settlement } from "../Ledger.ts"
import * as Metrics from "../Metrics.ts"
import { makeTurns } from "../Turns.ts"
import * as Statements from "./Statements.ts"

/** Another statement was closing the hold at this moment; asking again tells how it ended. */
export class HoldContended extends Data.TaggedError("HoldContended")<{}> {}

export const forTenSeconds = DatabaseRetry.often.pipe(DatabaseRetry.upTo(DatabaseRetry.settleTimeout))

/** Of the pool's connections, those that wait for each other's organizations must leave some to the rest. */
const transactionsAtOnce = 4

const decodeClosed = Schema.decodeUnknown(Schema.Tuple(Statements.Closed))

/** A charge for a hold: what the cost comes to, at most. */
export const closingOf = ({ amount, id, org }: Statements.Reservation, cost: NanoUsd | undefined) => ({
  id,
  org,
  cost: cost === undefined ? undefined : min(cost, amount)
})
export type Closing = ReturnType<typeof closingOf>

export const settlementOf = (hold: Statements.Reservation, cost: NanoUsd, closed: Statements.Closed): Settlement => {
  const lost = closed.state === "released"
  return { charged: closed.charged ?? zero, exceeded: !lost && cost > hold.amount, lost }
}

/** Counts a settlement; to be done once, after it is certain. */
export const counted = Effect.fnUntraced(function* ({ charged, exceeded, lost }: Settlement) {
  if (lost) yield* Metric.increment(Metrics.holdLost)
  if (exceeded) yield* Metric.increment(Metrics.holdExceeded)
  yield* Metric.incrementBy(Metrics.chargedNanoUsd, charged)
})

/** Closes one hold on the connection at hand. */
export const closeOne = (sql: SqlClient.SqlClient, closing: Statements.Closing) =>
  Statements.close(sql, [closing], "one").pipe(
    Effect.flatMap((rows) => Effect.orDie(decodeClosed(rows))),
    Effect.filterOrFail(
      ([{ state }]) => state !== "open",
      () => new HoldContended()
    ),
    Effect.map(([closed]) => closed)
  )

/**
 * Closes a hold in one transaction with a statement of the caller's, and tries for 10 s. Once it has given up, no
 * transaction that is still being tried commits, except one whose COMMIT has been sent: whoever closes the hold next
 * waits for that.
 */
export const makeAlongside = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, scope: Scope.Scope) {
  const inTurn = yield* makeTurns(transactionsAtOnce)
  return (closing: Closing, alongside: Effect.Effect<unknown, SqlError.SqlError>) =>
    Effect.suspend(() => {
      let isAbandoned = false
      let last: Effect.Effect.Error<typeof attempt> = new DatabaseRetry.NoAnswer()
      const unlessAbandoned = Effect.suspend(() => (isAbandoned ? new DatabaseRetry.NoAnswer() : Effect.void))
      const attempt = Effect.zipRight(alongside, closeOne(sql, closing)).pipe(
        Effect.zipLeft(unlessAbandoned),
        sql.withTransaction
      )
      return Effect.zipRight(unlessAbandoned, attempt).pipe(
        inTurn(closing.org),
        Effect.tapError((error) => Effect.sync(() => (last = error))),
        Effect.retry({ schedule: forTenSeconds, while: ({ _tag }) => _tag !== "NoAnswer" }),
        DatabaseRetry.within(scope, DatabaseRetry.settleTimeout),
        Effect.mapError(() => last),
        Effect.onError(() => Effect.sync(() => (isAbandoned = true)))
      )
    })
})

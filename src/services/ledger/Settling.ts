import type { SqlClient, SqlError } from "@effect/sql"
import { Data, Effect, type Scope } from "effect"
import { min, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { makeTurns } from "../runtime/Turns.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as DatabaseRetry from "./DatabaseRetry.ts"
import type { Hold, Settlement } from "./Hold.ts"
import * as SettleSql from "./SettleSql.ts"
import { runWith } from "./StatementParts.ts"

/** The hold was lost in a crash of the database, together with whatever happened in the same half second. */
export class HoldMissing extends Data.TaggedError("HoldMissing")<{}> {}

/** Another statement was closing the hold at this moment; asking again tells how it ended. */
export class HoldContended extends Data.TaggedError("HoldContended")<{}> {}

export const forTenSeconds = DatabaseRetry.often.pipe(DatabaseRetry.upTo(DatabaseRetry.settleTimeout))

/** Whether another try may fare better. */
const isPassing = (error: unknown) => !(error instanceof DatabaseRetry.NoAnswer)

/** Of the pool's connections, those that wait for each other's organizations must leave some to the rest. */
const transactionsAtOnce = 4

/** A charge for a hold: what the cost comes to, at most. */
export const closingOf = ({ amount, id, org }: Hold, cost: NanoUsd | undefined): Closing => ({
  id,
  org,
  cost: cost === undefined ? undefined : min(cost, amount),
  row: undefined
})
export interface Closing extends SettleSql.Closing {
  readonly org: OrgId
  /** The request's row in the log, as JSON, to be written with it. */
  readonly row: string | undefined
}

export const settlementOf = (hold: Hold, cost: NanoUsd, closed: SettleSql.Closed): Settlement => {
  const lost = closed.state === "released"
  return { charged: closed.charged ?? zero, exceeded: !lost && cost > hold.amount, lost }
}

/** Counts a settlement; to be done once, after it is certain. */
export const count = ({ charged, exceeded, lost }: Settlement): void => {
  if (lost) Metrics.holdLost.unsafeUpdate(1, [])
  if (exceeded) Metrics.holdExceeded.unsafeUpdate(1, [])
  Metrics.chargedNanoUsd.unsafeUpdate(charged, [])
}

/** What a statement left of a hold. */
export const ended = (
  closed: SettleSql.Closed | undefined
): Effect.Effect<SettleSql.Closed, HoldContended | HoldMissing> => {
  if (closed === undefined || closed.state === "missing") return new HoldMissing()
  return closed.state === "open" ? new HoldContended() : Effect.succeed(closed)
}

/** Closes one hold on the connection at hand. */
export const closeOne = (sql: SqlClient.SqlClient, closing: SettleSql.Closing) =>
  Effect.flatMap(runWith(sql, SettleSql.close([closing], "one")), ([closed]) => ended(closed))

/**
 * Closes a hold in one transaction with a statement of the caller's, and tries for 10 s. Once it has given up, no
 * transaction that is still being tried commits, except one whose COMMIT has been sent: whoever closes the hold next
 * waits for that.
 */
export const makeAlongside = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, scope: Scope.Scope) {
  const inTurn = yield* makeTurns(transactionsAtOnce)
  /** `restore` places the hold again where the database has lost it. */
  return <E>(
    closing: Closing,
    alongside: Effect.Effect<unknown, SqlError.SqlError>,
    restore: Effect.Effect<unknown, E>
  ) =>
    Effect.suspend(() => {
      let isAbandoned = false
      let last: Effect.Effect.Error<typeof attempt> | E = new DatabaseRetry.NoAnswer()
      const unlessAbandoned = Effect.suspend(() => (isAbandoned ? new DatabaseRetry.NoAnswer() : Effect.void))
      const attempt = Effect.zipRight(alongside, closeOne(sql, closing)).pipe(
        Effect.zipLeft(unlessAbandoned),
        sql.withTransaction
      )
      return Effect.zipRight(unlessAbandoned, attempt).pipe(
        inTurn(closing.org),
        Effect.tapErrorTag("HoldMissing", () => restore),
        Effect.tapError((error) => Effect.sync(() => (last = error))),
        Effect.retry({ schedule: forTenSeconds, while: isPassing }),
        DatabaseRetry.within(scope, DatabaseRetry.settleTimeout),
        Effect.mapError(() => last),
        Effect.onError(() => Effect.sync(() => (isAbandoned = true)))
      )
    })
})

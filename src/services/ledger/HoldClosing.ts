import { SqlClient, SqlError } from "@effect/sql"
import { type Array as Arr, Data, Effect, Metric } from "effect"
import type { Hold, Settlement } from "../../domain/Hold.ts"
import { min, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { minimalLogRow } from "../requests/RequestEntry.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { isRefusal, isTimeout, NoAnswer, retryLazily, withTimeLimit } from "../sql/Outage.ts"
import { Prepared, runWith } from "../sql/SqlStatement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import type { ClosedHold } from "./ClosingSql.ts"
import * as ClosingSql from "./ClosingSql.ts"

/** A database crash lost the hold before it reached the disk. */
export class HoldMissing extends Data.TaggedError("HoldMissing")<{}> {}

/** Another statement is closing the hold. A retry returns its outcome. */
export class HoldContended extends Data.TaggedError("HoldContended")<{}> {}

/** Limits the connections that wait for locks of organizations. */
const maxTransactions = 4

export interface SettleOptions {
  /** Runs in the transaction of the settlement, which may be repeated. */
  readonly effect?: Effect.Effect<unknown, SqlError.SqlError> | undefined
  /** The JSON of the request's log row, which is written in the same transaction. Undefined: a minimal row. */
  readonly logRow?: string | undefined
  /** Tokens that count against the rate limit. The hold's other tokens are returned to it. */
  readonly usedTokens?: number | undefined
}

interface Charge extends ClosingSql.Charge {
  /** The JSON of the request's log row. */
  readonly logRow?: string | undefined
  /** Returns the row to write if the database rejects `logRow`. */
  readonly minimalLogRow?: (() => string) | undefined
}

export const settlementOf = (hold: Hold, cost: NanoUsd, { charged, state }: ClosedHold): Settlement => {
  const wasReleased = state === "released"
  return { charged: charged ?? zero, isExceeded: !wasReleased && cost > hold.amount, wasReleased }
}

/** Updates the metrics. Call it once, after the commit. */
export const countSettlement = ({ charged, isExceeded: exceeded, wasReleased }: Settlement): void => {
  if (wasReleased) Metrics.holdLost.unsafeUpdate(1, [])
  if (exceeded) Metrics.holdExceeded.unsafeUpdate(1, [])
  Metrics.chargedNanoUsd.unsafeUpdate(charged, [])
}

const requireClosed = (closedHold: ClosedHold | undefined): Effect.Effect<ClosedHold, HoldContended | HoldMissing> => {
  if (closedHold === undefined || closedHold.state === "missing") return new HoldMissing()
  return closedHold.state === "open" ? new HoldContended() : Effect.succeed(closedHold)
}

/** Settles a hold in the caller's transaction. */
export const settleOne = (sql: SqlClient.SqlClient, charge: ClosingSql.Charge, logRow?: string) =>
  Effect.flatMap(
    runWith(sql, ClosingSql.settle([charge], logRow === undefined ? [] : [logRow], "one")),
    ([closedHold]) => requireClosed(closedHold)
  )

/** Releases a hold in the caller's transaction. Does nothing if the hold is closed. */
export const releaseOne = (sql: SqlClient.SqlClient, hold: string) =>
  Effect.flatMap(runWith(sql, ClosingSql.release([hold], "one")), ([closedHold]) => requireClosed(closedHold))

/** Repeats the attempt with a minimal log row if the database rejects the row, so the charge does not fail. */
const withRow = <A, E>(
  { logRow, minimalLogRow }: Charge,
  attempt: (logRow: string | undefined) => Effect.Effect<A, E | SqlError.SqlError>
) =>
  Effect.catchAll(attempt(logRow), (error) =>
    error instanceof SqlError.SqlError && isRefusal(error) && minimalLogRow !== undefined
      ? Effect.logError(`The database rejected a request log row; a minimal row replaces it: ${String(error)}`).pipe(
          Effect.zipRight(Metric.increment(Metrics.logDropped)),
          Effect.zipRight(attempt(minimalLogRow()))
        )
      : Effect.fail(error)
  )

const isUnaffordable = (error: { readonly _tag: string }) =>
  error._tag === "InsufficientCredits" || error._tag === "SpendLimitReached"

/** `restore` places a hold again after the database lost it. */
export const make = Effect.fnUntraced(function* <E extends { readonly _tag: string }>(
  lockGroups: StatementBatcher.LockGroups<{ readonly org: OrgId }>,
  restore: (hold: Hold) => Effect.Effect<void, E>
) {
  const sql = yield* SqlClient.SqlClient
  const prepared = yield* Prepared
  const { settleWithin } = yield* Timings
  const withinSettleTimeout = withTimeLimit(yield* Effect.scope, settleWithin)
  const schedule = backoffFor(settleWithin)
  const withPermitOf = yield* makeKeyedSemaphore(maxTransactions)

  const settleAll = (batch: Arr.NonEmptyReadonlyArray<Charge>) => {
    const settleWithRows = (rows: ReadonlyArray<string>) => prepared.run(ClosingSql.settle(batch, rows))
    const [first, ...others] = batch
    if (others.length > 0) return settleWithRows(batch.flatMap(({ logRow }) => logRow ?? []))
    return withRow(first, (logRow) => settleWithRows(logRow === undefined ? [] : [logRow]))
  }
  const batchOptions = { maxSize: 256, timeout: settleWithin, lockGroups }
  const submitCharge = yield* StatementBatcher.make({ ...batchOptions, name: "settle", run: settleAll })
  const submitRelease = yield* StatementBatcher.make({
    ...batchOptions,
    name: "release",
    run: (batch: Arr.NonEmptyReadonlyArray<Hold>) => prepared.run(ClosingSql.release(batch.map(({ id }) => id)))
  })

  const retryUntilClosed = <E2 extends { readonly _tag: string }>(
    hold: Hold,
    attempt: Effect.Effect<ClosedHold, E2 | HoldMissing>,
    isFinal: (error: unknown) => boolean
  ) =>
    retryLazily(
      Effect.catchTag(attempt, "HoldMissing", () => Effect.zipRight(restore(hold), attempt)),
      { schedule, while: (error) => !isFinal(error) && !isUnaffordable(error) }
    )

  /** Sends no COMMIT after the timeout, because the caller then refunds the hold. */
  const settleWithEffect = (hold: Hold, charge: Charge, effect: Effect.Effect<unknown, SqlError.SqlError>) =>
    Effect.suspend(() => {
      let isAbandoned = false
      const failIfAbandoned = Effect.suspend(() => (isAbandoned ? new NoAnswer() : Effect.void))
      const attempt = (logRow: string | undefined) =>
        Effect.zipRight(effect, settleOne(sql, charge, logRow)).pipe(
          Effect.zipLeft(failIfAbandoned),
          sql.withTransaction
        )
      const attemptOnce = withPermitOf(charge.org)(Effect.zipRight(failIfAbandoned, withRow(charge, attempt)))
      return retryUntilClosed(hold, attemptOnce, (error) => error instanceof NoAnswer).pipe(
        withinSettleTimeout,
        Effect.onError(() => Effect.sync(() => (isAbandoned = true)))
      )
    })

  return {
    release: (hold: Hold) => Effect.flatMap(submitRelease(hold), requireClosed),
    settle: (hold: Hold, cost: NanoUsd, { effect, logRow }: SettleOptions) =>
      Effect.suspend(() => {
        const makeMinimalLogRow = () => minimalLogRow(hold, logRow)
        const charge = {
          id: hold.id,
          org: hold.org,
          cost: min(cost, hold.amount),
          logRow: logRow ?? makeMinimalLogRow(),
          minimalLogRow: makeMinimalLogRow
        }
        return effect === undefined
          ? retryUntilClosed(hold, Effect.flatMap(submitCharge(charge), requireClosed), isTimeout)
          : settleWithEffect(hold, charge, effect)
      })
  }
})

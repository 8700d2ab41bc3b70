import { SqlClient, SqlError } from "@effect/sql"
import { type Array as Arr, Data, Effect, Metric, Schedule } from "effect"
import type { Hold, Settlement } from "../../domain/Hold.ts"
import { min, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { bareRow } from "../requests/RequestEntry.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { retryRarely, withTimeLimit } from "../sql/DatabaseRetry.ts"
import { isRefusal, isTimeUp, logFailure, NoAnswer } from "../sql/Outage.ts"
import { Prepared, runWith } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import type { Closed } from "./ClosingSql.ts"
import * as ClosingSql from "./ClosingSql.ts"

/** Whether an organization has endpoints, at most about a second ago; true of all until it is known. */
const watchEndpoints = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { readEndpointsEvery } = yield* Timings
  let known: ReadonlySet<string> | undefined
  const look = sql<{ readonly orgId: string }>`
    SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`.pipe(
    Effect.map((rows) => {
      known = new Set(rows.map(({ orgId }) => orgId))
    }),
    Effect.uninterruptible,
    Effect.catchAllCause((cause) => logFailure("Webhook endpoints could not be read", cause))
  )
  yield* look.pipe(Effect.repeat(Schedule.spaced(readEndpointsEvery)), Effect.forkScoped)
  return (org: string): boolean => known?.has(org) ?? true
})

/** A crash of the database lost the hold, which had not reached the disk. */
export class HoldMissing extends Data.TaggedError("HoldMissing")<{}> {}

/** Another statement is closing the hold; a retry finds the outcome. */
export class HoldContended extends Data.TaggedError("HoldContended")<{}> {}

/** Transactions that may wait for an organization's lock leave the other connections free. */
const transactionsAtOnce = 4

export interface SettleOptions {
  /** Must be safe to repeat. */
  readonly effect?: Effect.Effect<unknown, SqlError.SqlError> | undefined
  readonly row?: string | undefined
  /** Of the tokens that the hold took; the others are given back. */
  readonly usedTokens?: number | undefined
}

interface Charge extends ClosingSql.Charge {
  readonly row?: string | undefined
  /** Written in place of a row that the database refuses. */
  readonly bareRow?: (() => string) | undefined
}

export const settlementOf = (hold: Hold, cost: NanoUsd, { charged, state }: Closed): Settlement => {
  const wasReleased = state === "released"
  return { charged: charged ?? zero, exceeded: !wasReleased && cost > hold.amount, wasReleased }
}

/** Call once, after the commit. */
export const countSettlement = ({ charged, exceeded, wasReleased }: Settlement): void => {
  if (wasReleased) Metrics.holdLost.unsafeUpdate(1, [])
  if (exceeded) Metrics.holdExceeded.unsafeUpdate(1, [])
  Metrics.chargedNanoUsd.unsafeUpdate(charged, [])
}

const requireClosed = (closed: Closed | undefined): Effect.Effect<Closed, HoldContended | HoldMissing> => {
  if (closed === undefined || closed.state === "missing") return new HoldMissing()
  return closed.state === "open" ? new HoldContended() : Effect.succeed(closed)
}

/** For the caller's transaction. */
export const settleOne = (sql: SqlClient.SqlClient, charge: ClosingSql.Charge, kind: "one" | "job", row?: string) =>
  Effect.flatMap(runWith(sql, ClosingSql.settle([charge], kind, row === undefined ? [] : [row])), ([closed]) =>
    requireClosed(closed)
  )

/** For the caller's transaction; does nothing to a hold that is closed. */
export const releaseOne = (sql: SqlClient.SqlClient, hold: string) =>
  Effect.flatMap(runWith(sql, ClosingSql.release([hold], "one")), ([closed]) => requireClosed(closed))

/** A row that the database refuses must not prevent the charge. */
const withRow = <A, E>(
  { bareRow, row }: Charge,
  attempt: (row: string | undefined) => Effect.Effect<A, E | SqlError.SqlError>
) =>
  Effect.catchAll(attempt(row), (error) =>
    error instanceof SqlError.SqlError && isRefusal(error) && bareRow !== undefined
      ? Effect.logError(`The database refused a row of the request log; a bare one replaces it: ${String(error)}`).pipe(
          Effect.zipRight(Metric.increment(Metrics.logDropped)),
          Effect.zipRight(attempt(bareRow()))
        )
      : Effect.fail(error)
  )

const isUnaffordable = (error: { readonly _tag: string }) =>
  error._tag === "InsufficientCredits" || error._tag === "SpendLimitReached"

/** `restore` places a hold again that the database has lost. */
export const make = Effect.fnUntraced(function* <E extends { readonly _tag: string }>(
  lanes: StatementBatcher.Lanes<{ readonly org: OrgId }>,
  restore: (hold: Hold) => Effect.Effect<void, E>
) {
  const clock = yield* Effect.clock
  const sql = yield* SqlClient.SqlClient
  const prepared = yield* Prepared
  const { settleWithin } = yield* Timings
  const withinSettleTimeout = withTimeLimit(yield* Effect.scope, settleWithin)
  const schedule = backoffFor(settleWithin)
  const withPermitOf = yield* makeKeyedSemaphore(transactionsAtOnce)
  const hasEndpoints = yield* watchEndpoints

  const settleAll = (batch: Arr.NonEmptyReadonlyArray<Charge>) => {
    const kind = batch.some(({ org }) => hasEndpoints(org)) ? "manyNotified" : "many"
    const settleWith = (rows: ReadonlyArray<string>) => prepared.run(ClosingSql.settle(batch, kind, rows))
    const [first, ...others] = batch
    if (others.length > 0) return settleWith(batch.flatMap(({ row }) => row ?? []))
    return withRow(first, (row) => settleWith(row === undefined ? [] : [row]))
  }
  const options = { maxSize: 256, timeout: settleWithin, lanes }
  const submitCharge = yield* StatementBatcher.make({ ...options, name: "settle", run: settleAll })
  const submitRelease = yield* StatementBatcher.make({
    ...options,
    name: "release",
    run: (batch: Arr.NonEmptyReadonlyArray<Hold>) => prepared.run(ClosingSql.release(batch.map(({ id }) => id)))
  })

  const retryUntilClosed = <E2 extends { readonly _tag: string }>(
    hold: Hold,
    attempt: Effect.Effect<Closed, E2 | HoldMissing>,
    isOver: (error: unknown) => boolean
  ) =>
    retryRarely(
      Effect.catchTag(attempt, "HoldMissing", () => Effect.zipRight(restore(hold), attempt)),
      { schedule, while: (error) => !isOver(error) && !isUnaffordable(error) }
    )

  /** After its timeout no transaction commits, except one whose COMMIT has been sent. */
  const settleAlongside = (hold: Hold, charge: Charge, alongside: Effect.Effect<unknown, SqlError.SqlError>) =>
    Effect.suspend(() => {
      let isAbandoned = false
      const unlessAbandoned = Effect.suspend(() => (isAbandoned ? new NoAnswer() : Effect.void))
      const attempt = (row: string | undefined) =>
        Effect.zipRight(alongside, settleOne(sql, charge, "one", row)).pipe(
          Effect.zipLeft(unlessAbandoned),
          sql.withTransaction
        )
      const once = withPermitOf(charge.org)(Effect.zipRight(unlessAbandoned, withRow(charge, attempt)))
      return retryUntilClosed(hold, once, (error) => error instanceof NoAnswer).pipe(
        withinSettleTimeout,
        Effect.onError(() => Effect.sync(() => (isAbandoned = true)))
      )
    })

  return {
    release: (hold: Hold) => Effect.flatMap(submitRelease(hold), requireClosed),
    settle: (hold: Hold, cost: NanoUsd, { effect, row }: SettleOptions) =>
      Effect.suspend(() => {
        const bare = () => bareRow(hold, clock.unsafeCurrentTimeMillis(), row)
        const charge = { id: hold.id, org: hold.org, cost: min(cost, hold.amount), row: row ?? bare(), bareRow: bare }
        return effect === undefined
          ? retryUntilClosed(hold, Effect.flatMap(submitCharge(charge), requireClosed), isTimeUp)
          : settleAlongside(hold, charge, effect)
      })
  }
})

import { SqlClient, type SqlError } from "@effect/sql"
import { type Array as Arr, Data, Effect, Metric } from "effect"
import { min, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { retryRarely, settleTimeout, untilSettled, within } from "../sql/DatabaseRetry.ts"
import { makeKeyedSemaphore } from "../sql/KeyedSemaphore.ts"
import { isRefusal, isTimeUp, NoAnswer } from "../sql/Outage.ts"
import { Prepared, runWith } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { watchEndpoints } from "../webhooks/EndpointWatch.ts"
import type { Hold, Settlement } from "./Hold.ts"
import * as SettleSql from "./SettleSql.ts"

/** A crash of the database lost the hold, with the rest of the last half second. */
export class HoldMissing extends Data.TaggedError("HoldMissing")<{}> {}

/** Another statement is closing the hold; a retry tells how it ended. */
export class HoldContended extends Data.TaggedError("HoldContended")<{}> {}

/** Transactions that may wait for an organization's lock leave the other connections free. */
const transactionsAtOnce = 4

export interface Alongside {
  /** Must be safe to repeat. */
  readonly effect?: Effect.Effect<unknown, SqlError.SqlError>
  readonly row?: string | undefined
}

interface Closing extends SettleSql.Closing {
  readonly org: OrgId
  readonly row?: string | undefined
}

export const settlementOf = (hold: Hold, cost: NanoUsd, { charged, state }: SettleSql.Closed): Settlement => {
  const lost = state === "released"
  return { charged: charged ?? zero, exceeded: !lost && cost > hold.amount, lost }
}

/** Call once, after the commit. */
export const countSettlement = ({ charged, exceeded, lost }: Settlement): void => {
  if (lost) Metrics.holdLost.unsafeUpdate(1, [])
  if (exceeded) Metrics.holdExceeded.unsafeUpdate(1, [])
  Metrics.chargedNanoUsd.unsafeUpdate(charged, [])
}

const requireClosed = (
  closed: SettleSql.Closed | undefined
): Effect.Effect<SettleSql.Closed, HoldContended | HoldMissing> => {
  if (closed === undefined || closed.state === "missing") return new HoldMissing()
  return closed.state === "open" ? new HoldContended() : Effect.succeed(closed)
}

/** Charges up to the hold, or releases without a cost. */
export const closeOne = (sql: SqlClient.SqlClient, closing: SettleSql.Closing) =>
  Effect.flatMap(runWith(sql, SettleSql.close([closing], "one")), ([closed]) => requireClosed(closed))

const isAffordable = (error: { readonly _tag: string }) =>
  error._tag !== "InsufficientCredits" && error._tag !== "SpendLimitReached"

/** `restore` places a hold again that the database has lost. */
export const make = Effect.fnUntraced(function* <E extends { readonly _tag: string }>(
  lanes: StatementBatcher.Lanes<Closing>,
  restore: (hold: Hold) => Effect.Effect<void, E>
) {
  const sql = yield* SqlClient.SqlClient
  const prepared = yield* Prepared
  const inTime = within(yield* Effect.scope, settleTimeout)
  const inTurn = yield* makeKeyedSemaphore(transactionsAtOnce)
  const hasEndpoints = yield* watchEndpoints

  const closeAll = (batch: Arr.NonEmptyReadonlyArray<Closing>) => {
    const rows = batch.flatMap(({ row }) => row ?? [])
    const notifies = batch.some(({ org }) => hasEndpoints(org))
    const all = prepared.run(SettleSql.close(batch, "many", rows, notifies))
    if (batch.length > 1 || rows.length === 0) return all
    // A row that the database refuses must not prevent the charge.
    return Effect.catchIf(all, isRefusal, (error) =>
      Effect.logError(`A row of the request log is lost: ${String(error)}`).pipe(
        Effect.zipRight(Metric.increment(Metrics.logDropped)),
        Effect.zipRight(prepared.run(SettleSql.close(batch, "many", [], notifies)))
      )
    )
  }
  const submit = yield* StatementBatcher.make({
    name: "settle",
    maxSize: 256,
    timeout: settleTimeout,
    lanes,
    run: closeAll
  })
  const close = (closing: Closing) => Effect.flatMap(submit(closing), requireClosed)

  const untilClosed = <E2 extends { readonly _tag: string }>(
    hold: Hold,
    attempt: Effect.Effect<SettleSql.Closed, E2 | HoldMissing>,
    isOver: (error: unknown) => boolean
  ) =>
    retryRarely(
      Effect.catchTag(attempt, "HoldMissing", () => Effect.zipRight(restore(hold), attempt)),
      { schedule: untilSettled, while: (error) => !isOver(error) && isAffordable(error) }
    )

  /** After its timeout no transaction commits, except one whose COMMIT has been sent. */
  const closeAlongside = (hold: Hold, closing: Closing, alongside: Effect.Effect<unknown, SqlError.SqlError>) =>
    Effect.suspend(() => {
      let isAbandoned = false
      const unlessAbandoned = Effect.suspend(() => (isAbandoned ? new NoAnswer() : Effect.void))
      const attempt = Effect.zipRight(alongside, closeOne(sql, closing)).pipe(
        Effect.zipLeft(unlessAbandoned),
        sql.withTransaction
      )
      const once = inTurn(closing.org)(Effect.zipRight(unlessAbandoned, attempt))
      return untilClosed(hold, once, (error) => error instanceof NoAnswer).pipe(
        inTime,
        Effect.onError(() => Effect.sync(() => (isAbandoned = true)))
      )
    })

  return {
    release: ({ id, org }: Hold) => close({ id, org, cost: undefined }),
    settle: (hold: Hold, cost: NanoUsd, { effect, row }: Alongside) => {
      const closing = { id: hold.id, org: hold.org, cost: min(cost, hold.amount), row }
      return effect === undefined ? untilClosed(hold, close(closing), isTimeUp) : closeAlongside(hold, closing, effect)
    }
  }
})

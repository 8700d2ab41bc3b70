import { type Array as Arr, Cause, Effect, Option } from "effect"
import { InsufficientCredits, RateLimited, SpendLimitReached } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import { allowanceAt, type RateUnit } from "../access/RateLimiter.ts"
import { Instance } from "../instance/Instance.ts"
import { brief, retryRarely, stepTimeout } from "../sql/DatabaseRetry.ts"
import { HeartbeatLost, isLockTimeout, isTimeUp, NotAsked } from "../sql/Outage.ts"
import { Prepared } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import * as HoldSql from "./HoldSql.ts"
import { Refunds } from "./Refunds.ts"
import { type FindSpend, makeSpendLookup } from "./SpentCap.ts"

/** A larger hold before it in its batch can keep a hold from fitting. */
const maxRounds = 20

export type HoldRefused = InsufficientCredits | SpendLimitReached

export const refuse = (
  { amount, key }: Hold,
  { period, remaining, verdict }: HoldSql.HoldResult,
  findSpend: FindSpend
): Effect.Effect<never, HoldRefused | RateLimited> => {
  if (verdict === "limited") return new RateLimited()
  if (verdict === "fenced") return Effect.die(new HeartbeatLost())
  return verdict === "capped" && period !== null
    ? Effect.flatMap(findSpend(key), (spend) => new SpendLimitReached({ period, spend }))
    : new InsufficientCredits({ needed: amount, available: remaining })
}

const mayHaveRun = (cause: Cause.Cause<unknown>) =>
  !Option.exists(Cause.failureOption(cause), (error) => error instanceof NotAsked || isLockTimeout(error))

export const make = Effect.fnUntraced(function* (lanes: StatementBatcher.Lanes<Hold>) {
  const instance = yield* Instance
  const prepared = yield* Prepared
  const refunds = yield* Refunds
  const findSpend = yield* makeSpendLookup
  /** True: a statement that failed may have placed the hold all the same. */
  const placing = new Map<string, boolean>()

  const noteFailure = (hold: string, cause: Cause.Cause<unknown>): void => {
    if (placing.has(hold) && mayHaveRun(cause)) placing.set(hold, true)
  }

  /** No statement with it can have run. */
  const isNew = ({ id }: Hold): boolean => placing.get(id) === false

  const submitOnce = yield* StatementBatcher.make({
    name: "hold",
    maxSize: 256,
    timeout: stepTimeout,
    lanes,
    run: (batch: Arr.NonEmptyReadonlyArray<HoldSql.RatedHold>) =>
      Effect.flatMap(instance.id, (id) => prepared.run(HoldSql.place(id, batch, batch.every(isNew)))).pipe(
        Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach(({ id }) => noteFailure(id, cause))))
      )
  })

  /** Without its rate unit, which the first round took. */
  const submit = (
    hold: HoldSql.RatedHold,
    rounds = maxRounds
  ): Effect.Effect<HoldSql.HoldResult, Effect.Effect.Error<ReturnType<typeof submitOnce>>> =>
    Effect.flatMap(retryRarely(submitOnce(hold), { schedule: brief, while: (error) => !isTimeUp(error) }), (result) => {
      const { ordinal, remaining, verdict } = result
      const mayFit = verdict === "insufficient" && remaining > 0n && hold.amount <= remaining
      if (!mayFit || hold.isShared === true || rounds === 0) return Effect.succeed(result)
      return Effect.map(submit({ ...hold, rateLimit: undefined }, rounds - 1), (again) => ({ ...again, ordinal }))
    })

  const place = (hold: Hold, rate: RateUnit | undefined, isShared = false) =>
    Effect.suspend(() => {
      placing.set(hold.id, false)
      const submitted = Effect.catchAllCause(submit({ ...hold, rateLimit: rate?.limit, isShared }), (cause) => {
        noteFailure(hold.id, cause)
        return Effect.orDie(Effect.failCause(cause))
      })
      return Effect.flatMap(submitted, (placed): Effect.Effect<Hold, HoldRefused | RateLimited> => {
        if (rate !== undefined && placed.ordinal !== undefined) rate.allowance = allowanceAt(placed.ordinal, rate.limit)
        if (placed.verdict !== "held") return refuse(hold, placed, findSpend)
        placing.delete(hold.id)
        return Effect.succeed(hold)
      })
    }).pipe(
      Effect.catchAllCause((cause) => {
        const mayBePlaced = placing.get(hold.id) === true
        placing.delete(hold.id)
        return Effect.zipRight(mayBePlaced ? refunds.release(hold) : Effect.void, Effect.failCause(cause))
      })
    )

  const restore = (hold: Hold) =>
    Effect.flatMap(
      submitOnce({ ...hold, rateLimit: undefined }),
      (placed): Effect.Effect<void, HoldRefused | RateLimited> =>
        placed.verdict === "held" ? Effect.void : refuse(hold, placed, findSpend)
    )

  return { place, restore }
})

import { type Array as Arr, Cause, Effect, Option } from "effect"
import { InsufficientCredits, RateLimited, SpendLimitReached } from "../../domain/Failure.ts"
import { allowanceAt, type RateUnit } from "../access/RateLimiter.ts"
import { Instance } from "../runtime/Instance.ts"
import * as NaturalBatch from "../runtime/NaturalBatch.ts"
import * as Batches from "./Batches.ts"
import { brief, NotAsked, retryRarely, stepTimeout } from "./DatabaseRetry.ts"
import type { Hold } from "./Hold.ts"
import * as HoldSql from "./HoldSql.ts"
import { HeartbeatLost, isLockTimeout } from "./Outage.ts"
import { Prepared } from "./Prepared.ts"
import { voidOf } from "./VoidJournal.ts"
import { Voids } from "./Voids.ts"

/** In a batch a large amount also bars the smaller ones queued behind it, which may still fit. */
const mostRounds = 20

export type HoldRefused = InsufficientCredits | SpendLimitReached

/** Whether a reservation failed without any chance that it was placed. */
const isUndone = (cause: Cause.Cause<unknown>) =>
  Option.exists(Cause.failureOption(cause), (error) => error instanceof NotAsked || isLockTimeout(error))

/** Places holds in batches: `place` with a unit of the rate window, `restore` again where the database has lost one. */
export const makePlacement = Effect.fnUntraced(function* (lanes: ReturnType<typeof Batches.byOrganization>) {
  const instance = yield* Instance
  const prepared = yield* Prepared
  const voids = yield* Voids
  // Reservations being made, and whether a statement for them failed: it may have come through all the same.
  const doubtful = new Map<string, boolean>()

  const doubt = (hold: string, cause: Cause.Cause<unknown>): void => {
    if (doubtful.has(hold) && !isUndone(cause)) doubtful.set(hold, true)
  }

  const reserveAll = (batch: Arr.NonEmptyReadonlyArray<HoldSql.RatedHold>) =>
    Effect.flatMap(instance.id, (id) => prepared.run(HoldSql.reserve(id, batch))).pipe(
      Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach(({ id: hold }) => doubt(hold, cause))))
    )
  const submitReservation = yield* NaturalBatch.make({
    ...Batches.options(stepTimeout, lanes),
    run: reserveAll
  })

  const refused = ({ period, verdict }: HoldSql.HoldResult): Effect.Effect<never, HoldRefused | RateLimited> => {
    if (verdict === "limited") return new RateLimited()
    if (verdict === "fenced") return Effect.die(new HeartbeatLost())
    return verdict === "capped" && period !== null ? new SpendLimitReached({ period }) : new InsufficientCredits()
  }

  /** Submits it again, without its rate unit, while only what was queued before it has kept it from fitting. */
  const submit = (
    reservation: HoldSql.RatedHold,
    rounds = mostRounds
  ): Effect.Effect<HoldSql.HoldResult, Effect.Effect.Error<ReturnType<typeof submitReservation>>> =>
    Effect.flatMap(
      retryRarely(submitReservation(reservation), { schedule: brief, while: Batches.inTime }),
      (result) => {
        const isBarred =
          result.verdict === "insufficient" && result.remaining > 0n && reservation.amount <= result.remaining
        if (!isBarred || rounds === 0) return Effect.succeed(result)
        return Effect.map(submit({ ...reservation, rateLimit: undefined }, rounds - 1), (again) => ({
          ...again,
          place: result.place
        }))
      }
    )

  const submitted = (reservation: HoldSql.RatedHold) =>
    Effect.catchAllCause(submit(reservation), (cause) => {
      doubt(reservation.id, cause)
      return Effect.orDie(Effect.failCause(cause))
    })

  const place = (hold: Hold, rate: RateUnit | undefined) =>
    Effect.suspend(() => {
      doubtful.set(hold.id, false)
      return Effect.flatMap(
        submitted({ ...hold, rateLimit: rate?.limit }),
        (placed): Effect.Effect<Hold, HoldRefused | RateLimited> => {
          if (rate !== undefined && placed.place !== undefined) rate.allowance = allowanceAt(placed.place, rate.limit)
          if (placed.verdict !== "held") return refused(placed)
          doubtful.delete(hold.id)
          return Effect.succeed(hold)
        }
      )
    }).pipe(
      Effect.catchAllCause((cause) => {
        const isHeldPerhaps = doubtful.get(hold.id) === true
        doubtful.delete(hold.id)
        return Effect.zipRight(isHeldPerhaps ? voids.release(voidOf(hold)) : Effect.void, Effect.failCause(cause))
      })
    )

  /** Places a hold again that the database has lost. */
  const restore = (hold: Hold) =>
    Effect.flatMap(
      submitReservation({ ...hold, rateLimit: undefined }),
      (placed): Effect.Effect<void, HoldRefused | RateLimited> =>
        placed.verdict === "held" ? Effect.void : refused(placed)
    )

  return { place, restore }
})

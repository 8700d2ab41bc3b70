import { Cause, Chunk, Effect, Option } from "effect"
import { RateLimited } from "../../domain/Failure.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { NoAnswer } from "../../services/sql/Outage.ts"

/** The unit of its key's rate that a generating request takes, whatever becomes of it. */
export const makeRateUnits = Effect.map(RateLimiter, (limiter) => {
  const take = ({ caller, rate }: RequestRecord): Effect.Effect<void, RateLimited> =>
    Effect.flatMap(limiter.take(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
      return allowance.admitted ? Effect.void : new RateLimited()
    })

  /** For the answer's headers. */
  const show = ({ caller, rate }: RequestRecord): Effect.Effect<void> =>
    Effect.map(limiter.peek(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
    })

  /** Where a request fails before its hold has taken the unit. */
  const takeLate = <E>(record: RequestRecord, cause: Cause.Cause<E>): Effect.Effect<never, E | RateLimited> => {
    const failed = Effect.failCause(cause)
    if (record.rate.allowance !== undefined || Cause.isInterruptedOnly(cause)) return failed
    if (Option.isSome(Cause.failureOption(cause))) return Effect.zipRight(take(record), failed)
    // It may have been taken all the same, or the database is away: a client must not wait again.
    if (Chunk.some(Cause.defects(cause), (defect) => defect instanceof NoAnswer)) return failed
    return take(record).pipe(
      Effect.interruptible,
      Effect.timeoutOption("500 millis"),
      Effect.catchAllDefect(() => Effect.void),
      Effect.zipRight(failed)
    )
  }

  return { take, show, takeLate }
})

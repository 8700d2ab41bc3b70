import { Cause, Chunk, Effect, Option } from "effect"
import { RateLimited } from "../../domain/Failure.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import { TokenLimiter } from "../../services/access/TokenLimiter.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { flatMapEager } from "../../services/runtime/Fibers.ts"
import { NoAnswer } from "../../services/sql/Outage.ts"

/** The unit of its key's rate that a generating request takes, whatever becomes of it. */
export const makeRateUnits = Effect.gen(function* () {
  const limiter = yield* RateLimiter
  const tokenLimiter = yield* TokenLimiter

  /** What its key has left of its tokens; a hold says more. */
  const showTokens = ({ caller, tokens }: RequestRecord): Effect.Effect<void> =>
    tokens === undefined
      ? Effect.void
      : Effect.map(tokenLimiter.peek(caller.key, tokens.limit), (allowance) => {
          tokens.allowance ??= allowance
        })

  const take = (record: RequestRecord): Effect.Effect<void, RateLimited> => {
    const { caller, rate } = record
    return Effect.flatMap(limiter.take(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
      return flatMapEager(showTokens(record), () =>
        allowance.admitted ? Effect.void : new RateLimited({ limit: rate.limit })
      )
    })
  }

  /** For the answer's headers. */
  const show = (record: RequestRecord): Effect.Effect<void> => {
    const { caller, rate } = record
    return Effect.flatMap(limiter.peek(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
      return showTokens(record)
    })
  }

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

import type { IncomingMessage } from "node:http"
import { Cause, Chunk, Effect, Option } from "effect"
import { RateLimited } from "../../domain/Failure.ts"
import { RateLimiter, TokenWindows } from "../../services/access/RateLimiter.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { NoAnswer } from "../../services/sql/Outage.ts"
import { smallBodyBytes } from "../body/BodyReceiver.ts"
import type { Admission } from "./Admission.ts"

/** How long a request that failed by a defect waits for the database to take its rate unit. */
const failureTimeout = "500 millis"

const hasArrivedWithHead = ({ complete, readableLength }: IncomingMessage): boolean =>
  complete && readableLength <= smallBodyBytes

/**
 * Returns whether a generating request takes its unit of the key's rate limit at this moment. Every request takes one unit.
 *
 * | moment | requests |
 * | --- | --- |
 * | `arrival` | all except chat requests of at most 64 KiB that arrive with their head; these too without the key's scope |
 * | `hold` | small chat requests: `Ledger.withHold` places the hold and takes the unit in one statement |
 * | `failure` | small chat requests that fail before the hold, unless the unit may be taken already or the process ends |
 */
const takesUnit = (
  moment: "arrival" | "failure",
  { endpoint, record, request }: Admission,
  cause: Cause.Cause<unknown> | undefined
): boolean => {
  if (moment === "arrival") return cause !== undefined || !endpoint.admitsWithHold || !hasArrivedWithHead(request)
  return (
    record.summary.rate === undefined &&
    cause !== undefined &&
    !Cause.isInterruptedOnly(cause) &&
    !Chunk.some(Cause.defects(cause), (defect) => defect instanceof NoAnswer)
  )
}

export const makeRateUnits = Effect.gen(function* () {
  const limiter = yield* RateLimiter
  const tokenWindows = yield* TokenWindows

  /** Records the key's remaining tokens, unless they were already recorded with the hold. */
  const recordTokens = Effect.fnUntraced(function* (record: RequestRecord) {
    const { key, tpm } = record.facts.caller
    if (tpm === undefined || record.summary.tokens !== undefined) return
    record.add({ type: "allowed", tokens: yield* tokenWindows.peek(key, tpm) })
  })

  /** Records the limits for the response headers without taking a unit. */
  const recordLimits = Effect.fnUntraced(function* ({ record }: Admission) {
    const { caller, rateLimit } = record.facts
    record.add({ type: "allowed", rate: yield* limiter.peek(caller.key, rateLimit) })
    yield* recordTokens(record)
  })

  const take = Effect.fnUntraced(function* ({ record }: Admission) {
    const { caller, rateLimit } = record.facts
    const rate = yield* limiter.take(caller.key, rateLimit)
    record.add({ type: "allowed", rate })
    yield* recordTokens(record)
    if (!rate.isAdmitted) return yield* new RateLimited({ limit: rateLimit })
  })

  /** Takes a unit if the request takes it at arrival, then fails with `refusal` if there is one. */
  const takeAtArrival = <E>(admission: Admission, refusal: E | undefined): Effect.Effect<void, E | RateLimited> => {
    const cause = refusal === undefined ? undefined : Cause.fail(refusal)
    const takeUnit = takesUnit("arrival", admission, cause) ? take(admission) : Effect.void
    return cause === undefined ? takeUnit : Effect.zipRight(takeUnit, Effect.failCause(cause))
  }

  /**
   * Takes a unit if the request takes it at failure, then fails with `cause`. After a defect, taking the unit has a timeout,
   * because the database may be the cause.
   */
  const takeAtFailure = <E>(admission: Admission, cause: Cause.Cause<E>): Effect.Effect<never, E | RateLimited> => {
    const fail = Effect.failCause(cause)
    if (!takesUnit("failure", admission, cause)) return fail
    const takeUnit = take(admission)
    return Option.isSome(Cause.failureOption(cause))
      ? Effect.zipRight(takeUnit, fail)
      : takeUnit.pipe(
          Effect.interruptible,
          Effect.timeoutOption(failureTimeout),
          Effect.catchAllDefect(() => Effect.void),
          Effect.zipRight(fail)
        )
  }

  return { recordLimits, takeAtArrival, takeAtFailure }
})

import type { IncomingMessage } from "node:http"
import { Cause, Chunk, Effect, Option } from "effect"
import { RateLimited } from "../../domain/Failure.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import { TokenLimiter } from "../../services/access/TokenLimiter.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { NoAnswer } from "../../services/sql/Outage.ts"
import { smallBody } from "../body/BodyReceiver.ts"
import type { Admission } from "./Admission.ts"

/** For a unit that is taken for a request that has failed already. */
const patience = "500 millis"

const cameWithItsHead = ({ complete, readableLength }: IncomingMessage): boolean =>
  complete && readableLength <= smallBody

/**
 * When a generating request takes its unit of its key's rate. Each takes one, whatever becomes of it.
 *
 * | moment | takes it |
 * | --- | --- |
 * | `arrival` | every request but a chat of at most 64 KiB that came with its head, and that too if its key lacks the scope |
 * | `hold` | what has taken none: the statement that places the hold takes it too, in `Ledger.withHold` |
 * | `failure` | what has taken none, since it failed before its hold, unless the database may have taken it, or the process ends |
 */
const takesUnit = (
  moment: "arrival" | "failure",
  { endpoint, record, request }: Admission,
  cause: Cause.Cause<unknown> | undefined
): boolean => {
  if (moment === "arrival") return cause !== undefined || !endpoint.admitsWithHold || !cameWithItsHead(request)
  return (
    record.summary.rate === undefined &&
    cause !== undefined &&
    !Cause.isInterruptedOnly(cause) &&
    !Chunk.some(Cause.defects(cause), (defect) => defect instanceof NoAnswer)
  )
}

export const makeRateUnits = Effect.gen(function* () {
  const limiter = yield* RateLimiter
  const tokenLimiter = yield* TokenLimiter

  /** Records what its key has left of its tokens, unless its hold has done so. */
  const showTokens = Effect.fnUntraced(function* (record: RequestRecord) {
    const { key, tpm } = record.facts.caller
    if (tpm === undefined || record.summary.tokens !== undefined) return
    record.add({ type: "allowed", tokens: yield* tokenLimiter.peek(key, tpm) })
  })

  /** For the headers of the answer to a request that takes none. */
  const show = Effect.fnUntraced(function* ({ record }: Admission) {
    const { caller, rateLimit } = record.facts
    record.add({ type: "allowed", rate: yield* limiter.peek(caller.key, rateLimit) })
    yield* showTokens(record)
  })

  const take = Effect.fnUntraced(function* ({ record }: Admission) {
    const { caller, rateLimit } = record.facts
    const rate = yield* limiter.take(caller.key, rateLimit)
    record.add({ type: "allowed", rate })
    yield* showTokens(record)
    if (!rate.admitted) return yield* new RateLimited({ limit: rateLimit })
  })

  /** Then `refusal`, if there is one. */
  const takeAtArrival = <E>(admission: Admission, refusal: E | undefined): Effect.Effect<void, E | RateLimited> => {
    const cause = refusal === undefined ? undefined : Cause.fail(refusal)
    const taken = takesUnit("arrival", admission, cause) ? take(admission) : Effect.void
    return cause === undefined ? taken : Effect.zipRight(taken, Effect.failCause(cause))
  }

  /** Then fails with `cause`. A client whose request met a defect does not wait for the database for long. */
  const takeAtFailure = <E>(admission: Admission, cause: Cause.Cause<E>): Effect.Effect<never, E | RateLimited> => {
    const failed = Effect.failCause(cause)
    if (!takesUnit("failure", admission, cause)) return failed
    const taken = take(admission)
    return Option.isSome(Cause.failureOption(cause))
      ? Effect.zipRight(taken, failed)
      : taken.pipe(
          Effect.interruptible,
          Effect.timeoutOption(patience),
          Effect.catchAllDefect(() => Effect.void),
          Effect.zipRight(failed)
        )
  }

  return { show, takeAtArrival, takeAtFailure }
})

import { Cause, Effect, Exit, Option } from "effect"
import * as Failures from "../../domain/Failure.ts"
import { Refunds } from "../../services/ledger/Refunds.ts"
import { entryOf, outcomeOf, type RequestRecord } from "../../services/requests/RequestRecord.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { logFailure, outageIn } from "../../services/sql/Outage.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import * as Answer from "../Answer.ts"
import { BodyCutOff } from "../body/BodyReceiver.ts"
import { internalError, outage, toWire, type WireError } from "../errors/ErrorMessages.ts"
import { loggedError } from "../errors/FieldNames.ts"
import { headersOf, type Visit } from "./Admission.ts"

const failures = Object.values(Failures)

const isFailure = (error: unknown): error is Failures.Failure => failures.some((type) => error instanceof type)

const logUnexpected = (cause: Cause.Cause<unknown>) => Effect.logError("A request failed unexpectedly", cause)

const answerDefect = (cause: Cause.Cause<unknown>): Effect.Effect<WireError> =>
  Option.isSome(outageIn(cause))
    ? Effect.as(logFailure("A request failed because the database did not take its part of it", cause), outage)
    : Effect.as(logUnexpected(cause), internalError)

const answerFailure = (failure: Failures.Failure, cause: Cause.Cause<unknown>): Effect.Effect<WireError> => {
  const wire = toWire(failure)
  return wire.status === 500 ? Effect.as(logUnexpected(cause), wire) : Effect.succeed(wire)
}

/** Logs defects, which become an internal error. */
export const errorResponse = (cause: Cause.Cause<unknown>, requestId: string): Effect.Effect<WireError> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(toWire(new Failures.Aborted()))
  const failure = Option.filter(Cause.failureOption(cause), isFailure)
  const response =
    Option.isSome(failure) && !Cause.isDie(cause) ? answerFailure(failure.value, cause) : answerDefect(cause)
  return Effect.annotateLogs(response, "request_id", requestId)
}

const isRateLimited = (cause: Cause.Cause<unknown>): boolean =>
  Option.exists(Cause.failureOption(cause), (failure) => failure instanceof Failures.RateLimited)

const isCutOff = (cause: Cause.Cause<unknown>): boolean =>
  Option.exists(Cause.failureOption(cause), (failure) => failure instanceof BodyCutOff)

interface Explained {
  readonly answer: Answer.Answer
  readonly code: string | null
}

/** The error of a failed request as an answer, which comes too late for a stream that has begun. */
const explain = (
  cause: Cause.Cause<unknown>,
  { arrival: { requestId }, endpoint: { encodeError, fieldNames }, record }: Visit
): Effect.Effect<Explained> => {
  const headers = () => (record === undefined ? { "x-request-id": requestId } : headersOf(record.summary))
  if (record !== undefined && isCutOff(cause)) {
    record.add({ type: "left" })
    return Effect.succeed({ answer: Answer.json(400, {}, headers()), code: null })
  }
  if (isRateLimited(cause)) record?.add({ type: "limited" })
  return Effect.map(errorResponse(cause, requestId), (error) => {
    record?.add({ type: "failed", error: loggedError(error, fieldNames) })
    return {
      answer: Answer.wireError(error, headers(), encodeError?.(error, requestId)),
      code: error.body.error.code
    }
  })
}

/** What a handler makes; undefined where it has sent a stream. */
export type Answered = { readonly status: number } | undefined

/** Each request ends here once: it is reported, and has its row in the log if it generates. */
export const makeConclude = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const log = yield* RequestLog
  const refunds = yield* Refunds
  const { report } = yield* RequestReporter

  /** The charge of a request that failed after it: its client got no answer, or none to its end. */
  const takeBack = Effect.fnUntraced(function* (record: RequestRecord) {
    const { caller, charge, hold } = record.summary
    if (hold === undefined || charge === 0n) return
    yield* refunds.refund({ id: hold, org: caller.org, key: caller.key })
    record.add({ type: "refunded" })
  })

  /** Reports it. Returns what writes its row, if none is written yet. */
  const end = (visit: Visit, status: number, code: string | null): Effect.Effect<void> | undefined => {
    const { arrival, endpoint, record, request } = visit
    const { requestId, startedAt, trace } = arrival
    const summary = record?.summary
    const outcome = summary === undefined ? { status, code } : outcomeOf(summary, { status, code })
    trace?.answer(outcome)
    report({
      requestId,
      surface: endpoint.surface,
      method: request.method ?? "",
      path: endpoint.path,
      ...outcome,
      startedAt,
      summary
    })
    if (summary === undefined || summary.isLogged) return undefined
    const row = entryOf(summary, { status, code }, Monotonic.millisOf(clock))
    return refunds.runAfter(summary.hold, log.write(row))
  }

  /** Returns the answer: the handler's own, or the one that says why there is none. */
  return <A extends Answered>(visit: Visit, exit: Exit.Exit<A, unknown>): Effect.Effect<A | Answer.Answer> =>
    Effect.suspend((): Effect.Effect<A | Answer.Answer> => {
      const { record, release, response } = visit
      release?.()
      const { headersSent, statusCode } = response
      if (Exit.isSuccess(exit)) {
        const { value } = exit
        const finish = () =>
          end(visit, value === undefined || headersSent ? statusCode : value.status, null) ?? Effect.void
        const hasBroken = record !== undefined && record.summary.code !== undefined && record.summary.charge > 0n
        return Effect.as(hasBroken ? Effect.flatMap(takeBack(record), finish) : finish(), value)
      }
      if (record === undefined && Cause.isInterruptedOnly(exit.cause)) {
        end(visit, 499, "client_closed")
        return Effect.interrupt
      }
      return Effect.gen(function* () {
        if (record !== undefined && !headersSent) yield* takeBack(record)
        const { answer, code } = yield* explain(exit.cause, visit)
        const written = end(visit, record !== undefined && headersSent ? statusCode : answer.status, code)
        if (written !== undefined) yield* written
        return answer
      })
    })
})

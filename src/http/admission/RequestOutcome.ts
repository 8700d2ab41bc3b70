import { Cause, Effect, Exit, Option } from "effect"
import * as Failures from "../../domain/Failure.ts"
import { Refunds } from "../../services/ledger/Refunds.ts"
import { entryOf, outcomeOf, type RequestRecord } from "../../services/requests/RequestRecord.ts"
import { monotonicMillisOf } from "../../services/runtime/System.ts"
import { logFailure, outageIn } from "../../services/sql/Outage.ts"
import { RequestReporter } from "../../services/telemetry/RequestLines.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { requestIdHeader } from "../AnswerHeaders.ts"
import { BodyCutOff } from "../body/BodyReceiver.ts"
import { internalError, isFailure, loggedError, outageError, toWire, type WireError } from "../errors/ErrorMessages.ts"
import * as Answer from "../HttpAnswer.ts"
import { headersOf, type Visit } from "./Admission.ts"

const logUnexpected = (cause: Cause.Cause<unknown>) => Effect.logError("A request failed unexpectedly", cause)

const answerDefect = (cause: Cause.Cause<unknown>): Effect.Effect<WireError> =>
  Option.isSome(outageIn(cause))
    ? Effect.as(logFailure("A request failed because the database did not respond", cause), outageError)
    : Effect.as(logUnexpected(cause), internalError)

const answerFailure = (failure: Failures.Failure, cause: Cause.Cause<unknown>): Effect.Effect<WireError> => {
  const wire = toWire(failure)
  return wire.status === 500 ? Effect.as(logUnexpected(cause), wire) : Effect.succeed(wire)
}

/** Returns the error of a failed request. Defects are logged and become an internal error. */
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

interface ErrorAnswer {
  readonly answer: Answer.Answer
  readonly code: string | null
}

/** Returns the error response of a failed request. It is not sent if a stream has already begun. */
const encodeFailure = (
  cause: Cause.Cause<unknown>,
  { arrival: { requestId }, endpoint: { encodeError, fieldNames }, record }: Visit
): Effect.Effect<ErrorAnswer> => {
  const headers = () => (record === undefined ? { [requestIdHeader]: requestId } : headersOf(record.summary))
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

/** The response of a handler. `AlreadySent` is one of them. */
export type HandlerResult = { readonly status: number } | undefined

/** Returns a function that ends a request: it reports the request, and logs it if it generates. */
export const makeConclude = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const log = yield* RequestLog
  const refunds = yield* Refunds
  const { report } = yield* RequestReporter

  /** Refunds a request that failed after its charge, because the client got no complete response. */
  const refundCharge = Effect.fnUntraced(function* (record: RequestRecord) {
    const { caller, charge, hold } = record.summary
    if (hold === undefined || charge === 0n) return
    yield* refunds.refund({ id: hold, org: caller.org, key: caller.key })
    record.add({ type: "refunded" })
  })

  /** Reports the request. Returns the effect that writes its log row, or undefined if the row exists already. */
  const finishRequest = (visit: Visit, status: number, code: string | null): Effect.Effect<void> | undefined => {
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
    const row = entryOf(summary, { status, code }, monotonicMillisOf(clock))
    return refunds.runAfter(summary.hold, log.write(row))
  }

  return <A extends HandlerResult>(visit: Visit, exit: Exit.Exit<A, unknown>): Effect.Effect<A | Answer.Answer> =>
    Effect.suspend((): Effect.Effect<A | Answer.Answer> => {
      const { record, release, response } = visit
      release?.()
      const { headersSent, statusCode } = response
      if (Exit.isSuccess(exit)) {
        const { value } = exit
        const finish = () =>
          finishRequest(visit, value === undefined || headersSent ? statusCode : value.status, null) ?? Effect.void
        const isBroken = record !== undefined && record.summary.code !== undefined && record.summary.charge > 0n
        return Effect.as(isBroken ? Effect.flatMap(refundCharge(record), finish) : finish(), value)
      }
      if (record === undefined && Cause.isInterruptedOnly(exit.cause)) {
        finishRequest(visit, 499, "client_closed")
        return Effect.interrupt
      }
      return Effect.gen(function* () {
        if (record !== undefined && !headersSent) yield* refundCharge(record)
        const { answer, code } = yield* encodeFailure(exit.cause, visit)
        const writeRow = finishRequest(visit, record !== undefined && headersSent ? statusCode : answer.status, code)
        if (writeRow !== undefined) yield* writeRow
        return answer
      })
    })
})

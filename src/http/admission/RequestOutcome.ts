import type { IncomingMessage, ServerResponse } from "node:http"
import { Cause, Effect, Option } from "effect"
import type { Failure } from "../../domain/Failure.ts"
import { Refunds } from "../../services/ledger/Refunds.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import * as Answer from "../Answer.ts"
import type { BodyCutOff } from "../body/BodyReceiver.ts"
import { errorResponse } from "../errors/ErrorResponse.ts"
import { loggedError } from "../errors/FieldNames.ts"
import type { EndpointBase } from "./Endpoint.ts"
import type { RequestContext } from "./RequestContext.ts"

export interface Outcome {
  /** Undefined: it was sent as a stream. */
  readonly answer: Answer.Answer | undefined
  readonly code: string | null
}

export const headersOf = ({ cap, rate: { allowance }, requestId, tokens }: RequestRecord): Record<string, string> => {
  const headers: Record<string, string> = { "x-request-id": requestId }
  if (allowance !== undefined) {
    headers["x-ratelimit-limit"] = String(allowance.limit)
    headers["x-ratelimit-remaining"] = String(allowance.remaining)
  }
  if (tokens?.allowance !== undefined) {
    headers["x-ratelimit-limit-tokens"] = String(tokens.limit)
    headers["x-ratelimit-remaining-tokens"] = String(tokens.allowance.remaining)
    headers["x-ratelimit-reset-tokens"] = `${tokens.allowance.resetSeconds}s`
  }
  if (cap !== undefined) headers["x-gateway-max-output-tokens"] = String(cap)
  return headers
}

export const explain = (
  cause: Cause.Cause<Failure | BodyCutOff>,
  { encodeError, fieldNames }: EndpointBase,
  record: RequestRecord,
  response: ServerResponse
): Effect.Effect<Outcome> => {
  const tag = Option.getOrUndefined(Cause.failureOption(cause))?._tag
  // The request counts as not looked at.
  if (tag === "RateLimited") Object.assign(record, { model: undefined, stream: false })
  if (tag === "BodyCutOff") {
    record.departed = true
    return Effect.succeed({ answer: Answer.json(400, {}, headersOf(record)), code: null })
  }
  return Effect.map(errorResponse(cause, record.requestId), (error) => {
    record.error ??= loggedError(error, fieldNames)
    return {
      answer: response.headersSent
        ? undefined
        : Answer.wireError(error, headersOf(record), encodeError?.(error, record.requestId)),
      code: error.body.error.code
    }
  })
}

export const makeReports = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const log = yield* RequestLog
  const refunds = yield* Refunds
  const { report } = yield* RequestReporter

  /** Reports and logs how an admitted request ended. */
  const conclude = (
    { path, surface }: EndpointBase,
    { method = "" }: IncomingMessage,
    record: RequestRecord,
    { answer, code }: Outcome
  ): Effect.Effect<void> => {
    const answered = { status: answer?.status ?? 200, code }
    const { requestId, startedAt } = record
    const outcome = record.outcome(answered)
    record.trace?.answer(outcome)
    report({ requestId, surface, method, path, ...outcome, startedAt, record })
    if (record.isLogged) return Effect.void
    return refunds.runAfter(record.hold, log.write(record.entry({ ...answered, endedAt: Monotonic.millisOf(clock) })))
  }

  /** For a request that has no row in the log. */
  const reportAnswer = (
    { path, surface }: EndpointBase,
    { method = "" }: IncomingMessage,
    { requestId, startedAt, trace }: typeof RequestContext.Service,
    answered: { readonly status: number; readonly code: string | null }
  ): void => {
    trace?.answer(answered)
    report({ requestId, surface, method, path, ...answered, startedAt })
  }

  /** Reports and returns the answer to a request that failed before it was admitted, or that generates nothing. */
  const refuse = (
    endpoint: EndpointBase,
    request: IncomingMessage,
    context: typeof RequestContext.Service,
    cause: Cause.Cause<unknown>
  ): Effect.Effect<Answer.Answer> => {
    const { requestId } = context
    return Effect.map(errorResponse(cause, requestId), (error) => {
      reportAnswer(endpoint, request, context, { status: error.status, code: error.body.error.code })
      return Answer.wireError(error, { "x-request-id": requestId }, endpoint.encodeError?.(error, requestId))
    })
  }

  return { conclude, refuse, reportAnswer }
})

import type { IncomingMessage, ServerResponse } from "node:http"
import { Cause, Effect, Option } from "effect"
import { type Caller, scopeOf } from "../../domain/ApiKey.ts"
import * as Failures from "../../domain/Failure.ts"
import { type Failure, InsufficientCredits, PaymentDisputed, SpendLimitReached } from "../../domain/Failure.ts"
import { reachedCap } from "../../domain/Hold.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { Refunds } from "../../services/ledger/Refunds.ts"
import { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { logFailure, outageIn } from "../../services/sql/Outage.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import * as Answer from "../Answer.ts"
import type { BodyCutOff, BodyReceiver } from "../body/BodyReceiver.ts"
import { internalError, outage, toWire, type WireError } from "../errors/ErrorMessages.ts"
import { loggedError } from "../errors/FieldNames.ts"
import { tagOf } from "./Attribution.ts"
import type { AdmittedRequest, Endpoint, EndpointBase } from "./Endpoint.ts"
import { idempotencyKeyOf, type RequestContext } from "./RequestContext.ts"

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

export interface Outcome {
  /** Undefined: it was sent as a stream. */
  readonly answer: Answer.Answer | undefined
  readonly code: string | null
}

const headersOf = ({ cap, rate: { allowance }, requestId, tokens }: RequestRecord): Record<string, string> => {
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

/** Checks the organization's cap and balance before a large body is received; a replay passes, since it costs nothing. */
const makeSolvencyCheck = Effect.gen(function* () {
  const idempotency = yield* Idempotency
  const ledger = yield* Ledger

  return Effect.fnUntraced(function* (
    caller: Caller,
    { hasFittedHold = false, surface }: Endpoint,
    request: IncomingMessage
  ) {
    const { isDisputed = false, org } = caller
    const funds = yield* ledger.funds(org)
    const reached = reachedCap(funds)
    const endpoint = scopeOf[surface]
    const waits = hasFittedHold || (caller.hasFittedHold === true && endpoint === "chat")
    if (!isDisputed && reached === undefined && (waits ? funds.balance : availableOf(funds)) > 0n) return
    const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
    if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
    if (isDisputed) return yield* new PaymentDisputed()
    return yield* reached === undefined
      ? new InsufficientCredits({ needed: undefined, available: availableOf(funds) })
      : new SpendLimitReached({ of: "organization", ...reached })
  })
})

interface ReleasableRequest extends AdmittedRequest {
  /** Frees the memory of the body, and what was reserved beside it. */
  readonly release: () => void
}

/** Begins the record of a generating request, and watches its client. */
export const makeAdmission = (options: { readonly defaultRpm: number; readonly receiver: BodyReceiver }) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const inFlight = yield* InFlight
    const checkSolvency = yield* makeSolvencyCheck

    return (
      endpoint: Endpoint,
      request: IncomingMessage,
      response: ServerResponse,
      { address, at, requestId, startedAt, trace }: typeof RequestContext.Service,
      caller: Caller
    ): ReleasableRequest => {
      const record = new RequestRecord({
        id: ids.uuid(),
        requestId,
        surface: endpoint.surface,
        caller,
        client: { address, userAgent: request.headers["user-agent"] },
        tag: tagOf(request),
        limit: caller.rpm ?? options.defaultRpm,
        at,
        startedAt,
        trace
      })
      const departure = new ClientDeparture()
      response.once("close", () => {
        if (response.writableEnded) return
        record.departed = true
        departure.leave()
      })
      const solvency = checkSolvency(caller, endpoint, request)
      const body = options.receiver.body(request, caller.org, solvency, inFlight.receive)
      record.reserveMemory = body.reserveMore
      return {
        record,
        request,
        receive: body.receive,
        response,
        departure,
        headers: () => headersOf(record),
        checkSolvency: solvency,
        release: body.release
      }
    }
  })

import type { ServerResponse } from "node:http"
import { Cause, Effect, Option } from "effect"
import { Aborted, type Failure, isFailure } from "../../domain/Failure.ts"
import * as Metrics from "../../services/telemetry/Metrics.ts"
import type { RequestRecord } from "../../services/telemetry/RequestRecord.ts"
import type { BodyCutOff } from "../body/Reception.ts"
import { unexpected } from "../errors/Unexpected.ts"
import * as Wire from "../errors/Wire.ts"
import * as Answer from "../response/Answer.ts"

export interface Outcome {
  readonly answer: Answer.Answer | undefined
  readonly code: string | null
}

const refusals: Readonly<Partial<Record<Failure["_tag"], string>>> = {
  AddressBlocked: "access_denied",
  MissingApiKey: "invalid_api_key",
  InvalidApiKey: "invalid_api_key"
}

export const headersOf = ({ rate: { allowance }, requestId }: RequestRecord): Record<string, string> =>
  allowance === undefined
    ? { "x-request-id": requestId }
    : {
        "x-request-id": requestId,
        "x-ratelimit-limit": String(allowance.limit),
        "x-ratelimit-remaining": String(allowance.remaining)
      }

export const refuse = (cause: Cause.Cause<Failure>, requestId: string): Effect.Effect<Answer.Answer> => {
  const headers = { "x-request-id": requestId }
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(Answer.failure(new Aborted(), headers))
  const failure = Cause.failureOption(cause)
  if (Option.isNone(failure))
    return Effect.map(unexpected(cause, requestId), (error) => Answer.wireError(error, headers))
  const reason = refusals[failure.value._tag]
  if (reason !== undefined) Metrics.unsafeCount(Metrics.refused, { reason })
  return Effect.succeed(Answer.failure(failure.value, headers))
}

const logFailed = ({ requestId }: RequestRecord, cause: Cause.Cause<unknown>) =>
  Effect.annotateLogs(Effect.logError("A request failed unexpectedly", cause), "request_id", requestId)

export const explain = (
  cause: Cause.Cause<Failure | BodyCutOff>,
  record: RequestRecord,
  response: ServerResponse
): Effect.Effect<Outcome> => {
  const answered = (error: Wire.WireError): Outcome => ({
    answer: Answer.wireError(error, headersOf(record)),
    code: error.body.error.code
  })
  if (Cause.isInterruptedOnly(cause)) {
    const aborted = answered(Wire.toWire(new Aborted()))
    return Effect.succeed(response.headersSent ? { ...aborted, answer: undefined } : aborted)
  }
  const failure = Cause.failureOption(cause)
  if (Option.isNone(failure) || Option.isSome(Cause.dieOption(cause))) {
    return Effect.map(unexpected(cause, record.requestId), answered)
  }
  // Nothing of it counts as having been looked at.
  if (failure.value._tag === "RateLimited") Object.assign(record, { model: undefined, stream: false })
  if (!isFailure(failure.value)) {
    record.departed = true
    return Effect.succeed({ answer: Answer.json(400, {}, headersOf(record)), code: null })
  }
  const wire = Wire.toWire(failure.value)
  return Effect.as(wire.status === 500 ? logFailed(record, cause) : Effect.void, answered(wire))
}

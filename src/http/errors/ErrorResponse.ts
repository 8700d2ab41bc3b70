import { HttpApiError, HttpServerError } from "@effect/platform"
import { Cause, Effect, Option } from "effect"
import { Aborted, type Failure, InvalidRequest, isFailure, UnknownEndpoint } from "../../domain/Failure.ts"
import { logFailure, outageIn } from "../../services/ledger/Outage.ts"
import * as Metrics from "../../services/telemetry/Metrics.ts"
import { internalError, outage, toWire, type WireError } from "./Wire.ts"

const asFailure = (error: unknown): Option.Option<Failure> => {
  if (error instanceof HttpServerError.RouteNotFound) return Option.some(new UnknownEndpoint())
  if (error instanceof HttpApiError.HttpApiDecodeError) {
    return Option.some(new InvalidRequest({ message: error.message, param: null }))
  }
  return Option.liftPredicate(error, isFailure)
}

/** The reasons of `Metrics.refused`: requests that are not logged, since nobody is known to have sent them. */
const refusals: Readonly<Partial<Record<Failure["_tag"], string>>> = {
  AddressBlocked: "access_denied",
  MissingApiKey: "invalid_api_key",
  InvalidApiKey: "invalid_api_key"
}

const unexpected = (cause: Cause.Cause<unknown>): Effect.Effect<WireError> =>
  Option.isSome(outageIn(cause))
    ? Effect.as(logFailure("A request failed because the database did not take its part of it", cause), outage)
    : Effect.as(Effect.logError("A request failed unexpectedly", cause), internalError)

/** The response to whatever ended a request. A defect is an internal error whatever it looks like, and is logged. */
export const errorResponse = (cause: Cause.Cause<unknown>, requestId: string): Effect.Effect<WireError> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(toWire(new Aborted()))
  const failure = Option.flatMap(Cause.failureOption(cause), asFailure)
  if (Option.isNone(failure) || Cause.isDie(cause)) {
    return Effect.annotateLogs(unexpected(cause), "request_id", requestId)
  }
  const wire = toWire(failure.value)
  const reason = refusals[failure.value._tag]
  if (reason !== undefined) Metrics.unsafeCount(Metrics.refused, { reason })
  return wire.status === 500
    ? Effect.as(
        Effect.annotateLogs(Effect.logError("A request failed unexpectedly", cause), "request_id", requestId),
        wire
      )
    : Effect.succeed(wire)
}

import { Cause, Effect, Option } from "effect"
import * as Failures from "../../domain/Failure.ts"
import { logFailure, outageIn } from "../../services/sql/Outage.ts"
import { internalError, outage, toWire, type WireError } from "./ErrorMessages.ts"

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

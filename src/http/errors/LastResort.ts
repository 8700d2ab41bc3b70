import { HttpApiError, HttpServerError, type HttpServerResponse } from "@effect/platform"
import { Cause, Effect, Option } from "effect"
import { InvalidRequest, isFailure, UnknownEndpoint } from "../../domain/Failure.ts"
import * as Respond from "../response/Respond.ts"
import { unexpected } from "./Unexpected.ts"

const expected = (error: unknown) => {
  if (error instanceof HttpServerError.RouteNotFound) return Option.some(new UnknownEndpoint())
  if (error instanceof HttpApiError.HttpApiDecodeError) {
    return Option.some(new InvalidRequest({ message: error.message, param: null }))
  }
  return Option.liftPredicate(error, isFailure)
}

/** A defect is an internal error whatever it looks like; an interruption is left to the server. */
export const lastResort = <R>(
  requestId: string,
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.catchAllCause(app, (cause) => {
    if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
    const failure = Option.flatMap(Cause.failureOption(cause), expected)
    if (Option.isSome(failure) && Option.isNone(Cause.dieOption(cause))) {
      return Effect.succeed(Respond.failure(failure.value))
    }
    return Effect.map(unexpected(cause, requestId), (error) => Respond.wireError(error))
  })

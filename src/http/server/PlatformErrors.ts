import { HttpApiError, HttpServerError } from "@effect/platform"
import { Cause, Option } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { unreadBody } from "../admin/AdminBody.ts"
import { unknownPath } from "./UnknownPath.ts"

const explainDecoding = (error: HttpApiError.HttpApiDecodeError): InvalidRequest => {
  const [
    {
      message,
      path: [param]
    }
  ] = [...error.issues, { message: error.message, path: [] }]
  return param === undefined
    ? new InvalidRequest({ message: "The body must be a JSON object.", param: null })
    : new InvalidRequest({ message, param: param.toString() })
}

const explainError = (error: unknown): unknown => {
  if (error instanceof HttpServerError.RouteNotFound) return unknownPath(error.request.url)
  return error instanceof HttpApiError.HttpApiDecodeError ? explainDecoding(error) : error
}

/** Turns what the platform fails or dies with into the failures of the gateway. */
export const explainPlatform = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> => {
  const unread = Option.flatMap(Cause.dieOption(cause), unreadBody)
  return Option.isSome(unread) ? Cause.fail(unread.value) : Cause.map(cause, explainError)
}

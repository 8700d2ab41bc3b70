import type { EncodeError } from "../Answer.ts"
import type { Envelope, ErrorType } from "../errors/ErrorMessages.ts"
import { type FieldNames, renameField } from "../errors/FieldNames.ts"
import { listModels } from "../models/ModelSchema.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { createMessage, type MessagesError } from "./MessagesSchema.ts"

type MessagesErrorType = MessagesError["error"]["type"]

const types: Readonly<Record<ErrorType, MessagesErrorType>> = {
  invalid_request_error: "invalid_request_error",
  authentication_error: "authentication_error",
  permission_error: "permission_error",
  not_found_error: "not_found_error",
  rate_limit_error: "rate_limit_error",
  insufficient_quota: "billing_error",
  content_policy_violation: "invalid_request_error",
  api_error: "api_error",
  service_unavailable: "overloaded_error"
}

const typeOf = ({ error: { code, type } }: Envelope): MessagesErrorType => {
  if (code === "request_too_large") return "request_too_large"
  return code === "timeout" ? "timeout_error" : types[type]
}

export const messagesFields: FieldNames = {
  reasoning_effort: "thinking",
  response_format: "output_config.format"
}

export const messagesError = (body: Envelope, reason: string | undefined, requestId?: string): MessagesError => {
  const { param: _, ...shown } = renameField(body.error, messagesFields, reason)
  return {
    type: "error",
    error: { type: typeOf(body), ...shown },
    ...(requestId === undefined ? undefined : { request_id: requestId })
  }
}

/** Clients recover by the vendor's own words. */
export const encodeMessagesError: EncodeError = ({ body, reason }, requestId) => messagesError(body, reason, requestId)

const messagesPath = servedPath(createMessage)
const modelsPath = servedPath(listModels)

const isBelow = (path: string, parent: string): boolean => path === parent || path.startsWith(`${parent}/`)

/** Whether a client of this API made the request; models are listed for it too. */
export const isOfMessages = (path: string, headers: Readonly<Record<string, unknown>>): boolean =>
  isBelow(path, messagesPath) || (headers["anthropic-version"] !== undefined && isBelow(path, modelsPath))

/** Where this API's clients look for a request's id. */
export const messagesIdHeader = "request-id"

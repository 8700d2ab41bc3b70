import type { ProviderAccount } from "../../domain/Model.ts"
import type { FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { amendFailure, decodeFailure as decodeConvention } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asText, parseJson } from "../client/Json.ts"
import { loggable } from "../client/Upstream.ts"

interface AnthropicError {
  readonly type: string
  /** Names the cause more precisely than the type, where the host gives it. */
  readonly code: string
  readonly message: string
}

const readError = (body: string): AnthropicError => {
  const { details, message, type } = asFields(asFields(parseJson(body)).error)
  return { type: asText(type), code: asText(asFields(details).error_code), message: asText(message) }
}

/** The operator's account by its codes, whatever the status: money, a hold, keys and settings of the organization. */
const accountCode =
  /spend_limit_reached$|^organization_(on_hold|type_not_supported)$|^parent_organization_required$|billing|^cmek_|^claude_code_|^sandbox_egress_restricted$/

/** A 400 may speak to the operator. Only its first words count: further on stands what the customer sent. */
const toOperator =
  /^(your (credit|organization|workspace|account|api key|plan)|you have (reached|exceeded|run out)|this (organization|workspace|account|api key))\b/i

const imageFault = /\bimage\.source\b|^could not process image|^unable to download the file|^(the )?image\b/i

interface OwnClass {
  readonly class: FailureClass
  readonly param: string | undefined
}

const classify = (status: number | undefined, { code, message, type }: AnthropicError): OwnClass | undefined => {
  if (type === "billing_error" || accountCode.test(code)) return { class: "account", param: undefined }
  if (type !== "invalid_request_error") return undefined
  if (toOperator.test(message)) return { class: "account", param: undefined }
  if (/^output blocked by content filter/i.test(message)) return { class: "moderation", param: undefined }
  return status === 400 && imageFault.test(message) ? { class: "request", param: "messages" } : undefined
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number
): ProviderFailure => {
  const failure = decodeConvention(account, response, nowMillis)
  const error = readError(response.body)
  const detail = loggable(account, `${error.code} ${failure.detail}`)
  return amendFailure(failure, { ...classify(failure.status, error), detail })
}

export const refusesThinking = ({ body, status }: UpstreamResponse): boolean => {
  const { message, type } = readError(body)
  return status === 400 && type === "invalid_request_error" && /\bthinking\b/i.test(message)
}

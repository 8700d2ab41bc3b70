import type { ProviderAccount } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import {
  type Classification,
  classify as classifyConvention,
  readHeader,
  readHostError
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asList, asRecords, asText, parsePruned } from "../client/Json.ts"
import { toLoggable } from "../client/Upstream.ts"

interface FalError {
  readonly type: string | undefined
  readonly details: ReadonlyArray<{ readonly type: string; readonly loc: ReadonlyArray<string>; readonly msg: string }>
  readonly text: string
  readonly isRetryable: boolean
}

const readError = (response: UpstreamResponse): FalError => {
  const body = parsePruned(response.body)
  const { detail, error_type } = asFields(body)
  const details = asRecords(detail).map(({ loc, msg, type }) => {
    return { type: asText(type), loc: asList(loc).map(String), msg: asText(msg) }
  })
  return {
    type: typeof error_type === "string" ? error_type : readHeader(response.headers, "x-fal-error-type"),
    details,
    text: [asText(detail), readHostError(body)?.message ?? "", ...details.map(({ msg }) => msg)].join(" ").trim(),
    isRetryable: readHeader(response.headers, "x-fal-retryable")?.toLowerCase() === "true"
  }
}

const imageField = /^images$|(^|_)image(_urls?)?$/
const imageTypes = new Set(["image_load_error", "file_download_error", "file_too_large", "unsupported_image_format"])
const modelTypes = new Set([
  "internal_server_error",
  "generation_timeout",
  "downstream_service_error",
  "downstream_service_unavailable",
  "no_media_generated"
])
const settled: ReadonlySet<FailureClass> = new Set(["moderation", "account", "limit"])

const classify = (response: UpstreamResponse, error: FalError, nowMillis: number): Classification => {
  const usual = classifyConvention(response, nowMillis, "image")
  const { details, isRetryable, text, type } = error
  if (settled.has(usual.class)) return usual
  if (type === "content_policy_violation") return { ...usual, class: "moderation" }
  // Details quote the customer.
  if (details.length === 0 && /exhausted balance/i.test(text)) return { ...usual, class: "account" }
  if (isRetryable || details.some(({ type }) => modelTypes.has(type))) {
    return { ...usual, class: "retry", param: undefined }
  }
  const image = details.some(({ loc, type }) => imageTypes.has(type) || loc.some((word) => imageField.test(word)))
  return usual.class === "request" && image ? { ...usual, param: "image" } : usual
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number
): ProviderFailure => {
  const error = readError(response)
  const fields = error.details.map(({ loc, type }) => `${type} at ${loc.join(".")}`)
  const words = [error.type ?? "", ...fields, error.text].join(" ").trim()
  const fallback = response.status < 400 ? "without an answer" : response.body
  return new ProviderFailure({
    ...classify(response, error, nowMillis),
    status: response.status,
    detail: toLoggable(account, `${response.status} ${words === "" ? fallback : words}`)
  })
}

export const isEarly = (response: UpstreamResponse): boolean =>
  response.status === 400 && /\bin (progress|queue)\b/i.test(readError(response).text)

/** Whether a failure ends the job: a typed error, a fault of the request, or one of the model behind the queue. */
export const isOutcome = (response: UpstreamResponse, failure: ProviderFailure): boolean => {
  if (failure.class === "moderation" || failure.class === "request") return true
  if (failure.class !== "retry") return false
  if (response.status === 500) return true
  const { details, type } = readError(response)
  return type !== undefined || details.some((detail) => detail.type !== "")
}

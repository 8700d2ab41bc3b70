import { Either, Predicate, Record, Schema } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { jsonChunks } from "../../services/media/Base64.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import {
  amendFailure,
  type Classification,
  classify as classifyDefault,
  type DecodeFailure,
  protocolFailure,
  readHeader,
  readProviderError
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asList, asRecords, asText, parsePruned } from "../client/JsonFields.ts"
import { makeOptions } from "../client/RouteOptions.ts"
import { toLoggable } from "../client/Upstream.ts"
import { isSuccess } from "../client/UpstreamResponse.ts"
import {
  commonOptions,
  type Handle,
  isBelowBaseUrl,
  isFailed,
  type JobFormat,
  type JobOptions,
  type Media,
  makeJobProvider,
  type Progress,
  type ReportedProgress,
  readId,
  toAccountPath
} from "../jobs/JobAdapter.ts"

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
    text: [asText(detail), readProviderError(body)?.message ?? "", ...details.map(({ msg }) => msg)].join(" ").trim(),
    isRetryable: readHeader(response.headers, "x-fal-retryable")?.toLowerCase() === "true"
  }
}

const imageField = /^images$|(^|_)image(_urls?)?$/
const imageErrorTypes = new Set([
  "image_load_error",
  "file_download_error",
  "file_too_large",
  "unsupported_image_format"
])
const modelErrorTypes = new Set([
  "internal_server_error",
  "generation_timeout",
  "downstream_service_error",
  "downstream_service_unavailable",
  "no_media_generated"
])
const finalClasses: ReadonlySet<FailureClass> = new Set(["moderation", "account", "limit"])

const classify = (response: UpstreamResponse, error: FalError, nowMillis: number): Classification => {
  const classification = classifyDefault(response, nowMillis, "image")
  const { details, isRetryable, text, type } = error
  if (finalClasses.has(classification.class)) return classification
  if (type === "content_policy_violation") return { ...classification, class: "moderation" }
  // Details may quote the customer, so only a text without them is matched.
  if (details.length === 0 && /exhausted balance/i.test(text)) return { ...classification, class: "account" }
  if (isRetryable || details.some(({ type }) => modelErrorTypes.has(type))) {
    return { ...classification, class: "retry", param: undefined }
  }
  const concernsImage = details.some(
    ({ loc, type }) => imageErrorTypes.has(type) || loc.some((word) => imageField.test(word))
  )
  return classification.class === "request" && concernsImage ? { ...classification, param: "image" } : classification
}

export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
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

export const isUnfinished = (response: UpstreamResponse): boolean =>
  response.status === 400 && /\bin (progress|queue)\b/i.test(readError(response).text)

/** Whether a failure ends the job: a typed error, an invalid request, or a failure of the model behind the queue. */
export const endsJob = (response: UpstreamResponse, failure: ProviderFailure): boolean => {
  if (failure.class === "moderation" || failure.class === "request") return true
  if (failure.class !== "retry") return false
  if (response.status === 500) return true
  const { details, type } = readError(response)
  return type !== undefined || details.some((detail) => detail.type !== "")
}

const namespaces = new Set(["workflows", "comfy"])

/** Like fal's own client, omits the path below the app's name. */
const defaultPath = (model: string, id: string): string => {
  const words = model.split("/")
  return `/${words.slice(0, namespaces.has(words[0] ?? "") ? 3 : 2).join("/")}/requests/${encodeURIComponent(id)}`
}

export const decodeHandle = (account: ProviderAccount, body: unknown, model: string): Handle | undefined => {
  const { cancel_url, request_id, response_url, status_url } = asFields(body)
  const id = readId(request_id)
  if (id === undefined) return undefined
  const path = defaultPath(model, id)
  if (!isBelowBaseUrl(account, path)) return undefined
  return {
    id,
    status: toAccountPath(account, status_url) ?? `${path}/status`,
    result: toAccountPath(account, response_url) ?? path,
    cancel: toAccountPath(account, cancel_url) ?? `${path}/cancel`
  }
}

export const decodeProgress = (account: ProviderAccount, response: UpstreamResponse): ReportedProgress | undefined => {
  const { error, status } = asFields(parsePruned(response.body))
  if (typeof status !== "string") return undefined
  const hasFailed = isFailed(status) || (status === "COMPLETED" && Boolean(error))
  if (!hasFailed && status === "COMPLETED") return { state: "completed" }
  if (status === "IN_QUEUE") return { state: "queued" }
  if (status === "IN_PROGRESS") return { state: "in_progress" }
  if (!hasFailed) return { state: "unknown", status }
  const failure = decodeFailure(account, response, 0)
  return { state: "failed", failure: amendFailure(failure, { detail: `${status}: ${failure.detail}` }) }
}

const decodeMedia = (body: unknown): Media | undefined => {
  const { image, images, revised_prompt, video, videos } = asFields(body)
  const candidates = [video, asList(videos)[0], asList(images)[0], image]
  const url = candidates.map((candidate) => asText(asFields(candidate).url)).find((candidateUrl) => candidateUrl !== "")
  return url === undefined
    ? undefined
    : { url, revisedPrompt: typeof revised_prompt === "string" ? revised_prompt : undefined }
}

const decodeResult = (
  account: ProviderAccount,
  response: UpstreamResponse,
  refusal: ProviderFailure
): Either.Either<Progress, ProviderFailure> => {
  const failWith = (failure: ProviderFailure) => Either.right({ state: "failed", failure } as const)
  if (!isSuccess(response)) {
    if (isUnfinished(response)) return Either.right({ state: "in_progress" })
    return endsJob(response, refusal) ? failWith(refusal) : Either.left(refusal)
  }
  const { status } = response
  const body = parsePruned(response.body)
  if (body === undefined) return Either.left(protocolFailure(account, status, "a result that is not JSON"))
  const fields = asFields(body)
  if (asList(fields.has_nsfw_concepts).includes(true)) {
    return failWith(new ProviderFailure({ class: "moderation", status, detail: "has_nsfw_concepts" }))
  }
  const media = decodeMedia(body)
  if (media !== undefined) return Either.right({ state: "done", media })
  const isPending = fields.status === "IN_QUEUE" || fields.status === "IN_PROGRESS"
  return isPending ? Either.right({ state: "in_progress" }) : failWith(refusal)
}

const isCompleted = (body: unknown): boolean => Predicate.isRecord(body) && body.status === "ALREADY_COMPLETED"

export const optionNames: ReadonlySet<string> = new Set(Object.keys(commonOptions))

/** Unknown options become fields of the request. */
const Options = Schema.Struct(commonOptions, { key: Schema.String, value: Schema.Unknown })

export const options = makeOptions(Options, (decoded): JobOptions => {
  const fixedFields = Record.filter(decoded, (_, name) => !optionNames.has(name))
  return { ...decoded, fixedFields, isList: (field) => field.endsWith("s") }
})

export const format: JobFormat = {
  name: "FalQueue",
  optionsDecoder: options,
  imageField: "image_urls",
  videoImageField: "image_url",
  authorization: (secret) => ({ authorization: `Key ${secret}` }),
  encode: ({ input, model }, placeholder) => ({ path: `/${model}`, body: jsonChunks(input, placeholder) }),
  decodeHandle,
  decodeProgress,
  decodeResult,
  decodeFailure,
  cancelMethod: "PUT",
  isCompleted
}

export const make = makeJobProvider("fal-queue", format)

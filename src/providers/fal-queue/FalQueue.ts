import { Either, Predicate, Record, Schema } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { jsonChunks } from "../../services/media/Chunks.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import {
  amendFailure,
  type Classification,
  classify as classifyConvention,
  type DecodeFailure,
  protocolFailure,
  readHeader,
  readHostError
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asList, asRecords, asText, parsePruned } from "../client/Json.ts"
import { makeOptions } from "../client/RouteOptions.ts"
import { toLoggable } from "../client/Upstream.ts"
import { isSuccess } from "../client/UpstreamResponse.ts"
import {
  type Handle,
  isFailed,
  isInside,
  type JobFormat,
  type Media,
  makeJobProvider,
  type Progress,
  type Reported,
  readId,
  rebase
} from "../jobs/JobAdapter.ts"
import { commonOptions, type JobOptions } from "../jobs/JobInput.ts"

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

const namespaces = new Set(["workflows", "comfy"])

/** As fal's own client does: paths below an app's name are not part of the address. */
const usualPath = (model: string, id: string): string => {
  const words = model.split("/")
  return `/${words.slice(0, namespaces.has(words[0] ?? "") ? 3 : 2).join("/")}/requests/${encodeURIComponent(id)}`
}

export const decodeHandle = (account: ProviderAccount, body: unknown, model: string): Handle | undefined => {
  const { cancel_url, request_id, response_url, status_url } = asFields(body)
  const id = readId(request_id)
  if (id === undefined) return undefined
  const own = usualPath(model, id)
  if (!isInside(account, own)) return undefined
  return {
    id,
    status: rebase(account, status_url) ?? `${own}/status`,
    result: rebase(account, response_url) ?? own,
    cancel: rebase(account, cancel_url) ?? `${own}/cancel`
  }
}

export const decodeProgress = (account: ProviderAccount, response: UpstreamResponse): Reported | undefined => {
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
  const url = candidates.map((candidate) => asText(asFields(candidate).url)).find((found) => found !== "")
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
    if (isEarly(response)) return Either.right({ state: "in_progress" })
    return isOutcome(response, refusal) ? failWith(refusal) : Either.left(refusal)
  }
  const { status } = response
  const body = parsePruned(response.body)
  if (body === undefined) return Either.left(protocolFailure(account, status, "no JSON"))
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

/** Unknown options are fields of the request. */
const Options = Schema.Struct(commonOptions, { key: Schema.String, value: Schema.Unknown })

export const options = makeOptions(Options, (given): JobOptions => {
  const fixed = Record.filter(given, (_, name) => !optionNames.has(name))
  return { ...given, fixed, isList: (field) => field.endsWith("s") }
})

export const format: JobFormat = {
  name: "FalQueue",
  options,
  pictureField: "image_urls",
  clipField: "image_url",
  authorization: (secret) => ({ authorization: `Key ${secret}` }),
  encode: ({ input, model }, mark) => ({ path: `/${model}`, body: jsonChunks(input, mark) }),
  decodeHandle,
  decodeProgress,
  decodeResult,
  decodeFailure,
  cancelMethod: "PUT",
  isCompleted
}

export const make = makeJobProvider("fal-queue", format)

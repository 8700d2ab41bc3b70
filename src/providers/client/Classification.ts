import { Predicate, Record } from "effect"
import type { Usage } from "../../domain/Chat.ts"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import type { UpstreamHeaders, UpstreamResponse } from "./Exchange.ts"
import { parseJson } from "./Json.ts"
import { toLoggable } from "./Upstream.ts"

/** MiniMax gives its codes in `base_resp.status_code`, mostly in a 200. */
const statusWord = (code: unknown): string => `base_resp ${String(code)}`
const statusWords = (...codes: ReadonlyArray<number>): ReadonlyArray<string> => codes.map(statusWord)

/** Hosts' words for failures, in lower case. */
const wordsOfClass = {
  limit: [
    // Requests, tokens or connections of a minute.
    ...statusWords(1002, 1039, 1041),
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded"
  ],
  account: [
    // No credential or a wrong one, no balance, a plan that is used up or lacks the model.
    ...statusWords(1004, 1008, 2049, 2056, 2061),
    "insufficient_balance_error",
    // GLM sends this one with a status of 429.
    "1113",
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "unauthenticated",
    "permission_error",
    "permission_denied",
    "failed_precondition"
  ],
  moderation: [
    // The input, and the output that the host withheld.
    ...statusWords(1026, 1027),
    // GLM sends this one.
    "1301",
    "data_inspection_failed",
    "datainspectionfailed",
    "content_safety_violation",
    "censorship_blocked",
    "content_policy_violation",
    "image_content_policy_violation",
    "moderation_blocked",
    "content_filter",
    "responsibleaipolicyviolation",
    "invalid_prompt",
    "bio_policy"
  ],
  // Parameters, and characters that cannot be seen.
  request: ["context_length_exceeded", ...statusWords(2013, 1042)]
} satisfies Partial<Record<FailureClass, ReadonlyArray<string>>>

const classes: ReadonlyMap<string, FailureClass> = new Map(
  Record.toEntries(wordsOfClass).flatMap(([meaning, words]) => words.map((word) => [word, meaning]))
)

const imageWords = new Set([
  "failed_to_download_image",
  "image_too_large",
  "image_too_small",
  "image_parse_error",
  "image_file_too_large",
  "image_file_not_found",
  "unsupported_image_media_type",
  "empty_image_file"
])
const isImageWord = (word: string) => word.startsWith("invalid_image") || imageWords.has(word)
/** Part of a code, such as `InternalError.Algo.DataInspectionFailed`. */
const isSensitive = (word: string) => /sensitivecontentdetected|\bdatainspectionfailed\b/.test(word)

const classOfWord = (word: string): FailureClass | undefined => (isSensitive(word) ? "moderation" : classes.get(word))

/** Messages without a code of their own: the whole, or the first words, since later ones may quote the customer. */
export const moderationMessage =
  /^(<\d{3}> )?(content exists risk\b|internalerror\.algo\.datainspectionfailed\b|(input|output)( text| image)? data may contain inappropriate content\b|(input|output) new_sensitive\b|content violates usage guidelines\b)/i

/** What an error response means. An event has neither a status of its own nor headers. */
export type DecodeFailure = (account: ProviderAccount, response: UpstreamResponse, nowMillis: number) => ProviderFailure

/** Lower-case `words`, in order of weight. */
interface HostError {
  readonly words: ReadonlyArray<string>
  readonly param: string | undefined
  /** Some hosts put a status where the code should be. */
  readonly status: number | undefined
  readonly moderated: boolean
  /** For the log, never for a client. */
  readonly message: string
}

export interface Classification {
  readonly class: FailureClass
  readonly retryAfterSeconds: number | undefined
  readonly param: string | undefined
  readonly ofRequest?: boolean | undefined
}

const wordOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" || typeof value === "number" ? [String(value).toLowerCase()] : []

const statusIn = (words: ReadonlyArray<string>): number | undefined => {
  const status = words.find((word) => /^[45]\d\d$/.test(word))
  return status === undefined ? undefined : Number(status)
}

/** Whether a body says by its `base_resp` that it is no answer. */
export const hasFailedStatus = ({ base_resp }: Readonly<Record<PropertyKey, unknown>>): boolean =>
  Predicate.isRecord(base_resp) && Number(base_resp.status_code ?? 0) !== 0

/** Reads `{error: {…}}`, `{error: "text"}`, a flat error, `{detail: […]}`, or one in an array. */
export const readHostError = (body: unknown): HostError | undefined => {
  const outer = Array.isArray(body) ? body[0] : body
  if (!Predicate.isRecord(outer)) return undefined
  const error = Predicate.isRecord(outer.error) ? outer.error : outer
  const inner = Predicate.isRecord(error.innererror) ? error.innererror : {}
  const metadata = Predicate.isRecord(error.metadata) ? error.metadata : {}
  const details = [error.details, error.detail].flat().filter(Predicate.isRecord)
  const [missing] = details.filter((detail) => detail.type === "extra_forbidden")
  const status = Predicate.isRecord(outer.base_resp) ? outer.base_resp : {}
  const codes = [...wordOf(error.code), ...wordOf(outer.code)]
  const words = [
    ...(hasFailedStatus(outer) ? [statusWord(status.status_code)] : []),
    ...codes,
    ...wordOf(inner.code),
    ...wordOf(error.type),
    ...wordOf(error.status)
  ]
  const field = missing !== undefined && Array.isArray(missing.loc) ? missing.loc[1] : error.param
  return {
    words: [...words, ...details.flatMap((detail) => [...wordOf(detail.reason), ...wordOf(detail.type)])],
    param: typeof field === "string" ? field : undefined,
    status: statusIn(codes),
    moderated: Array.isArray(metadata.reasons) && metadata.reasons.length > 0,
    message: [error.message, outer.error, outer.detail, status.status_msg].find(Predicate.isString) ?? ""
  }
}

export const readHeader = (headers: UpstreamHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}

const numeric = /^\d+(\.\d+)?$/
const httpDate = /^[A-Za-z]{3}/

export const retryAfterSeconds = (headers: UpstreamHeaders, nowMillis: number): number | undefined => {
  const millis = readHeader(headers, "retry-after-ms")?.trim()
  if (millis !== undefined && numeric.test(millis)) return Number(millis) / 1_000
  const text = readHeader(headers, "retry-after")?.trim()
  if (text === undefined) return undefined
  if (numeric.test(text)) return Number(text)
  if (!httpDate.test(text)) return undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - nowMillis) / 1_000)
}

/** The request is malformed, or its body, address or headers are too large. */
const requestStatuses: ReadonlySet<number> = new Set([400, 413, 414, 422, 431])

export const classOfStatus = (status: number): FailureClass => {
  if (requestStatuses.has(status)) return "request"
  if (status === 401 || status === 402 || status === 403) return "account"
  return status === 429 ? "limit" : "retry"
}

/** A web filter's block page in front of the host: HTML, or one line for clients that are no browsers. */
const filterPage = /^\s*(<|error code: 1\d{3}\b)/i

/** Text without JSON comes from a proxy, which knows nothing of the request. */
const classOfText = (status: number, body: string): FailureClass => {
  if (body.trim() === "") return classOfStatus(status)
  return status === 400 || status === 422 || (status === 403 && filterPage.test(body)) ? "retry" : classOfStatus(status)
}

/** One request alone is above what the account may use in a minute. */
const tooLargeForLimit = /^request too large\b/i

/** The body counts before the status; `imageParam` is the field with this surface's images. */
export const classify = (
  answer: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image"
): Classification => {
  const after = retryAfterSeconds(answer.headers, nowMillis)
  const body = parseJson(answer.body)
  const error = body === undefined ? undefined : readHostError(body)
  const classificationOf = (failure: FailureClass, param?: string): Classification => ({
    class: failure,
    retryAfterSeconds: after,
    param,
    ...(failure === "limit" && tooLargeForLimit.test(error?.message ?? "") && { ofRequest: true })
  })
  if (body === undefined) return classificationOf(classOfText(answer.status, answer.body))
  const status = answer.status < 400 ? (error?.status ?? answer.status) : answer.status
  if (error === undefined) return classificationOf(classOfStatus(status))
  if (status === 403 && error.moderated) return classificationOf("moderation")
  if (moderationMessage.test(error.message)) return classificationOf("moderation")
  for (const word of error.words) {
    const known = classOfWord(word)
    if (known !== undefined) return classificationOf(known)
    if (isImageWord(word)) return classificationOf("request", imageParam)
  }
  const byStatus = classOfStatus(status)
  return classificationOf(byStatus === "request" && error.words.includes("model_not_found") ? "retry" : byStatus)
}

/** A body of a good status may be output, which is never logged. */
const detailOf = (answer: UpstreamResponse, error: HostError | undefined): string => {
  if (error !== undefined) return [answer.status, ...error.words, error.param ?? "", error.message].join(" ")
  return answer.status < 400 ? `${answer.status} without an answer` : `${answer.status} ${answer.body}`
}

/** Often the address is wrong, such as one without /v1, and not the model. */
const addressOf = ({ baseUrl }: ProviderAccount, { status }: UpstreamResponse): string =>
  status === 404 || status === 405 ? `(base_url ${baseUrl}) ` : ""

export const decodeFailure = (
  account: ProviderAccount,
  answer: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image" = "messages"
): ProviderFailure => {
  const error = readHostError(parseJson(answer.body))
  return new ProviderFailure({
    ...classify(answer, nowMillis, imageParam),
    status: answer.status < 400 ? (error?.status ?? answer.status) : answer.status,
    detail: toLoggable(account, addressOf(account, answer) + detailOf(answer, error))
  })
}

export const protocolFailure = (account: ProviderAccount, status: number, what: string): ProviderFailure =>
  new ProviderFailure({ class: "retry", status, detail: toLoggable(account, what) })

/** Names where it was thrown, and nothing of its message, which may hold output. */
const describeDefect = (defect: unknown): string => {
  if (!(defect instanceof Error)) return typeof defect
  const frame = defect.stack?.split("\n").find((line) => /^\s+at /.test(line)) ?? ""
  return `${defect.name}${frame.trimEnd()}`
}

/** What a decoder throws is the response's fault: another route may do better. */
export const decodingFailure = (account: ProviderAccount, status: number, defect: unknown): ProviderFailure =>
  protocolFailure(account, status, `a response that cannot be decoded: ${describeDefect(defect)}`)

/** The route cannot do this as the catalog has it; another one may. */
export const unsentFailure = ({ id, provider }: RouteBase, what: string): ProviderFailure =>
  new ProviderFailure({
    class: "retry",
    status: undefined,
    unsent: true,
    detail: toLoggable(provider, `${id}: ${what}`)
  })

type FailureFields = ConstructorParameters<typeof ProviderFailure>[0]

export const amendFailure = (failure: ProviderFailure, changes: Partial<FailureFields>): ProviderFailure => {
  const {
    class: kind,
    detail,
    ofRequest,
    param,
    reason,
    reasonCode,
    retryAfterSeconds,
    spent,
    status,
    unsent
  } = failure
  const fields = { class: kind, status, retryAfterSeconds, unsent, ofRequest, param, spent, reason, reasonCode, detail }
  return new ProviderFailure({ ...fields, ...changes })
}

export const withSpent = (failure: ProviderFailure, spent: Usage | undefined): ProviderFailure =>
  spent === undefined ? failure : amendFailure(failure, { spent })

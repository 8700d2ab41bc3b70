import { Predicate, Record, Redacted } from "effect"
import type { Usage } from "../../domain/Chat.ts"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import type { UpstreamHeaders, UpstreamResponse } from "./Exchange.ts"
import { asFields, asText, parseJson } from "./JsonFields.ts"
import { toLoggable } from "./Upstream.ts"

/** MiniMax sends its codes in `base_resp.status_code`, usually with status 200. */
const statusWord = (code: unknown): string => `base_resp ${String(code)}`
const statusWords = (...codes: ReadonlyArray<number>): ReadonlyArray<string> => codes.map(statusWord)

/** Providers' error codes by failure class, in lower case. */
const wordsOfClass = {
  limit: [
    // Requests, tokens or connections per minute.
    ...statusWords(1002, 1039, 1041),
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded"
  ],
  account: [
    // A missing or wrong credential, no balance, or a plan that is exhausted or lacks the model.
    ...statusWords(1004, 1008, 2049, 2056, 2061),
    "insufficient_balance_error",
    // GLM sends this code with status 429.
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
    // 1026 is refused input, 1027 refused output.
    ...statusWords(1026, 1027),
    // GLM's code.
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
  // 2013 is a wrong parameter, 1042 too many invisible characters.
  request: ["context_length_exceeded", ...statusWords(2013, 1042)]
} satisfies Partial<Record<FailureClass, ReadonlyArray<string>>>

const classByWord: ReadonlyMap<string, FailureClass> = new Map(
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
/** Matches a part of a code, such as `InternalError.Algo.DataInspectionFailed`. */
const isSensitive = (word: string) => /sensitivecontentdetected|\bdatainspectionfailed\b/.test(word)

const classOfWord = (word: string): FailureClass | undefined =>
  isSensitive(word) ? "moderation" : classByWord.get(word)

/** Moderation messages without a code of their own. Only their start is matched, because the rest may quote the customer. */
export const moderationMessage =
  /^(<\d{3}> )?(content exists risk\b|internalerror\.algo\.datainspectionfailed\b|(input|output)( text| image)? data may contain inappropriate content\b|(input|output) new_sensitive\b|content violates usage guidelines\b)/i

/** Classifies an error response. For an error event, the status is 200 and the headers are empty. */
export type DecodeFailure = (account: ProviderAccount, response: UpstreamResponse, nowMillis: number) => ProviderFailure

/** `words` are lower-case codes, the most specific first. */
interface ProviderError {
  readonly words: ReadonlyArray<string>
  readonly param: string | undefined
  /** The HTTP status that some providers send as the code. */
  readonly status: number | undefined
  readonly isModerated: boolean
  /** For the log only, never for a client. */
  readonly message: string
}

export interface Classification {
  readonly class: FailureClass
  readonly retryAfterSeconds: number | undefined
  readonly param: string | undefined
  readonly isRequestFault?: boolean | undefined
}

const wordOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" || typeof value === "number" ? [String(value).toLowerCase()] : []

const statusIn = (words: ReadonlyArray<string>): number | undefined => {
  const status = words.find((word) => /^[45]\d\d$/.test(word))
  return status === undefined ? undefined : Number(status)
}

/** Whether the `base_resp` of a body reports an error. */
export const hasFailedStatus = ({ base_resp }: Readonly<Record<PropertyKey, unknown>>): boolean =>
  Predicate.isRecord(base_resp) && Number(base_resp.status_code ?? 0) !== 0

/** Reads `{error: {…}}`, `{error: "text"}`, a flat error, `{detail: […]}`, or any of them in an array. */
export const readProviderError = (body: unknown): ProviderError | undefined => {
  const outer = Array.isArray(body) ? body[0] : body
  if (!Predicate.isRecord(outer)) return undefined
  const error = Predicate.isRecord(outer.error) ? outer.error : outer
  const inner = Predicate.isRecord(error.innererror) ? error.innererror : {}
  const metadata = Predicate.isRecord(error.metadata) ? error.metadata : {}
  const details = [error.details, error.detail].flat().filter(Predicate.isRecord)
  const [extraField] = details.filter((detail) => detail.type === "extra_forbidden")
  const status = Predicate.isRecord(outer.base_resp) ? outer.base_resp : {}
  const codes = [...wordOf(error.code), ...wordOf(outer.code)]
  const words = [
    ...(hasFailedStatus(outer) ? [statusWord(status.status_code)] : []),
    ...codes,
    ...wordOf(inner.code),
    ...wordOf(error.type),
    ...wordOf(error.status)
  ]
  const field = extraField !== undefined && Array.isArray(extraField.loc) ? extraField.loc[1] : error.param
  return {
    words: [...words, ...details.flatMap((detail) => [...wordOf(detail.reason), ...wordOf(detail.type)])],
    param: typeof field === "string" ? field : undefined,
    status: statusIn(codes),
    isModerated: Array.isArray(metadata.reasons) && metadata.reasons.length > 0,
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

/** Statuses for a malformed request, or for a body, URL or headers that are too large. */
const requestStatuses: ReadonlySet<number> = new Set([400, 413, 414, 422, 431])

export const classOfStatus = (status: number): FailureClass => {
  if (requestStatuses.has(status)) return "request"
  if (status === 401 || status === 402 || status === 403) return "account"
  return status === 429 ? "limit" : "retry"
}

/** The block page of a web filter in front of the provider: HTML, or one line for clients other than browsers. */
const filterPage = /^\s*(<|error code: 1\d{3}\b)/i

/** Text that is no JSON comes from a proxy, which cannot judge the request. */
const classOfText = (status: number, body: string): FailureClass => {
  if (body.trim() === "") return classOfStatus(status)
  return status === 400 || status === 422 || (status === 403 && filterPage.test(body)) ? "retry" : classOfStatus(status)
}

/** The request alone exceeds the account's limit per minute, so waiting does not help. */
const exceedsLimitMessage = /^request too large\b/i

/** Classifies by the body first, then by the status. `imageParam` is the request field that contains images. */
export const classify = (
  response: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image"
): Classification => {
  const retryAfter = retryAfterSeconds(response.headers, nowMillis)
  const body = parseJson(response.body)
  const error = body === undefined ? undefined : readProviderError(body)
  const classificationOf = (failure: FailureClass, param?: string): Classification => ({
    class: failure,
    retryAfterSeconds: retryAfter,
    param,
    ...(failure === "limit" && exceedsLimitMessage.test(error?.message ?? "") && { isRequestFault: true })
  })
  if (body === undefined) return classificationOf(classOfText(response.status, response.body))
  const status = response.status < 400 ? (error?.status ?? response.status) : response.status
  if (error === undefined) return classificationOf(classOfStatus(status))
  if (status === 403 && error.isModerated) return classificationOf("moderation")
  if (moderationMessage.test(error.message)) return classificationOf("moderation")
  for (const word of error.words) {
    const wordClass = classOfWord(word)
    if (wordClass !== undefined) return classificationOf(wordClass)
    if (isImageWord(word)) return classificationOf("request", imageParam)
  }
  const statusClass = classOfStatus(status)
  return classificationOf(statusClass === "request" && error.words.includes("model_not_found") ? "retry" : statusClass)
}

/** A body with a success status may be model output, which is never logged. */
const detailOf = (response: UpstreamResponse, error: ProviderError | undefined): string => {
  if (error !== undefined) return [response.status, ...error.words, error.param ?? "", error.message].join(" ")
  return response.status < 400 ? `${response.status} without an answer` : `${response.status} ${response.body}`
}

/** A 404 often means a wrong `base_url`, for example without /v1, and not an unknown model. */
const addressOf = ({ baseUrl }: ProviderAccount, { status }: UpstreamResponse): string =>
  status === 404 || status === 405 ? `(base_url ${baseUrl}) ` : ""

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image" = "messages"
): ProviderFailure => {
  const error = readProviderError(parseJson(response.body))
  return new ProviderFailure({
    ...classify(response, nowMillis, imageParam),
    status: response.status < 400 ? (error?.status ?? response.status) : response.status,
    detail: toLoggable(account, addressOf(account, response) + detailOf(response, error))
  })
}

export const protocolFailure = (account: ProviderAccount, status: number, detail: string): ProviderFailure =>
  new ProviderFailure({ class: "retry", status, detail: toLoggable(account, detail) })

/** Returns where the error was thrown. Its message is omitted because it may contain model output. */
const describeDefect = (defect: unknown): string => {
  if (!(defect instanceof Error)) return typeof defect
  const frame = defect.stack?.split("\n").find((line) => /^\s+at /.test(line)) ?? ""
  return `${defect.name}${frame.trimEnd()}`
}

/** A decoder throws because of an unexpected response. Another route may succeed. */
export const decodingFailure = (account: ProviderAccount, status: number, defect: unknown): ProviderFailure =>
  protocolFailure(account, status, `a response that cannot be decoded: ${describeDefect(defect)}`)

/** Returns the failure of a route that does not support the request and was not called. */
export const unsentFailure = ({ id, provider }: RouteBase, detail: string): ProviderFailure =>
  new ProviderFailure({
    class: "retry",
    status: undefined,
    isUnsent: true,
    detail: toLoggable(provider, `${id}: ${detail}`)
  })

type FailureFields = ConstructorParameters<typeof ProviderFailure>[0]

export const amendFailure = (failure: ProviderFailure, changes: Partial<FailureFields>): ProviderFailure => {
  const {
    class: kind,
    detail,
    isRequestFault,
    param,
    reason,
    reasonCode,
    retryAfterSeconds,
    spent,
    status,
    isUnsent
  } = failure
  const fields = {
    class: kind,
    status,
    retryAfterSeconds,
    isUnsent,
    isRequestFault,
    param,
    spent,
    reason,
    reasonCode,
    detail
  }
  return new ProviderFailure({ ...fields, ...changes })
}

export const withSpent = (failure: ProviderFailure, spent: Usage | undefined): ProviderFailure =>
  spent === undefined ? failure : amendFailure(failure, { spent })

const maxLength = 300
/** Bounds the input, because some expressions take quadratic time. */
const maxSourceLength = 2_000

type Rule = readonly [pattern: RegExp, replacement: string]

const topLevels =
  "com|net|org|io|ai|dev|app|cloud|co|us|uk|eu|de|ch|fr|cn|jp|info|biz|tech|xyz|goog|google|internal|intern|local|localdomain|lan|corp|svc|cluster|test|example|invalid|arpa"
const owner = "organi[sz]ation|project|workspace|account|tenant|team|subscription"

/** Call ids stay because they are the client's own. Field paths and names of tools and betas stay too. */
const redactionRules: ReadonlyArray<Rule> = [
  [/(?<!\w)[a-z][a-z0-9+.-]{0,30}:\/\/\S+/giu, "[url]"],
  [/(?<!\w)data:[^\s,]*,\S+/giu, "[data]"],
  [/[^\s@<>"'`(),;:]+@[^\s@<>"'`(),;:]+/gu, "[email]"],
  [/(?<![\w-])(?:bearer|basic)\s+(?=\S*\d)[\w\-.~+/*]{6,}=*/giu, "[key]"],
  [
    /(?<![\w-])(?:sk|pk|rk|ak|gsk|xai|ggw|r8|hf|gh[a-z]|glpat|fal|fw|nvapi|pplx|csk|tgp|key)[-_](?=[\w*.-]*[\d*])[\w*.-]{4,}/giu,
    "[key]"
  ],
  [/(?<![\w-])(?:AIza|AKIA|ASIA|ya29|eyJ)[\w\-.*]{6,}/gu, "[key]"],
  [
    /\b((?:projects|accounts|organizations|subscriptions|resourceGroups|workspaces|tenants)\/)[^\s/"'`,;)]+/giu,
    "$1[name]"
  ],
  [/(?<!\w)arn:\S+/giu, "[id]"],
  [
    new RegExp(
      `(?<![\\w.-])(?:[a-z0-9][a-z0-9_-]{0,62}\\.)+(?:${topLevels})(?![\\w-]|\\.\\w)(?::\\d+)?(?:/\\S*)?`,
      "giu"
    ),
    "[host]"
  ],
  [/(?<![\w.-])(?:localhost|[a-z][a-z0-9]*(?:[-.][a-z0-9]+)+(?=:\d))(?::\d{1,5})?(?!\w)(?:\/\S*)?/giu, "[host]"],
  [/(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?::\d+|\/\d+)?(?![\w-]|\.\d)/gu, "[host]"],
  [
    /\[?(?<![\w:])(?:(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){0,6}:(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4})(?![\w:])\]?/giu,
    "[host]"
  ],
  [/\b((?:request|trace|correlation|ray)[ _-]?id["'`]?\s*[:=#]?\s*)["'`]?(?=[\w.-]*\d)[\w.-]+/giu, "$1[id]"],
  [
    new RegExp(
      `\\b((?:${owner})(?:[ _-](?:id|name|number))?(?:\\s*[:=]\\s*|\\s+))(?:"[^"]+"|'[^']+'|\`[^\`]+\`|(?<=[:=]\\s*)[^\\s,;)]+|(?=[^\\s,;)]*[\\d_-])[^\\s,;)]+)`,
      "giu"
    ),
    "$1[name]"
  ],
  [
    /\b((?:[Oo]rganization|[Pp]roject|[Ww]orkspace|[Aa]ccount|[Tt]enant|[Tt]eam) )(?!I[Dd]\b|Name\b)[A-Z][\w&.-]*(?: [A-Z][\w&.-]*)*/gu,
    "$1[name]"
  ],
  [/(?<![\w-])(?:req|resp|msg|chatcmpl|cmpl|gen|org|proj|wrkspc|acct)[-_](?=[\w-]*\d|[\w-]{8})[\w-]+/giu, "[id]"],
  [
    /(?<![\w-])(?:rs|ws|file|user|session|container|cntr|vs|asst|thread|run|batch|ft|evt|cus)[-_](?=[\w-]*\d)[\w-]{6,}/giu,
    "[id]"
  ],
  [/(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])/giu, "[id]"],
  [/(?<![\w-])(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{24,}(?![\w-])/giu, "[id]"]
]

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

const truncate = (text: string): string => {
  if (text.length <= maxLength) return text
  const end = /[\uD800-\uDBFF]/.test(text.charAt(maxLength - 2)) ? maxLength - 2 : maxLength - 1
  return `${text.slice(0, end)}…`
}

/**
 * Returns a provider's message in at most 300 characters, without ids, keys, addresses and account names. `model`
 * replaces the route's model name.
 */
export const cleanReason = (message: string, { model: routeModel, provider }: RouteBase, model: string): string => {
  const { baseUrl = "", credential } = provider
  const secret = credential === undefined ? "" : Redacted.value(credential)
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  const routeRules: ReadonlyArray<Rule> = [
    [/[\p{Cf}\p{Cs}\p{Co}]/gu, ""],
    [/[\p{Cc}\p{Z}]+/gu, " "],
    ...(secret === "" ? [] : [[new RegExp(escapeRegExp(secret), "gu"), "[key]"] as const]),
    ...(host === ""
      ? []
      : [[new RegExp(`(?<![\\w.-])${escapeRegExp(host)}(?![\\w-])(?::\\d+)?`, "giu"), "[host]"] as const]),
    [
      new RegExp(`(?<![\\w.-])${escapeRegExp(routeModel)}(?:-\\d{4}-\\d\\d-\\d\\d|-\\d{8})?(?![\\w-])`, "giu"),
      model.replaceAll("$", "$$$$")
    ]
  ]
  const source = message.slice(0, maxSourceLength)
  return truncate(
    [...routeRules, ...redactionRules]
      .reduce((text, [pattern, replacement]) => text.replaceAll(pattern, replacement), source)
      .trim()
  )
}

const contextExceeded =
  /prompt is too long|context[_ ](?:length|window|limit)|maximum context|exceeds? the (?:model's )?(?:context|maximum[^.]{0,40}tokens)|input token count|too many (?:input )?tokens/i

/** OpenRouter wraps the vendor's own error in `metadata.raw`. */
const messageIn = (body: unknown): string => {
  const { raw } = asFields(asFields(asFields(body).error).metadata)
  return readProviderError(parseJson(asText(raw)))?.message || (readProviderError(body)?.message ?? "")
}

/** Adds the provider's reason to a failure of class `request`. Clients parse it, for example to shorten the conversation. */
export const withReason = (
  failure: ProviderFailure,
  text: string,
  route: RouteBase,
  model: string
): ProviderFailure => {
  if (failure.class !== "request") return failure
  const body = parseJson(text)
  const message = messageIn(body)
  const isExceeded =
    readProviderError(body)?.words.includes("context_length_exceeded") === true || contextExceeded.test(message)
  return amendFailure(failure, {
    reason: cleanReason(message, route, model) || undefined,
    reasonCode: isExceeded ? "context_length_exceeded" : undefined
  })
}

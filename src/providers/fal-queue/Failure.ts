import { Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { classify, hostError, parse, type Verdict } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { loggable } from "../client/Upstream.ts"

/** What fal says of an error: a list of typed details from a model, one type from the queue. */
interface FalError {
  readonly type: string | undefined
  readonly details: ReadonlyArray<{ readonly type: string; readonly loc: ReadonlyArray<string>; readonly msg: string }>
  readonly text: string
  readonly retryable: boolean
}

const header = ({ headers }: UpstreamAnswer, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}

const string = (value: unknown): string => (typeof value === "string" ? value : "")

const errorIn = (answer: UpstreamAnswer): FalError => {
  const body = parse(answer.body)
  const { detail, error_type: type } = Predicate.isRecord(body) ? body : {}
  const details = (Array.isArray(detail) ? detail : []).filter(Predicate.isRecord).map((one) => ({
    type: string(one.type),
    loc: Array.isArray(one.loc) ? one.loc.map(String) : [],
    msg: string(one.msg)
  }))
  return {
    type: typeof type === "string" ? type : header(answer, "x-fal-error-type"),
    details,
    text: [string(detail), hostError(body)?.message ?? "", ...details.map(({ msg }) => msg)].join(" ").trim(),
    retryable: header(answer, "x-fal-retryable")?.toLowerCase() === "true"
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

const verdictOf = (answer: UpstreamAnswer, error: FalError, nowMillis: number): Verdict => {
  const verdict = classify(answer, nowMillis, "image")
  const { details, retryable, text } = error
  if (settled.has(verdict.class)) return verdict
  if (/exhausted balance/i.test(text)) return { ...verdict, class: "account" }
  if (retryable || details.some(({ type }) => modelTypes.has(type))) {
    return { ...verdict, class: "retry", param: undefined }
  }
  const image = details.some(({ loc, type }) => imageTypes.has(type) || loc.some((word) => imageField.test(word)))
  return verdict.class === "request" && image ? { ...verdict, param: "image" } : verdict
}

/** The failure that an answer means, with a word of it for the operator. */
export const refusal = (account: ProviderAccount, answer: UpstreamAnswer, nowMillis: number): ProviderFailure => {
  const error = errorIn(answer)
  const fields = error.details.map(({ loc, type }) => `${type} at ${loc.join(".")}`)
  const said = [error.type ?? "", ...fields, error.text].join(" ").trim()
  const fallback = answer.status < 400 ? "without an answer" : answer.body
  return new ProviderFailure({
    ...verdictOf(answer, error, nowMillis),
    status: answer.status,
    detail: loggable(account, `${answer.status} ${said === "" ? fallback : said}`)
  })
}

/** Whether the result was asked for before there was one. */
export const isEarly = (answer: UpstreamAnswer): boolean =>
  answer.status === 400 && /\bin (progress|queue)\b/i.test(errorIn(answer).text)

/**
 * Whether a result's refusal says what became of the job, rather than that it could not be asked for: a model's or
 * the queue's own typed error does, and so does any fault of the request.
 */
export const isOutcome = (answer: UpstreamAnswer, failure: ProviderFailure): boolean => {
  if (failure.class === "moderation" || failure.class === "request") return true
  if (failure.class !== "retry") return false
  const { details, type } = errorIn(answer)
  return type !== undefined || details.some((detail) => detail.type !== "")
}

import { Match, Schema } from "effect"
import { type CapSpend, rateWindowSeconds } from "../../domain/ApiKey.ts"
import { described } from "../../domain/Constraints.ts"
import type { Failure, InsufficientCredits, ModelNotFound, ReasonCode } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { quoteModel } from "../../domain/Model.ts"
import { toUsdText } from "../../domain/Money.ts"
import { pluralize } from "../../domain/Plural.ts"
import { explainReference, referenceProblems, unusableReference } from "../../domain/ReferenceProblem.ts"
import { internalFailure } from "../../services/requests/RequestEntry.ts"

export const ErrorType = Schema.Literal(
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "rate_limit_error",
  "insufficient_quota",
  "content_policy_violation",
  "api_error",
  "service_unavailable"
)
export type ErrorType = typeof ErrorType.Type

export const ErrorCode = Schema.Literal(
  "invalid_api_key",
  "insufficient_quota",
  "spend_limit_exceeded",
  "payment_disputed",
  "insufficient_scope",
  "insufficient_role",
  "not_signed_in",
  "foreign_origin",
  "not_found",
  "conflict",
  "access_denied",
  "model_not_found",
  "model_not_allowed",
  "unknown_endpoint",
  "idempotency_conflict",
  "video_not_finished",
  "request_too_large",
  "context_length_exceeded",
  "rate_limit_exceeded",
  "tokens_limit_exceeded",
  "concurrency_limit_exceeded",
  "internal_error",
  "upstream_error",
  "no_provider_available",
  "timeout"
)
type ErrorCode = typeof ErrorCode.Type

/** Absent if there is nothing to add. */
export const Hint = described(Schema.String, "How to fix it: an amount, a limit, a path or a model.")

export const Envelope = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String.annotations({ description: "For people." }),
    type: ErrorType,
    param: Schema.NullOr(Schema.String).annotations({ description: "The request field at fault, where there is one." }),
    code: Schema.NullOr(ErrorCode).annotations({ description: "For machines; more precise than the status." }),
    hint: Hint
  })
}).annotations({ identifier: "Error", description: "Every error of the API." })
export type Envelope = typeof Envelope.Type

export interface WireError {
  readonly status: number
  readonly body: Envelope
  /** What the host said, cleaned; some dialects pass it on. */
  readonly reason?: string | undefined
  readonly reasonCode?: ReasonCode | undefined
  readonly headers?: Readonly<Record<string, string>>
}

const answer = (
  status: number,
  type: ErrorType,
  code: ErrorCode | null,
  message: string,
  param: string | null = null
): WireError => ({ status, body: { error: { message, type, param, code } } })

const withHint = ({ body: { error }, ...wire }: WireError, hint: string | undefined): WireError => ({
  ...wire,
  body: { error: hint === undefined ? error : { ...error, hint } }
})

const badRequest = (message: string, param: string | null = null): WireError =>
  answer(400, "invalid_request_error", null, message, param)

const limited = (code: ErrorCode, message: string, retryAfter: number): WireError => ({
  ...answer(429, "rate_limit_error", code, message),
  headers: { "retry-after": String(retryAfter) }
})

const upstreamError = answer(502, "api_error", "upstream_error", "The upstream provider returned an error.")
const timedOut = answer(504, "api_error", "timeout", "The request exceeded the allowed time.")

const unavailable = (message: string): WireError => answer(503, "service_unavailable", "no_provider_available", message)
const noProvider = unavailable("No healthy provider is available for this model.")

/** A restart takes a few seconds; another instance answers sooner. */
const restarting: WireError = {
  ...answer(503, "service_unavailable", null, "The gateway is restarting; retry."),
  headers: { "retry-after": "5" }
}

export const internalError = answer(500, "api_error", "internal_error", internalFailure.message)

/** A retry may succeed once the database is back. */
export const outage: WireError = { ...internalError, headers: { "retry-after": "5" } }

const unknownEndpoint = answer(404, "not_found_error", "unknown_endpoint", "Unknown endpoint.")
const invalidApiKey = answer(401, "authentication_error", "invalid_api_key", "Invalid API key provided.")

const conflict = (code: ErrorCode, message: string): WireError => ({
  ...answer(409, "invalid_request_error", code, message),
  // The official clients would repeat a 409 at once, and then again.
  headers: { "x-should-retry": "false" }
})

const kindOf: Record<Surface, string> = { chat: "a chat", image: "an image", video: "a video" }

const pathOf: Record<Surface, string> = {
  chat: "/v1/chat/completions",
  image: "/v1/images/generations",
  video: "/v1/videos"
}

const list = (items: ReadonlyArray<string>, conjunction: "and" | "or"): string =>
  [items.slice(0, -1).join(", "), ...items.slice(-1)].filter((part) => part !== "").join(` ${conjunction} `)

const modelHint = ({ elsewhere, suggestions = [] }: ModelNotFound): string | undefined => {
  if (elsewhere !== undefined) {
    const { id, surface } = elsewhere
    return `${quoteModel(id)} is ${kindOf[surface]} model: use ${pathOf[surface]}.`
  }
  return suggestions.length === 0 ? undefined : `Did you mean ${list(suggestions.map(quoteModel), "or")}?`
}

const fundsHint = ({ available, isLeast, needed }: InsufficientCredits): string => {
  const bound = isLeast ? "at least" : "up to"
  const need = needed === undefined ? "" : `The request needs ${bound} ${toUsdText(needed)} USD; `
  return `${need}${toUsdText(available)} USD is available.`
}

const capHint = ({ cap, held, resetsAt, spent }: CapSpend): string => {
  const videos = held > 0n ? `, and ${toUsdText(held)} USD is held for videos` : ""
  const reset = resetsAt === undefined ? "" : ` The limit resets at ${resetsAt.toISOString().replace(".000", "")}.`
  return `${toUsdText(spent)} of ${toUsdText(cap)} USD is spent${videos}.${reset}`
}

/** Adapters name these fields only for a reference image that the provider could not read. */
const imageParams: ReadonlySet<string | null> = new Set(["messages", "image"])

export const toWire: (failure: Failure) => WireError = Match.typeTags<Failure, WireError>()({
  InvalidRequest: ({ hint, message, param }) => withHint(badRequest(message, param), hint),
  UpstreamRejected: ({ param, reason, reasonCode }) => ({
    ...(imageParams.has(param)
      ? withHint(badRequest(unusableReference, param), explainReference(referenceProblems.provider))
      : badRequest("Upstream rejected the request.", param)),
    ...(reason === undefined ? undefined : { reason }),
    ...(reasonCode === undefined ? undefined : { reasonCode })
  }),
  ContentRejected: () =>
    answer(400, "content_policy_violation", null, "Content was rejected by the moderation system."),
  MissingApiKey: () => answer(401, "authentication_error", "invalid_api_key", "Missing API key."),
  InvalidApiKey: () => invalidApiKey,
  OrganizationSuspended: () => withHint(invalidApiKey, "The organization of this key is suspended."),
  InsufficientCredits: (failure) =>
    withHint(answer(402, "insufficient_quota", "insufficient_quota", "Insufficient credits."), fundsHint(failure)),
  SpendLimitReached: ({ of = "key", period, spend }) => {
    const message = `This ${of} has reached its ${period} spend limit.`
    return withHint(answer(402, "insufficient_quota", "spend_limit_exceeded", message), spend && capHint(spend))
  },
  PaymentDisputed: () =>
    answer(402, "insufficient_quota", "payment_disputed", "Requests are suspended while a payment is disputed."),
  InsufficientScope: ({ scope }) =>
    answer(403, "permission_error", "insufficient_scope", `API key lacks scope: ${scope}`),
  AddressBlocked: () => answer(403, "permission_error", "access_denied", "Access denied."),
  ModelNotFound: (failure) => {
    const { model, surface } = failure
    const other = surface === undefined ? "" : ` or is not ${kindOf[surface]} model`
    const message = `The model ${quoteModel(model)} does not exist${other}.`
    return withHint(answer(404, "not_found_error", "model_not_found", message, "model"), modelHint(failure))
  },
  ModelNotAllowed: ({ model }) =>
    answer(
      403,
      "permission_error",
      "model_not_allowed",
      `API key may not use the model ${quoteModel(model)}.`,
      "model"
    ),
  VideoNotFound: () => answer(404, "not_found_error", null, "No such video."),
  UnknownEndpoint: () => unknownEndpoint,
  MisspeltPath: ({ meant }) => withHint(unknownEndpoint, `Did you mean ${meant}?`),
  UnknownMethod: ({ methods, path }) => withHint(unknownEndpoint, `${path} accepts ${list(methods, "and")}.`),
  BodyTooLarge: ({ limitBytes }) =>
    answer(413, "invalid_request_error", "request_too_large", `The request body is larger than ${limitBytes} bytes.`),
  BodyTooSlow: ({ bytesPerSecond }) => ({
    ...badRequest(`The request body arrived too slowly: less than ${bytesPerSecond} bytes a second.`),
    headers: { connection: "close" }
  }),
  GatewayBusy: () => ({
    ...answer(503, "service_unavailable", null, "The gateway is busy; retry later."),
    headers: { "retry-after": "5" }
  }),
  RequestNotFound: () => answer(404, "not_found_error", null, "No such request."),
  VideoNotFinished: () =>
    conflict("video_not_finished", "The video can only be deleted once it is completed or failed."),
  IdempotencyConflict: () =>
    conflict("idempotency_conflict", "A request with the same `Idempotency-Key` is still in flight."),
  RateLimited: ({ limit }) =>
    withHint(
      // The worst case of the window's remainder.
      limited("rate_limit_exceeded", "Rate limit exceeded.", rateWindowSeconds),
      `The limit of this key is ${pluralize(limit, "request")} per minute.`
    ),
  TokensLimited: ({ limit, retryAfterSeconds }) => {
    const message = `Rate limit exceeded: ${limit} tokens per minute for this key.`
    return limited("tokens_limit_exceeded", message, retryAfterSeconds)
  },
  ConcurrencyLimited: ({ limit }) =>
    limited("concurrency_limit_exceeded", `Too many requests at once for this key; the limit is ${limit}.`, 1),
  SettleFailed: () => outage,
  UpstreamFailed: () => upstreamError,
  UpstreamAuthFailed: () => answer(502, "api_error", "upstream_error", "Upstream authentication failed."),
  AllProvidersFailed: ({ provider, status }) => unavailable(`All providers failed (last: ${provider} ${status}).`),
  NoHealthyProvider: () => noProvider,
  NotSignedIn: ({ message }) => answer(401, "authentication_error", "not_signed_in", message),
  InsufficientRole: ({ needed }) =>
    answer(403, "permission_error", "insufficient_role", `This needs the role ${needed}.`),
  ForeignOrigin: () => answer(403, "permission_error", "foreign_origin", "The request comes from another site."),
  SignInLimited: ({ retryAfterSeconds }) =>
    limited("rate_limit_exceeded", "Too many failed attempts to sign in: wait.", retryAfterSeconds),
  ChangesLimited: ({ limit, retryAfterSeconds }) =>
    limited("rate_limit_exceeded", `An organization's members may make ${limit} changes a minute.`, retryAfterSeconds),
  NotFound: ({ message }) => answer(404, "not_found_error", "not_found", message),
  Conflict: ({ message, param }) => answer(409, "invalid_request_error", "conflict", message, param),
  Aborted: () => restarting,
  TimedOut: () => timedOut
})

export const brokenStream = (failure: Failure): Envelope => {
  if (failure._tag === "SettleFailed") return internalError.body
  return failure._tag === "TimedOut" ? timedOut.body : upstreamError.body
}

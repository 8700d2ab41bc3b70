/**
 * `call`, `post` and `chat` send requests to the gateway of a test file. `refusals` are the published errors, and
 * `assertRefused` checks an answer against one.
 */

import { Effect, Schedule } from "effect"
import { toUsdText } from "../../../src/domain/Money.ts"
import type { Envelope } from "../../../src/http/errors/ErrorMessages.ts"
import { BlockList, parseRange } from "../../../src/services/access/BlockList.ts"
import { ServedGateway } from "../gateway/ServedGateway.ts"
import { assert } from "../It.ts"

/** A complete answer with its body as text. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Text and bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

const bodyOf = (body: unknown) =>
  body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

export const callAt = (address: string, { body, headers, method, signal }: Sent = {}) =>
  Effect.promise(async (): Promise<Answer> => {
    const text = bodyOf(body)
    const response = await fetch(address, {
      method: method ?? (text === undefined ? "GET" : "POST"),
      redirect: "manual",
      ...(headers === undefined ? {} : { headers }),
      ...(text === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal })
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** Sends a request to a path with its query, relative to the gateway's origin, such as `/v1/models`. */
export const call = (path: string, sent?: Sent) =>
  Effect.flatMap(ServedGateway, ({ url }) => callAt(`${url}${path}`, sent))

export const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })

export const talk = (model: string, content = "hi") => ({ model, messages: [{ role: "user", content }] })

export const chatPath = "/v1/chat/completions"

/** Sends a customer's request to a URL. The body is JSON unless the headers name another type. */
export const postTo = (address: string, { secret }: { readonly secret: string }, body: unknown, sent: Sent = {}) =>
  callAt(address, {
    method: "POST",
    ...sent,
    body,
    headers: { ...bearer(secret), "content-type": "application/json", ...sent.headers }
  })

/** Returns a function that sends a customer's body to a path of the gateway. */
export const post = (path: string) => (customer: { readonly secret: string }, body: unknown, sent?: Sent) =>
  Effect.flatMap(ServedGateway, ({ url }) => postTo(`${url}${path}`, customer, body, sent))

export const chat = post(chatPath)

export interface Refusal {
  readonly status: number
  readonly type: Envelope["error"]["type"]
  readonly code: string | null
  readonly message: string
  /** A pattern if the hint contains amounts that depend on other tests. */
  readonly hint?: string | RegExp | undefined
  readonly param?: string | null
  /** The expected value of the header `retry-after`. */
  readonly retryAfter?: string
}

export const badRequest = (message: string, param: string | null = null): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: null,
  message,
  param
})

const permission = (code: string, message: string): Refusal => ({
  status: 403,
  type: "permission_error",
  code,
  message
})
const authentication = (message: string, hint?: string): Refusal => ({
  status: 401,
  type: "authentication_error",
  code: "invalid_api_key",
  message,
  hint
})
const quota = (code: string, message: string, hint: string | RegExp): Refusal => ({
  status: 402,
  type: "insufficient_quota",
  code,
  message,
  hint
})
const funds = /^(?:The request needs (?:up to|at least) \d+(?:\.\d+)? USD; )?-?\d+(?:\.\d+)? USD is available\.$/
const spend = /^\d+(?:\.\d+)? of \d+(?:\.\d+)? USD is spent\.(?: The limit resets at [\dTZ:-]{20}\.)?$/
const unknownEndpoint = (hint?: string): Refusal => ({
  status: 404,
  type: "not_found_error",
  code: "unknown_endpoint",
  message: "Unknown endpoint.",
  hint
})
const unavailable = (message: string): Refusal => ({
  status: 503,
  type: "service_unavailable",
  code: "no_provider_available",
  message
})

/** The published errors, with their exact messages. */
export const refusals = {
  moderated: {
    status: 400,
    type: "content_policy_violation",
    code: null,
    message: "Content was rejected by the moderation system."
  },
  rejected: badRequest("Upstream rejected the request."),
  /** `hint` names the image and the problem. */
  unusable: (hint: string | RegExp, param = "image"): Refusal => ({
    ...badRequest("Failed to process the reference image.", param),
    hint
  }),
  missingKey: authentication("Missing API key."),
  invalidKey: authentication("Invalid API key provided."),
  suspended: authentication("Invalid API key provided.", "The organization of this key is suspended."),
  insufficient: quota("insufficient_quota", "Insufficient credits.", funds),
  /** Amounts are in nano-USD. */
  shortOf: (needed: bigint, available: bigint, bound = "up to") =>
    quota(
      "insufficient_quota",
      "Insufficient credits.",
      `The request needs ${bound} ${toUsdText(needed)} USD; ${toUsdText(available)} USD is available.`
    ),
  capped: (period: string) => quota("spend_limit_exceeded", `This key has reached its ${period} spend limit.`, spend),
  orgCapped: (period: string) =>
    quota("spend_limit_exceeded", `This organization has reached its ${period} spend limit.`, spend),
  scope: permission("insufficient_scope", "API key lacks scope: chat"),
  scopeOf: (scope: string) => permission("insufficient_scope", `API key lacks scope: ${scope}`),
  notAllowed: (id: string): Refusal => ({
    ...permission("model_not_allowed", `API key may not use the model \`${id}\`.`),
    param: "model"
  }),
  denied: permission("access_denied", "Access denied."),
  noModel: (id: string, kind = "a chat", hint?: string): Refusal => ({
    status: 404,
    type: "not_found_error",
    code: "model_not_found",
    message: `The model \`${id}\` does not exist or is not ${kind} model.`,
    param: "model",
    hint
  }),
  noEndpoint: unknownEndpoint(),
  meantPath: (path: string) => unknownEndpoint(`Did you mean ${path}?`),
  wrongMethod: (path: string, methods: string) => unknownEndpoint(`${path} accepts ${methods}.`),
  noVideo: { status: 404, type: "not_found_error", code: null, message: "No such video." },
  conflict: {
    ...badRequest("A request with the same `Idempotency-Key` is still in flight."),
    status: 409,
    code: "idempotency_conflict"
  },
  noRequest: { status: 404, type: "not_found_error", code: null, message: "No such request." },
  notFinished: {
    ...badRequest("You can delete a video only after it is completed or failed."),
    status: 409,
    code: "video_not_finished"
  },
  tooLarge: (bytes: number): Refusal => ({
    status: 413,
    type: "invalid_request_error",
    code: "request_too_large",
    message: `The request body is larger than ${bytes} bytes.`
  }),
  limited: {
    status: 429,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    message: "Rate limit exceeded.",
    hint: /^The limit of this key is \d+ requests? per minute\.$/
  },
  internal: { status: 500, type: "api_error", code: "internal_error", message: "Internal server error." },
  upstream: {
    status: 502,
    type: "api_error",
    code: "upstream_error",
    message: "The upstream provider returned an error."
  },
  upstreamAuth: { status: 502, type: "api_error", code: "upstream_error", message: "Upstream authentication failed." },
  allFailed: (provider: string, status: number | "network") =>
    unavailable(`All providers failed (last: ${provider} ${status}).`),
  noProvider: unavailable("No healthy provider is available for this model."),
  timedOut: { status: 504, type: "api_error", code: "timeout", message: "The request exceeded the allowed time." }
} as const satisfies Record<string, Refusal | ((...parameters: never) => Refusal)>

export const ownId = /^req_[0-9a-f]{32}$/

/** Returns the error in the envelope of chat completions. */
export const envelopeOf = ({ code, hint, message, param = null, type }: Refusal): unknown => ({
  error: { message, type, param, code, ...(hint === undefined ? {} : { hint }) }
})

/** Returns the refusal with the hint that was sent, if it matches the expected one. */
export const completeRefusal = <R extends Pick<Refusal, "hint">>(refusal: R, hint: unknown): R => {
  if (!(refusal.hint instanceof RegExp)) return refusal
  assert.match(String(hint), refusal.hint)
  return { ...refusal, hint: String(hint) }
}

/** Returns the hint of an error in the envelope of any API. */
export const hintIn = (text: string): unknown => Object(Object(JSON.parse(text)).error).hint

/**
 * Asserts that the answer is exactly this error: status, envelope, request id, and `retry-after` if it is expected or
 * the status is 429.
 */
export const assertRefused = (
  answer: Answer,
  refusal: Refusal,
  envelope = envelopeOf(completeRefusal(refusal, hintIn(answer.text)))
): void => {
  const { headers, status, text } = answer
  const { retryAfter = refusal.status === 429 ? "60" : null } = refusal
  const expected: unknown = { status: refusal.status, body: envelope }
  assert.deepStrictEqual<unknown>({ status, body: JSON.parse(text) }, expected)
  assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
  assert.match(headers.get("x-request-id") ?? "", ownId)
  assert.strictEqual(headers.get("retry-after"), retryAfter)
}

/** Returns both rate limit headers as numbers, or undefined if both are missing. Fails if only one is present. */
export const rateOf = ({ headers }: Pick<Answer, "headers">) => {
  const limit = headers.get("x-ratelimit-limit")
  const remaining = headers.get("x-ratelimit-remaining")
  assert.strictEqual(limit === null, remaining === null, "one rate header without the other")
  return limit === null ? undefined : { limit: Number(limit), remaining: Number(remaining) }
}

/** Repeats the check until its assertions hold. After five seconds, fails with the last assertion. */
export const soon = <A, E, R>(check: Effect.Effect<A, E, R>) =>
  check.pipe(
    Effect.sandbox,
    Effect.retry(Schedule.spaced("20 millis").pipe(Schedule.upTo("5 seconds"))),
    Effect.unsandbox
  )

const range = (text: string) =>
  Effect.orElse(Effect.fromNullable(parseRange(text)), () => Effect.dieMessage(`no range: ${text}`))

/** Adds an address or a range to the block list. It takes effect within a second. */
export const block = (text: string) => Effect.flatMap(BlockList, ({ add }) => Effect.flatMap(range(text), add))

export const unblock = (text: string) => Effect.flatMap(BlockList, ({ remove }) => Effect.flatMap(range(text), remove))

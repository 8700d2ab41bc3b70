import { Either, Schema } from "effect"
import { Envelope } from "../../src/http/errors/ErrorMessages.ts"
import { MessagesError } from "../../src/http/messages/MessagesSchema.ts"
import { generatingPaths } from "./Bodies.ts"
import { type Hostile, secretMark } from "./Requests.ts"
import type { Answer, Result } from "./Sender.ts"

/** Types and codes that a status may come with. */
const legal: Readonly<Record<number, ReadonlyArray<string>>> = {
  400: ["invalid_request_error null", "content_policy_violation null", "invalid_request_error context_length_exceeded"],
  401: ["authentication_error invalid_api_key"],
  402: ["insufficient_quota insufficient_quota", "insufficient_quota spend_limit_exceeded"],
  403: ["permission_error insufficient_scope", "permission_error access_denied", "permission_error model_not_allowed"],
  404: ["not_found_error model_not_found", "not_found_error unknown_endpoint", "not_found_error null"],
  409: ["invalid_request_error idempotency_conflict"],
  413: ["invalid_request_error request_too_large"],
  429: ["rate_limit_error rate_limit_exceeded"]
}
const good: ReadonlySet<number> = new Set([200, 202, 204, 206, 302, 304])

/** What may be in no message: secrets, a provider's words, the program's insides. */
const forbidden =
  /hush|ggw_|\n\s+at |node_modules|\/work\/|SELECT |INSERT |postgres|undefined|\[object |TypeError|SyntaxError|RangeError|FiberFailure|Infinity/

const ownId = /^req_[0-9a-f]{32}$/
const wellFormedId = /^[A-Za-z0-9._-]{1,128}$/

const decodeEnvelope = Schema.decodeUnknownEither(Schema.parseJson(Envelope))
const decodeMessagesError = Schema.decodeUnknownEither(Schema.parseJson(MessagesError))

/** The types of this dialect that a status may come with. */
const legalOfMessages: typeof legal = {
  400: ["invalid_request_error"],
  401: ["authentication_error"],
  402: ["billing_error"],
  403: ["permission_error"],
  404: ["not_found_error"],
  413: ["request_too_large"],
  429: ["rate_limit_error"]
}

/** What an error says and calls itself. */
const toldIn = (text: string) =>
  Either.orElse(
    Either.map(decodeEnvelope(text), ({ error: { code, message, type } }) => ({
      message,
      kind: `${type} ${code}`,
      legal
    })),
    () =>
      Either.map(decodeMessagesError(text), ({ error: { message, type } }) => ({
        message,
        kind: type,
        legal: legalOfMessages
      }))
  )

/** Whether the request gets past the key, so that rates are told. */
const isCounted = ({ headers, method, target }: Hostile, { status, text }: Answer) =>
  method === "POST" &&
  generatingPaths.has(target) &&
  headers.some(([name, value]) => name === "authorization" && value === `Bearer ${secretMark}`) &&
  status !== 401 &&
  !text.includes("not valid HTTP") &&
  !text.includes("headers are too large")

const headerFaults = function* (request: Hostile, answer: Answer): Generator<string, void> {
  const id = answer.headers.get("x-request-id")
  const sent = request.headers.filter(([name]) => name === "x-request-id").map(([, value]) => value.trim())
  const isOwn = sent.length === 1 && wellFormedId.test(sent[0] ?? "") && id === sent[0]
  if (id === null || !(ownId.test(id) || isOwn || sent.length > 1)) yield `the request id is ${id}`
  if (!isCounted(request, answer)) return
  for (const name of ["x-ratelimit-limit", "x-ratelimit-remaining"]) {
    if (!/^\d+$/.test(answer.headers.get(name) ?? "")) yield `${name} is ${answer.headers.get(name)}`
  }
}

const errorFaults = function* ({ headers, status, text }: Answer): Generator<string, void> {
  const type = headers.get("content-type")
  if (type !== "application/json; charset=utf-8") yield `the error's content type is ${type}`
  const told = toldIn(text)
  if (Either.isLeft(told)) {
    yield `the body is not the envelope: ${text.slice(0, 200)}`
    return
  }
  const { kind, legal: kinds, message } = told.right
  if (!(kinds[status] ?? []).includes(kind)) yield `${status} with ${kind}`
  if (message === "" || message.length > 1_000) yield `a message of ${message.length} characters`
  // Its own words may be repeated to a customer, such as a model's name.
  const own = message.replaceAll(/`[^`]*`/g, "")
  if (forbidden.test(own)) yield `the message says ${message.slice(0, 200)}`
}

/** What is wrong about an answer, a line each. */
export const faultsOf = (request: Hostile, result: Result): ReadonlyArray<string> => {
  if (result.kind === "left") return []
  if (result.kind === "hang") return [`no answer: ${JSON.stringify(result.received.slice(0, 200))}`]
  if (result.kind === "closed") {
    return [`the connection closed without an answer: ${JSON.stringify(result.received.slice(0, 200))}`]
  }
  const { answer } = result
  const { status } = answer
  const faults = [...headerFaults(request, answer)]
  if (request.method === "HEAD") return faults
  if (status >= 400 && status < 500) faults.push(...errorFaults(answer))
  else if (!good.has(status)) faults.push(`status ${status}: ${answer.text.slice(0, 200)}`)
  return faults
}

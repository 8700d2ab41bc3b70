/**
 * `hire` creates an operator, and `adminAt` sends its requests to the admin API. `refusals` are the errors of the admin
 * API.
 */

import { randomUUID } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { OrgId, Role } from "../../../src/domain/Organization.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { assert } from "../It.ts"
import { type Answer, bearer, callAt, type Refusal, type Sent } from "./HttpCalls.ts"

/** Creates an operator with a token: of the gateway, or a member of an organization. */
export const hire = Effect.fnUntraced(function* (role: Role, org?: OrgId) {
  const operators = yield* Operators
  const name = `test-${randomUUID()}`
  const { operator, token } = yield* Effect.orDie(operators.create({ name, role, org }))
  return { id: operator.id, name, role, token: Redacted.value(token) }
})

/** Sends an operator's requests to `/admin/v1` of the server at `url`. */
export const adminAt =
  (url: string, token: string) =>
  (path: string, sent: Sent = {}) =>
    callAt(`${url}/admin/v1${path}`, {
      ...sent,
      headers: {
        ...bearer(token),
        ...(sent.body !== undefined && { "content-type": "application/json" }),
        ...sent.headers
      }
    })

/** The errors of the admin API. */
export const refusals = {
  conflict: (message: string, param: string | null = null): Refusal => ({
    status: 409,
    type: "invalid_request_error",
    code: "conflict",
    message,
    param
  }),
  changesLimited: (retryAfter: string | null): Refusal => ({
    status: 429,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    message: "An organization's members can make at most 60 changes per minute.",
    ...(retryAfter !== null && { retryAfter })
  }),
  needs: (role: Role): Refusal => ({
    status: 403,
    type: "permission_error",
    code: "insufficient_role",
    message: `This requires the role ${role}.`
  }),
  notFound: (message: string): Refusal => ({ status: 404, type: "not_found_error", code: "not_found", message }),
  notSignedIn: (message = "Sign in, or send an operator's token."): Refusal => ({
    status: 401,
    type: "authentication_error",
    code: "not_signed_in",
    message
  })
}

/** Unusual texts, which must be stored unchanged or refused with a clear message. */
export const hostileTexts: ReadonlyArray<string> = [
  "a\u0000b",
  "\u0007\u001b[31m\r\n",
  "\u202eevil\u200f",
  "\ud800",
  "%_\\",
  "<script>alert(1)</script>",
  "'; DROP TABLE audit; --",
  "x".repeat(10_000)
]

/** Encodes a text for a URL, which cannot contain a lone surrogate. */
export const inAddress = (text: string) => encodeURIComponent(text.replace(/\p{Cs}/gu, "?"))

/** Returns the JSON of an answer. Fails if its status differs. */
export const read = (answer: Answer, status = 200) => {
  assert.strictEqual(answer.status, status, answer.text)
  return JSON.parse(answer.text)
}

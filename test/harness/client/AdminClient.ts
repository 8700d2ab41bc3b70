/** Operators (`hire`) and their requests to the admin API (`adminAt`), with its refusals. */

import { randomUUID } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { Role } from "../../../src/domain/Operator.ts"
import type { OrgId } from "../../../src/domain/Organization.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { assert } from "../It.ts"
import { type Answer, bearer, callAt, type Refusal, type Sent } from "./HttpCalls.ts"

/** An operator with a token: of the gateway, or a member of an organization. */
export const hire = Effect.fnUntraced(function* (role: Role, org?: OrgId) {
  const operators = yield* Operators
  const name = `test-${randomUUID()}`
  const { operator, token } = yield* Effect.orDie(operators.create({ name, role, org }))
  return { id: operator.id, name, role, token: Redacted.value(token) }
})

/** Requests of one operator to `/admin/v1` of the server at `url`. */
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

/** The refusals of the admin API. */
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
    message: "An organization's members may make 60 changes a minute.",
    ...(retryAfter !== null && { retryAfter })
  }),
  needs: (role: Role): Refusal => ({
    status: 403,
    type: "permission_error",
    code: "insufficient_role",
    message: `This needs the role ${role}.`
  }),
  notFound: (message: string): Refusal => ({ status: 404, type: "not_found_error", code: "not_found", message }),
  notSignedIn: (message = "Sign in, or send an operator's token."): Refusal => ({
    status: 401,
    type: "authentication_error",
    code: "not_signed_in",
    message
  })
}

/** Texts that harm nobody: kept as they are, or refused in clear words. */
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

/** As a part of an address, which has no lone surrogate. */
export const inAddress = (text: string) => encodeURIComponent(text.replace(/\p{Cs}/gu, "?"))

/** The JSON of an answer with this status. */
export const read = (answer: Answer, status = 200) => {
  assert.strictEqual(answer.status, status, answer.text)
  return JSON.parse(answer.text)
}

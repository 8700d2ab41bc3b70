import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Role } from "../../../src/domain/Operator.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { type Answer, bearer, callAt, type Sent } from "./HttpCalls.ts"

/** An operator with a token. */
export const hire = (role: Role) =>
  Effect.gen(function* () {
    const operators = yield* Operators
    const name = `test-${randomUUID()}`
    const { operator, token } = yield* Effect.orDie(operators.create({ name, role }))
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

/** The JSON of an answer with this status. */
export const read = (answer: Answer, status = 200) => {
  assert.strictEqual(answer.status, status, answer.text)
  return JSON.parse(answer.text)
}

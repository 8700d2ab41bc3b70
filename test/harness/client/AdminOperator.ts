import { Effect } from "effect"
import type { Role } from "../../../src/domain/Operator.ts"
import { MediaServer } from "../gateway/MediaServer.ts"
import { adminAt, hire } from "./AdminClient.ts"
import type { Refusal } from "./HttpCalls.ts"

/** A new operator of the suite's server, and its requests. */
export const asOperator = Effect.fnUntraced(function* (role: Role) {
  const { url } = yield* MediaServer
  const operator = yield* hire(role)
  return { ...operator, admin: adminAt(url, operator.token) }
})

export const conflict = (message: string, param: string | null = null): Refusal => ({
  status: 409,
  type: "invalid_request_error",
  code: "conflict",
  message,
  param
})

export const needs = (role: Role): Refusal => ({
  status: 403,
  type: "permission_error",
  code: "insufficient_role",
  message: `This needs the role ${role}.`
})

export const noSuch = (message: string): Refusal => ({
  status: 404,
  type: "not_found_error",
  code: "not_found",
  message
})

/** Texts that must be kept as they are, or refused in clear words. */
export const hostile = [
  "<script>alert(1)</script>",
  "\u202Egnp.exe",
  "a\u0007b\u001b[31mc",
  "a\0b",
  "\ud800",
  "x".repeat(10_000),
  "'; DROP TABLE api_keys; --",
  "%_\\"
]

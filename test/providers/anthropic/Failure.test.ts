import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decodeFailure } from "../../../src/providers/anthropic/Failure.ts"
import { request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { routeTo, secret } from "./Hosts.ts"
import { check } from "./support.ts"

const account = routeTo("http://anthropic.test").provider
const failure = (status: number, error: object, headers: Readonly<Record<string, string>> = {}) =>
  decodeFailure(account, { status, headers, body: JSON.stringify({ type: "error", error, request_id: "req_1" }) }, 0)

const coded = (error_code: string) => ({ error_code })
const invalid = "invalid_request_error"

describe("an error of an anthropic host", () => {
  for (const [status, type, details, kind] of [
    [400, invalid, undefined, "request"],
    [400, invalid, coded("of_tomorrow"), "request"],
    [400, invalid, coded("organization_on_hold"), "account"],
    [400, invalid, coded("organization_type_not_supported"), "account"],
    [400, invalid, coded("parent_organization_required"), "account"],
    [400, invalid, coded("cmek_key_disabled"), "account"],
    [401, "authentication_error", undefined, "account"],
    [402, "billing_error", undefined, "account"],
    [402, "billing_error", coded("linked_organization_spend_limit_reached"), "account"],
    [403, "permission_error", undefined, "account"],
    [404, "not_found_error", undefined, "retry"],
    [409, "conflict_error", undefined, "retry"],
    [413, "request_too_large", undefined, "request"],
    [429, "rate_limit_error", undefined, "limit"],
    [429, "rate_limit_error", coded("ramp_limit_exceeded"), "limit"],
    [429, "rate_limit_error", coded("enforced_spend_limit_reached"), "account"],
    [429, "rate_limit_error", coded("contract_spend_limit_reached"), "account"],
    [500, "api_error", undefined, "retry"],
    [504, "timeout_error", undefined, "retry"],
    [529, "overloaded_error", undefined, "retry"]
  ] as const) {
    it(`${status} ${type} ${details?.error_code ?? ""} is ${kind}`, () => {
      const { class: told, detail, param, status: seen } = failure(status, { type, message: "why", details })
      assert.deepStrictEqual([told, seen, param], [kind, status, undefined])
      for (const word of [type, "why", details?.error_code ?? ""]) assert.include(detail, word)
    })
  }

  for (const [message, kind, param] of [
    ["Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.", "account"],
    ["You have reached your specified API usage limits. You will regain access on 2026-12-01.", "account"],
    ["You have reached your specified workspace API usage limits.", "account"],
    ["This organization has been disabled.", "account"],
    ["Your organization has been disabled.", "account"],
    ["Output blocked by content filtering policy", "moderation"],
    ["prompt is too long: 210000 tokens > 200000 maximum", "request"],
    ["This model does not support assistant message prefill.", "request"],
    ["messages.0.content.1.image.source.base64: image exceeds 10 MB maximum", "request", "messages"],
    ["Could not process image", "request", "messages"],
    ["Unable to download the file. Please verify the URL and try again.", "request", "messages"],
    ["tool_choice: Tool 'Your credit balance is too low' not found in provided tools", "request"],
    ["messages.1.content.0.tool_use.name: You have reached your specified API usage limits", "request"]
  ] as const) {
    it(`a 400 that says "${message.slice(0, 50)}…" is ${kind}`, () => {
      const { class: told, param: field } = failure(400, { type: invalid, message })
      assert.deepStrictEqual([told, field], [kind, param])
    })
  }

  it("says when to come back", () => {
    const error = { type: "overloaded_error", message: "Overloaded" }
    assert.strictEqual(failure(529, error, { "retry-after": "12" }).retryAfterSeconds, 12)
    assert.isUndefined(failure(529, error).retryAfterSeconds)
  })

  it("without words of its own is judged by its status", () => {
    const bare = (status: number, body: string) => decodeFailure(account, { status, headers: {}, body }, 0).class
    assert.strictEqual(bare(529, ""), "retry")
    assert.strictEqual(bare(400, "<html>"), "retry")
    assert.strictEqual(bare(401, "{}"), "account")
    assert.strictEqual(bare(400, '{"error":"no"}'), "request")
    assert.strictEqual(bare(400, '{"error":{"message":null,"details":[]}}'), "request")
  })

  check("keeps the credential out of the log", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(401, { error: { type: "authentication_error", message: `bad key ${secret}` } }))
      const { detail } = yield* Effect.flip(adapter.complete(route, request()))
      assert.include(detail, "bad key")
      assert.notInclude(detail, secret)
    })
  )
})

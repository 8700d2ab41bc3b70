import { Effect, Either } from "effect"
import { decodeAnswer, decodeFailure, decodeUsage } from "../../../src/providers/anthropic/AnthropicAnswer.ts"
import { options } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { called, hear, joined, request } from "../../contracts/ChatHarness.ts"
import { routeTo, secret } from "../../contracts/ChatHosts.ts"
import { scenarios, usageOf } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, wire } from "./Wire.ts"

const { answers, check } = scenarios(anthropic)

const message = (content: ReadonlyArray<unknown>, more: object = {}) => ({ type: "message", content, ...more })

describe("an answer of an anthropic host", () => {
  const refused = { stop_reason: "refusal", stop_details: { type: "refusal", explanation: "No." } }
  answers([
    [
      "joins its blocks of each kind and leaves out what else it holds",
      message(
        [
          { type: "thinking", thinking: "Let ", signature: "Eq" },
          { type: "redacted_thinking", data: "x" },
          { type: "thinking", thinking: "me see.", signature: "Eq" },
          { type: "text", text: "One ", citations: [{}] },
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
          { type: "web_search_tool_result", content: [] },
          { type: "text", text: "two" },
          null
        ],
        { stop_reason: "end_turn", usage: { input_tokens: 3, output_tokens: 2 } }
      ),
      {
        content: "One two",
        reasoning: "Let me see.",
        toolCalls: [],
        finish: "stop",
        usage: usageOf({ prompt: 3, completion: 2 })
      }
    ],
    ["without blocks is empty", message([], { stop_reason: "end_turn" }), { content: "", finish: "stop" }],
    [
      "refused before the first word is empty, and unbilled",
      message([], { ...refused, usage: { input_tokens: 9000, output_tokens: 0 } }),
      { content: "", finish: "content_filter", isFree: true, usage: usageOf({ prompt: 9000 }) }
    ],
    [
      "has blocks of unknown types, told of once each",
      message([{ type: "hologram" }, { type: "text", text: "a" }, { type: "hologram" }], { stop_reason: "end_turn" }),
      { content: "a", finish: "stop", unread: [{ part: "block", detail: "hologram" }] }
    ],
    [
      "cut by its limit in the middle of a call finishes with length",
      message([{ type: "tool_use", id: "a", name: "now", input: {} }], { stop_reason: "max_tokens" }),
      { finish: "length" }
    ],
    ["to a stream's request comes as a stream", wire({ content: "42", finish: "stop" }).body, { content: "42" }]
  ])

  check(
    "refused before the first word is billed for the categories that the route names",
    function* (adapter, fake, route) {
      for (const [category, isBilled] of [
        ["cyber", false],
        ["frontier_llm", true],
        [null, true]
      ] as const) {
        const body = message([], { ...refused, stop_details: { type: "refusal", category } })
        yield* fake.script(Fake.json(200, body), Fake.json(200, body))
        const fullAnswer = yield* adapter.complete(route, request())
        assert.strictEqual(fullAnswer.isFree, isBilled ? undefined : true)
        const { events } = yield* hear(adapter, route, request())
        assert.strictEqual(joined(events).isFree, fullAnswer.isFree)
      }
    },
    { billed_refusals: ["frontier_llm", "none"] }
  )

  const read = (body: unknown) =>
    Either.merge(
      decodeAnswer(body, () => "call_new", { options: Either.getOrThrow(options.decode({})), request: request() })
    )

  it("has calls whose arguments are JSON texts", () => {
    const input = { city: "Zürich", days: [1, 2] }
    const body = message([
      { type: "tool_use", id: "toolu_a", name: "get_weather", input },
      { type: "tool_use", name: "now" }
    ])
    const toolCalls = [called("toolu_a", "get_weather", JSON.stringify(input)), called("call_new", "now", "{}")]
    assert.deepInclude(read(body), { content: null, finish: "tool_calls", toolCalls })
  })

  it.each([undefined, null, [], "x", {}, { content: "x" }, { type: "error" }, message([{ type: "tool_use" }])])(
    "is not %j",
    (body) => assert.isString(read(body))
  )

  it.each([
    [undefined, undefined],
    [{ input_tokens: 0, output_tokens: 0 }, undefined],
    [{ input_tokens: "5", output_tokens: -1, cache_read_input_tokens: Number.NaN }, undefined],
    [
      { input_tokens: 2, cache_creation_input_tokens: 30, cache_read_input_tokens: 400, output_tokens: 1 },
      { prompt: 432, completion: 1, cached: 400, cacheWrite: 30 }
    ],
    [
      {
        input_tokens: 2,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
        server_tool_use: { web_search_requests: 3, web_fetch_requests: 4 },
        output_tokens: 1
      },
      { prompt: 32, completion: 1, cacheWrite: 30, cacheWriteHour: 20, webSearches: 3 }
    ],
    [
      { input_tokens: 2, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 1 },
      { prompt: 2, completion: 1 }
    ],
    [
      { input_tokens: 2, output_tokens: 5, output_tokens_details: { thinking_tokens: 9 } },
      { prompt: 2, completion: 5, reasoning: 5 }
    ]
  ])("counts %j as %j", (usage, expected) => assert.deepStrictEqual(decodeUsage(usage), expected && usageOf(expected)))
})

describe("an error of an anthropic host", () => {
  const account = routeTo(anthropic).provider
  const failure = (status: number, error: object, headers: Readonly<Record<string, string>> = {}) =>
    decodeFailure(account, { status, headers, body: JSON.stringify({ type: "error", error, request_id: "req_1" }) }, 0)
  const invalid = "invalid_request_error"

  it.each([
    [400, invalid, "", "request"],
    [400, invalid, "of_tomorrow", "request"],
    [400, invalid, "organization_on_hold", "account"],
    [400, invalid, "organization_type_not_supported", "account"],
    [400, invalid, "parent_organization_required", "account"],
    [400, invalid, "cmek_key_disabled", "account"],
    [401, "authentication_error", "", "account"],
    [402, "billing_error", "", "account"],
    [402, "billing_error", "linked_organization_spend_limit_reached", "account"],
    [403, "permission_error", "", "account"],
    [404, "not_found_error", "", "retry"],
    [409, "conflict_error", "", "retry"],
    [413, "request_too_large", "", "request"],
    [429, "rate_limit_error", "", "limit"],
    [429, "rate_limit_error", "ramp_limit_exceeded", "limit"],
    [429, "rate_limit_error", "enforced_spend_limit_reached", "account"],
    [429, "rate_limit_error", "contract_spend_limit_reached", "account"],
    [500, "api_error", "", "retry"],
    [504, "timeout_error", "", "retry"],
    [529, "overloaded_error", "", "retry"]
  ] as const)("of status %i, type %s and code %s is of class %s", (status, type, code, meaning) => {
    const details = code === "" ? undefined : { error_code: code }
    const { class: found, detail, param, status: seen } = failure(status, { type, message: "why", details })
    assert.deepStrictEqual([found, seen, param], [meaning, status, undefined])
    for (const word of [type, "why", code]) assert.include(detail, word)
  })

  it.each([
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
  ])("of status 400 that says %j is of class %s", (words, meaning, param?: string) => {
    const { class: found, param: field } = failure(400, { type: invalid, message: words })
    assert.deepStrictEqual([found, field], [meaning, param])
  })

  it.each([
    [529, "", "retry"],
    [400, "<html>", "retry"],
    [401, "{}", "account"],
    [400, '{"error":"no"}', "request"],
    [400, '{"error":{"message":null,"details":[]}}', "request"]
  ])("of status %i with the body %j is of class %s", (status, body, meaning) =>
    assert.strictEqual(decodeFailure(account, { status, headers: {}, body }, 0).class, meaning)
  )

  it("says when to come back", () => {
    const error = { type: "overloaded_error", message: "Overloaded" }
    assert.strictEqual(failure(529, error, { "retry-after": "12" }).retryAfterSeconds, 12)
    assert.isUndefined(failure(529, error).retryAfterSeconds)
  })

  check("keeps the credential out of the log", function* (adapter, fake, route) {
    yield* fake.script(Fake.json(401, { error: { type: "authentication_error", message: `bad key ${secret}` } }))
    const { detail } = yield* Effect.flip(adapter.complete(route, request()))
    assert.include(detail, "bad key")
    assert.notInclude(detail, secret)
  })
})

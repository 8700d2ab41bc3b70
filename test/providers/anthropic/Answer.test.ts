import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { decodeAnswer, decodeUsage } from "../../../src/providers/anthropic/Response.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check } from "./support.ts"
import { wire } from "./Wire.ts"

const read = (body: unknown) => Either.merge(decodeAnswer(body, () => "call_new"))
const message = (content: ReadonlyArray<unknown>, more: object = {}) => ({ type: "message", content, ...more })

describe("an answer of an anthropic host", () => {
  it("is its blocks of each kind joined; what else it holds is left out", () => {
    const body = message(
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
    )
    assert.deepStrictEqual(read(body), {
      content: "One two",
      reasoning: "Let me see.",
      toolCalls: [],
      finish: "stop",
      usage: { prompt: 3, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
    })
  })

  it("has calls whose arguments are JSON texts", () => {
    const input = { city: "Zürich", days: [1, 2] }
    const body = message([
      { type: "tool_use", id: "toolu_a", name: "get_weather", input },
      { type: "tool_use", name: "now" }
    ])
    assert.deepInclude(read(body), {
      content: null,
      finish: "tool_calls",
      toolCalls: [
        { id: "toolu_a", type: "function", function: { name: "get_weather", arguments: JSON.stringify(input) } },
        { id: "call_new", type: "function", function: { name: "now", arguments: "{}" } }
      ]
    })
  })

  it("of no blocks at all is an empty one, and so is a refusal before the first word", () => {
    assert.deepInclude(read(message([], { stop_reason: "end_turn" })), { content: "", finish: "stop" })
    const refused = message([], { stop_reason: "refusal", stop_details: { type: "refusal", explanation: "No." } })
    assert.deepInclude(read(refused), { content: "", finish: "content_filter" })
  })

  it("cut by its limit is that, even in the middle of a call", () => {
    const body = message([{ type: "tool_use", id: "a", name: "now", input: {} }], { stop_reason: "max_tokens" })
    assert.deepInclude(read(body), { finish: "length" })
  })

  for (const body of [
    undefined,
    null,
    [],
    "x",
    {},
    { content: "x" },
    { type: "error" },
    message([{ type: "tool_use" }])
  ]) {
    it(`is not ${JSON.stringify(body)}`, () => assert.isString(read(body)))
  }

  check("to a stream's request is told as a stream where it came in one piece", (adapter, fake, route) =>
    Effect.gen(function* () {
      const answer = { content: "42", reasoning: "Let me see.", finish: "stop" } as const
      yield* fake.script(Fake.json(200, wire(answer).body))
      const { events, failure } = yield* hear(adapter, route, request())
      assert.isUndefined(failure)
      assert.deepInclude(joined(events), answer)
    })
  )
})

describe("usage", () => {
  for (const [name, given, expected] of [
    ["nothing", undefined, undefined],
    ["zeros", { input_tokens: 0, output_tokens: 0 }, undefined],
    ["no numbers", { input_tokens: "5", output_tokens: -1, cache_read_input_tokens: Number.NaN }, undefined],
    [
      "three disjoint counts of the prompt",
      { input_tokens: 2, cache_creation_input_tokens: 30, cache_read_input_tokens: 400, output_tokens: 1 },
      { prompt: 432, completion: 1, cached: 400, cacheWrite: 30, reasoning: 0 }
    ],
    [
      "nulls",
      { input_tokens: 2, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 1 },
      { prompt: 2, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }
    ],
    [
      "more thinking than output",
      { input_tokens: 2, output_tokens: 5, output_tokens_details: { thinking_tokens: 9 } },
      { prompt: 2, completion: 5, cached: 0, cacheWrite: 0, reasoning: 5 }
    ]
  ] as const) {
    it(`of ${name}`, () => assert.deepStrictEqual(decodeUsage(given), expected))
  }
})

import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { called, hear, joined, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { scenarios, usageOf } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { failedWith, openAiResponses, response, streamOf, whole } from "./Wire.ts"

const { answers, bodies, check, noAnswers } = scenarios(openAiResponses)

const answered = (output: ReadonlyArray<unknown>, more: object = {}) => ({ ...response({}), output, ...more })
const message = (...content: ReadonlyArray<unknown>) => ({ type: "message", role: "assistant", content })
const out = (text: string) => ({ type: "output_text", text, annotations: [] })
const call = (fields: object) => {
  return { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}", ...fields }
}
const cutBy = (reason: string) => ({ status: "incomplete", incomplete_details: { reason } })

describe("an answer of an openai-responses host", () => {
  answers([
    ["joins messages in parts", answered([message(out("a"), out("b")), message(out("c"))]), { content: "abc" }],
    [
      "is a refusal",
      answered([message({ type: "refusal", refusal: "I will not." })]),
      { content: "I will not.", finish: "content_filter" }
    ],
    ["is empty", answered([]), { content: "", toolCalls: [], finish: "stop", usage: undefined }],
    [
      "has no status, from a host that knows none",
      answered([message(out("a"))], { status: undefined }),
      { content: "a" }
    ],
    [
      "leaves out items that are not for the client",
      answered([
        { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
        message(out("a"))
      ]),
      { content: "a", reasoning: undefined }
    ],
    [
      "has reasoning in paragraphs, summed up or raw",
      answered([
        { type: "reasoning", summary: [{ text: "One." }, { text: "" }, { text: "Two." }] },
        { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Raw." }] }
      ]),
      { reasoning: "One.\n\nTwo.\n\nRaw.", content: "" }
    ],
    [
      "has a call beside text",
      answered([message(out("Look.")), call({ arguments: "" })]),
      { content: "Look.", toolCalls: [called("c", "f", "{}")], finish: "tool_calls" }
    ],
    [
      "has a call cut by the limit",
      answered([call({ arguments: "{" })], cutBy("max_output_tokens")),
      { content: null, finish: "length" }
    ],
    [
      "was filtered",
      answered([message(out("a"))], cutBy("content_filter")),
      { content: "a", finish: "content_filter" }
    ],
    [
      "has everything at once",
      whole({
        content: "a",
        reasoning: "r",
        toolCalls: [{ id: "c", name: "f", arguments: "" }],
        finish: "tool_calls",
        usage: usageOf({ prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 })
      }),
      { usage: usageOf({ prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }) }
    ]
  ])

  answers(
    (
      [
        [undefined, undefined],
        [{ input_tokens: 0, output_tokens: 0, total_tokens: 0 }, undefined],
        [{ input_tokens: "5", output_tokens: null }, undefined],
        [
          { input_tokens: 5, output_tokens: 2 },
          { prompt: 5, completion: 2 }
        ],
        [
          {
            input_tokens: 100,
            output_tokens: 50,
            input_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
            output_tokens_details: { reasoning_tokens: 40 }
          },
          { prompt: 100, completion: 50, cached: 60, cacheWrite: 30, reasoning: 40 }
        ],
        [
          { input_tokens: 3.7, output_tokens: -4, input_tokens_details: { cached_tokens: 99 } },
          { prompt: 102, cached: 99 }
        ]
      ] as const
    ).map(([usage, expected]) => [
      `counts ${JSON.stringify(usage)}`,
      { ...response({}), usage },
      { usage: expected && usageOf(expected) }
    ])
  )

  check("gets an id for a call without any", function* (adapter, fake, route) {
    yield* fake.script(Fake.json(200, answered([call({ id: "", call_id: "", arguments: "" })])))
    const [got] = (yield* adapter.complete(route, request())).toolCalls
    assert.deepStrictEqual(got?.function, { name: "f", arguments: "{}" })
    assert.match(got?.id ?? "", /^call_.{8,}/)
  })

  for (const [ticks, statedCost] of [
    [37_756_000, NanoUsd(3_775_600n)],
    [-1, null],
    [undefined, undefined]
  ] as const) {
    check(
      `costs what the host states, in one piece, as a stream and as a stream in one piece: ${ticks} ticks`,
      function* (adapter, fake, route) {
        const usage = usageOf({ prompt: 21, completion: 13 })
        const plain = whole({ content: "hi", finish: "stop", usage })
        const body = { ...plain, usage: { ...plain.usage, cost_in_usd_ticks: ticks } }
        const { opening, output } = streamOf(plain)
        const end = Fake.event({ type: "response.completed", response: body })
        yield* fake.script(
          Fake.json(200, body),
          Fake.sse(...opening, ...output, end),
          Fake.json(200, body),
          Fake.sse(end)
        )
        const answers = [yield* adapter.complete(route, request())]
        for (const _ of [1, 2, 3]) answers.push(joined((yield* hear(adapter, route, request())).events))
        for (const answer of answers) assert.strictEqual(answer.usage?.statedCost, statedCost)
      },
      { stated_cost: "usage.cost_in_usd_ticks" }
    )
  }

  check(
    "has a search of the host's own beside the client's tools, and none of the client's calls",
    function* (adapter, fake, route) {
      const search = { type: "web_search_call" as const, id: "ws_1", status: "completed" as const }
      const found = { ...search, action: { type: "search" as const, query: "q" } }
      const body = response({ output: [found, ...whole({ content: "hi", finish: "stop" }).output] })
      const { end, opening, output } = streamOf(body)
      yield* fake.script(Fake.json(200, body), Fake.sse(...opening, ...output, ...end))
      const chatRequest = request({ webSearch: true, tools: [weatherTool] })
      const piece = yield* adapter.complete(route, chatRequest)
      assert.deepStrictEqual([piece.content, piece.toolCalls, piece.finish], ["hi", [], "stop"])
      assert.strictEqual(piece.usage?.webSearches, 1)
      assert.deepStrictEqual(joined((yield* hear(adapter, route, chatRequest)).events), piece)
      for (const sent of yield* bodies(fake, 2)) assert.nestedInclude(sent, { "tools[1].type": "web_search" })
    }
  )

  noAnswers([
    ["no output", { status: "completed" }],
    ["an array", []],
    ["null", null],
    ["a response that is not over", response({ status: "in_progress" })],
    ["a response that was cancelled", response({ status: "cancelled" })],
    ["a call without a name", { output: [call({ name: "" })] }],
    ["a failure without an error", response({ status: "failed" })],
    ["a flat error", { object: "error", message: "m", output: [] }]
  ])

  for (const [code, meaning, param] of [
    ["server_error", "retry"],
    ["vector_store_timeout", "retry"],
    ["rate_limit_exceeded", "limit"],
    ["invalid_prompt", "moderation"],
    ["bio_policy", "moderation"],
    ["image_content_policy_violation", "moderation"],
    ["failed_to_download_image", "request", "messages"],
    ["invalid_image_url", "request", "messages"]
  ] as const) {
    check(
      `that failed with ${code} is of class ${meaning}, in one piece or as a stream`,
      function* (adapter, fake, route) {
        const failed = failedWith(code)
        const event = Fake.event({ type: "response.failed", response: failed })
        yield* fake.script(Fake.json(200, failed), Fake.sse(event), Fake.json(200, failed))
        for (const failure of [
          yield* Effect.flip(adapter.complete(route, request())),
          (yield* hear(adapter, route, request())).failure,
          (yield* hear(adapter, route, request())).failure
        ]) {
          assert.deepStrictEqual([failure?.class, failure?.param], [meaning, param])
        }
      }
    )
  }
})

import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check } from "./support.ts"
import { response } from "./wire.ts"

const message = (...content: ReadonlyArray<unknown>) => ({ type: "message", role: "assistant", content })
const out = (text: string) => ({ type: "output_text", text, annotations: [] })
const call = (fields: object) => ({
  type: "function_call",
  id: "fc_1",
  call_id: "c",
  name: "f",
  arguments: "{}",
  ...fields
})

describe("an answer of an openai-responses host", () => {
  const cases: ReadonlyArray<readonly [string, object, Partial<ReturnType<typeof joined>>]> = [
    ["messages in parts", { output: [message(out("a"), out("b")), message(out("c"))] }, { content: "abc" }],
    [
      "a refusal",
      { output: [message({ type: "refusal", refusal: "I will not." })] },
      { content: "I will not.", finish: "content_filter" }
    ],
    ["nothing", { output: [] }, { content: "", toolCalls: [], finish: "stop", usage: undefined }],
    ["no status, from a host that knows none", { status: undefined, output: [message(out("a"))] }, { content: "a" }],
    [
      "items that are not for the client",
      {
        output: [
          { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
          { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
          message(out("a"))
        ]
      },
      { content: "a", reasoning: undefined }
    ],
    [
      "reasoning in paragraphs, summed up or raw",
      {
        output: [
          { type: "reasoning", summary: [{ text: "One." }, { text: "" }, { text: "Two." }] },
          { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Raw." }] }
        ]
      },
      { reasoning: "One.\n\nTwo.\n\nRaw.", content: "" }
    ],
    ["a call beside text", { output: [message(out("Look.")), call({})] }, { content: "Look.", finish: "tool_calls" }],
    [
      "a call cut by the limit",
      { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output: [call({ arguments: "{" })] },
      { content: null, finish: "length" }
    ],
    [
      "an output that was filtered",
      { status: "incomplete", incomplete_details: { reason: "content_filter" }, output: [message(out("a"))] },
      { content: "a", finish: "content_filter" }
    ]
  ]
  for (const [name, fields, expected] of cases) {
    check(name, (adapter, fake, route) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, { ...response({}), ...fields }))
        const answer = yield* adapter.complete(route, request())
        assert.deepStrictEqual({ ...answer, ...expected }, answer)
      })
    )
  }

  check("a call without any id gets one, and its arguments are a JSON text", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(
        Fake.json(200, response({})),
        Fake.json(200, { output: [call({ id: "", call_id: "", arguments: "" })] })
      )
      assert.deepStrictEqual((yield* adapter.complete(route, request())).toolCalls, [])
      const [got] = (yield* adapter.complete(route, request())).toolCalls
      assert.deepStrictEqual(got?.function, { name: "f", arguments: "{}" })
      assert.match(got?.id ?? "", /^call_.{8,}/)
    })
  )

  const usages: ReadonlyArray<readonly [unknown, unknown]> = [
    [undefined, undefined],
    [{ input_tokens: 0, output_tokens: 0, total_tokens: 0 }, undefined],
    [
      { input_tokens: 5, output_tokens: 2 },
      { prompt: 5, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
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
      { prompt: 3, completion: 0, cached: 3, cacheWrite: 0, reasoning: 0 }
    ],
    [{ input_tokens: "5", output_tokens: null }, undefined]
  ]
  check("usage, as the host counts it", (adapter, fake, route) =>
    Effect.forEach(usages, ([usage, expected]) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, { ...response({}), usage }))
        assert.deepStrictEqual((yield* adapter.complete(route, request())).usage, expected)
      })
    )
  )

  const broken: ReadonlyArray<readonly [string, unknown]> = [
    ["no output", { status: "completed" }],
    ["an array", []],
    ["null", null],
    ["a response that is not over", response({ status: "in_progress" })],
    ["a response that was cancelled", response({ status: "cancelled" })],
    ["a call without a name", { output: [call({ name: "" })] }],
    ["a failure without an error", response({ status: "failed" })],
    ["a flat error", { object: "error", message: "m", output: [] }]
  ]
  for (const [name, body] of broken) {
    check(`${name} is no answer, asked for in one piece or as a stream`, (adapter, fake, route) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, body), Fake.json(200, body))
        const failure = yield* Effect.flip(adapter.complete(route, request()))
        const { events, failure: streamed } = yield* hear(adapter, route, request())
        assert.deepStrictEqual([failure.class, failure.status, streamed?.class, events], ["retry", 200, "retry", []])
      })
    )
  }
})

describe("the calls of a stream", () => {
  const added = (position: number | undefined, item: object) =>
    Fake.event({ type: "response.output_item.added", output_index: position, item })
  const done = (position: number | undefined, item: object) =>
    Fake.event({ type: "response.output_item.done", output_index: position, item })
  const piece = (position: number | undefined, item_id: string, delta: string) =>
    Fake.event({ type: "response.function_call_arguments.delta", output_index: position, item_id, delta })
  const [f, g] = ["f", "g"].map((name) => call({ name, call_id: `call_${name}`, id: `fc_${name}`, arguments: "" }))
  const [f1 = {}, g1 = {}] = [f, g]
  const fWhole = { ...f1, arguments: '{"a":1}' }
  const gWhole = { ...g1, arguments: '{"b":2}' }

  const hosts: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    [
      "in pieces that are mixed",
      [added(1, f1), added(2, g1), piece(2, "fc_g", '{"b"'), piece(1, "fc_f", '{"a":1}'), piece(2, "fc_g", ":2}")]
    ],
    [
      "whose item ids change",
      [
        added(1, f1),
        piece(1, "x1", '{"a":'),
        piece(1, "x2", "1}"),
        added(2, g1),
        piece(2, "x3", '{"b":2}'),
        done(2, gWhole)
      ]
    ],
    ["all at one position", [added(0, f1), piece(0, "fc_f", '{"a":1}'), added(0, g1), piece(0, "fc_g", '{"b":2}')]],
    ["without positions", [added(undefined, fWhole), added(undefined, g1), piece(undefined, "fc_g", '{"b":2}')]],
    ["only when they are done", [done(1, fWhole), done(2, gWhole)]],
    [
      "without pieces",
      [
        added(1, f1),
        Fake.event({ type: "response.function_call_arguments.done", output_index: 1, arguments: '{"a":1}' }),
        done(1, fWhole),
        added(2, g1),
        done(2, gWhole)
      ]
    ]
  ]
  for (const [name, events] of hosts) {
    check(name, (adapter, fake, route) =>
      Effect.gen(function* () {
        const end = Fake.event({ type: "response.completed", response: response({}) })
        yield* fake.script(Fake.sse(...events, end))
        const { events: got } = yield* hear(adapter, route, request())
        assert.deepStrictEqual(joined(got).toolCalls, [
          { id: "call_f", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          { id: "call_g", type: "function", function: { name: "g", arguments: '{"b":2}' } }
        ])
        assert.strictEqual(joined(got).finish, "tool_calls")
      })
    )
  }

  check("of none are called with none", (adapter, fake, route) =>
    Effect.gen(function* () {
      const end = Fake.event({ type: "response.completed", response: response({}) })
      yield* fake.script(Fake.sse(added(0, f1), done(0, f1), end))
      const { events } = yield* hear(adapter, route, request())
      assert.deepStrictEqual(
        joined(events).toolCalls.map((one) => one.function.arguments),
        ["{}"]
      )
    })
  )
})

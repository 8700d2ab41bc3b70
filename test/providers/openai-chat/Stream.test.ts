import { Deferred, Effect, Option } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { counted, countedSoFar, finished, scenarios, text } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { makeWriter } from "../Backpressure.ts"
import { chunk, openAiChat, wire } from "./Wire.ts"

const { breaks, check, streams, streamsAs, survivesCuts } = scenarios(openAiChat)

const a = chunk({ content: "a" })
const stop = chunk({}, "stop")

describe("a stream of an openai-chat host", () => {
  streamsAs([
    [
      "shows of roles, empty deltas, comments and chunks without choices only that the first has come",
      [
        ": hello\n\n",
        Fake.event({ choices: [], prompt_filter_results: [] }),
        chunk({ role: "assistant", content: "" }),
        chunk({ content: null, reasoning_content: "" }),
        Fake.event({}),
        Fake.event({ choices: [{ index: 1, delta: {} }] }),
        chunk({ content: "a" }, null, { error: null }),
        stop,
        Fake.done,
        chunk({ content: "after the end" })
      ],
      [text(""), text("a"), finished("stop")]
    ],
    [
      "passes usage on from any place, and the last one at the end",
      [
        chunk({ content: "a" }, null, { usage: { prompt_tokens: 1, completion_tokens: 1 } }),
        chunk({ content: "b" }, "stop", { usage: null }),
        Fake.event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }),
        Fake.done
      ],
      [
        countedSoFar({ prompt: 1, completion: 1 }),
        text("a"),
        counted({ prompt: 1, completion: 1 }),
        text("b"),
        counted({ prompt: 1, completion: 2 }),
        finished("stop"),
        counted({ prompt: 1, completion: 2 })
      ]
    ],
    [
      "keeps usage that came before the end",
      [chunk({ content: "a" }, null, { usage: { prompt_tokens: 1 } }), stop, Fake.done],
      [countedSoFar({ prompt: 1 }), text("a"), counted({ prompt: 1 }), finished("stop"), counted({ prompt: 1 })]
    ],
    [
      "is over after [DONE]",
      [a + stop + Fake.done + chunk({ content: "b" }) + Fake.event({ error: "late" })],
      [text("a"), finished("stop")]
    ],
    [
      "shows a refusal as content that was filtered",
      [chunk({ refusal: "I will" }), chunk({ refusal: " not." }), stop, Fake.done],
      [text("I will"), text(" not."), finished("content_filter")]
    ],
    ["is whole by a finish_reason without [DONE], cut or not", [a, stop, Fake.cut], [text("a"), finished("stop")]],
    ["is whole by a last [DONE] without a line's end", [a, stop, "data: [DONE]"], [text("a"), finished("stop")]],
    [
      "hands on many chunks at once",
      [a.repeat(50) + stop + Fake.done],
      [...Array.from({ length: 50 }, () => text("a")), finished("stop")]
    ]
  ])

  const { end, opening, output } = wire({ content: "Grüße, 你好 👋", finish: "stop" })
  survivesCuts([...opening, ...output, ...end], { content: "Grüße, 你好 👋" })
})

describe("the tool calls of an openai-chat host", () => {
  const calling = (...tool_calls: ReadonlyArray<unknown>) => chunk({ tool_calls })
  const f = { name: "f", arguments: '{"a":1}' }
  const g = { name: "g", arguments: '{"b":2}' }
  const opening = ({ name }: { readonly name: string }) => ({ name, arguments: "" })
  const piece = (input: string) => ({ arguments: input })

  const dialects: Readonly<Record<string, ReadonlyArray<Fake.Step>>> = {
    "counted from 0, in pieces": [
      calling({ index: 0, id: "x", type: "function", function: opening(f) }),
      calling({ index: 0, function: piece('{"a"') }),
      calling({ index: 1, id: "y", type: "function", function: opening(g) }),
      calling({ index: 1, function: piece('{"b":2}') }, { index: 0, function: piece(":1}") })
    ],
    "counted from 5": [calling({ index: 5, id: "x", function: f }), calling({ index: 6, id: "y", function: g })],
    "all with index 0": [calling({ index: 0, id: "x", function: f }), calling({ index: 0, id: "y", function: g })],
    "all with index 0, in pieces": [
      calling({ index: 0, id: "x", function: opening(f) }, { index: 0, function: piece('{"a":1}') }),
      calling({ index: 0, id: "y", function: opening(g) }, { index: 0, function: piece('{"b":2}') })
    ],
    "without an index": [calling({ id: "x", function: f }), calling({ id: "y", function: g })],
    "without an index, in pieces": [
      calling({ id: "x", function: opening(f) }),
      calling({ function: piece('{"a":') }),
      calling({ function: piece("1}") }),
      calling({ id: "y", function: opening(g) }),
      calling({ id: "y", function: piece('{"b":2}') })
    ],
    "without index or id": [calling({ function: f }, { function: g })],
    "with ids and names repeated": [
      calling(
        { index: 0, id: "x", function: { name: "f", arguments: '{"a"' } },
        { index: 0, id: "x", function: { name: "f", arguments: ":1}" } }
      ),
      calling({ index: 1, id: "y", function: g })
    ],
    "with a new id in every piece": [
      calling({ index: 0, id: "x1", function: opening(f) }),
      calling({ index: 0, id: "x2", function: piece('{"a":1}') }),
      calling({ index: 1, id: "y1", function: opening(g) }),
      calling({ index: 1, id: "y2", function: piece('{"b":2}') })
    ],
    "with the name after the first arguments": [
      calling({ index: 0, id: "x", function: piece('{"a"') }),
      calling({ index: 0, function: { name: "f", arguments: ":1}" } }),
      calling({ index: 1, id: "y", function: g })
    ],
    "with arguments that are objects": [
      calling(
        { index: 0, id: "x", function: { name: "f", arguments: { a: 1 } } },
        { index: 1, id: "y", function: { name: "g", arguments: { b: 2 } } }
      )
    ]
  }
  for (const [name, fragments] of Object.entries(dialects)) {
    streams(`are read ${name}`, [...fragments, chunk({}, "tool_calls"), Fake.done], ({ events, failure }) => {
      assert.isUndefined(failure)
      const { finish, toolCalls } = joined(events)
      assert.deepStrictEqual([finish, toolCalls.map((call) => call.function)], ["tool_calls", [f, g]])
    })
  }

  streams(
    "are two where they have two indexes and one id",
    [
      calling({ index: 0, id: "x", function: f }),
      calling({ index: 1, id: "x", function: opening(f) }),
      calling({ index: 1, id: "x", function: piece('{"a":2}') }),
      chunk({}, "tool_calls"),
      Fake.done
    ],
    ({ events }) => {
      const { toolCalls } = joined(events)
      assert.deepStrictEqual(
        toolCalls.map((call) => call.function.arguments),
        ['{"a":1}', '{"a":2}']
      )
      assert.strictEqual(new Set(toolCalls.map(({ id }) => id)).size, 2, "results of calls are told apart by their ids")
    }
  )

  const bare = calling({ index: 0, id: "x", function: opening(f) })
  streams("have an empty object without arguments", [bare, stop, Fake.done], ({ events }) => {
    const { finish, toolCalls } = joined(events)
    assert.deepStrictEqual([finish, toolCalls.map((call) => call.function.arguments)], ["tool_calls", ["{}"]])
  })

  const nameless = calling({ index: 0, id: "x", function: piece("{}") })
  breaks([["a call that never has a name", [nameless, chunk({}, "tool_calls"), Fake.done], "retry", 200, [text("")]]])
})

describe("a stream of an openai-chat host that fails", () => {
  const error = (of: unknown) => Fake.event({ error: of })
  const choice = (of: object) => ({ delta: {}, finish_reason: "error", ...of })
  const bad = { code: "rate_limit_exceeded", message: "m" }
  const flat = { object: "error", message: "m", type: "BadRequestError", code: 400 }
  breaks([
    ["an end without finish_reason or [DONE]", [a], "network", 200, [text("a")]],
    ["an empty body", [], "network", 200],
    ["a [DONE] without a finish_reason", [a, Fake.done], "retry", 200, [text("a")]],
    ["garbage in the middle", [a, 'data: {"choi\n\n', stop, Fake.done], "retry", 200, [text("a")]],
    ["data that is no chunk", ["data: 5\n\n", stop, Fake.done], "retry", 200],
    ["a half-written last event", [a, 'data: {"choices":[{"delta":{}'], "retry", 200, [text("a")]],
    ["a cut inside an event", [a, 'data: {"choices":[{"delta":{}', Fake.cut], "network", 200, [text("a")]],
    ["a finish_reason of error", [a, chunk({}, "error"), Fake.done], "retry", 200, [text("a")]],
    ["an error chunk", [a, error({ message: "m", type: "server_error" })], "retry", 200, [text("a")]],
    [
      "an error chunk with a finish",
      [Fake.event({ error: { code: 502, message: "m" }, choices: [choice({ delta: { content: "" } })] })],
      "retry",
      502
    ],
    ["an error inside a choice", [Fake.event({ choices: [choice({ error: { code: 429 } })] })], "limit", 429],
    ["an error of a flat host", [Fake.event(flat)], "request", 400],
    ["an event named error", [`event: error\n${Fake.event(bad)}`], "limit", 200],
    ["an event named error that is no JSON", ["event: error\ndata: boom\n\n"], "retry", 200],
    ["quota that ran out before the first delta", [error({ code: "insufficient_quota" })], "account", 200],
    ["moderation on the way", [a, error({ code: "content_policy_violation" })], "moderation", 200, [text("a")]]
  ])

  for (const [name, reply, expected] of [
    ["as a page", Fake.text(200, "text/html; charset=utf-8", "<html></html>"), ["retry", 200]],
    [
      "by an error whose body breaks off",
      Fake.steps({ status: 401, type: "application/json" }, '{"error":', Fake.cut),
      ["account", 401]
    ]
  ] as const) {
    check(`${name} is of its status`, function* (adapter, fake, route) {
      yield* fake.script(reply)
      const { failure } = yield* hear(adapter, route, request())
      assert.deepStrictEqual([failure?.class, failure?.status], [...expected])
    })
  }
})

describe("the connection of a stream", () => {
  check("is let go at [DONE], whatever the host does with it", function* (adapter, fake, route) {
    yield* fake.script(Fake.sse(a, stop, Fake.done, Effect.never))
    const heard = yield* hear(adapter, route, request())
    assert.deepStrictEqual(heard, { events: [text("a"), finished("stop")], failure: undefined })
    const { closed } = yield* fake.received
    yield* closed
  })

  check("is left to the next call once the stream is whole", function* (adapter, fake, route) {
    const ended = yield* Deferred.make<void>()
    yield* fake.script(Fake.sse(a, stop, Fake.done, Deferred.await(ended)), Fake.json(200, {}))
    yield* hear(adapter, route, request())
    yield* Deferred.succeed(ended, undefined)
    yield* Fake.settled
    yield* Effect.exit(adapter.complete(route, request()))
    const [first, second] = [yield* fake.received, yield* fake.received]
    assert.strictEqual(second.socket, first.socket)
  })

  check("holds up the host while its reader does not pull", function* (adapter, fake, route) {
    const total = 64 * 1024 * 1024
    const piece = chunk({ content: "x".repeat(32 * 1024) }).repeat(4)
    const { reply, stalled, written } = makeWriter(piece, total, stop + Fake.done)
    yield* fake.script(reply)
    const pull = yield* adapter.stream(route, request())
    yield* pull
    yield* stalled(500)
    assert.isBelow(written(), total / 2)
    const end = yield* Effect.flip(Effect.forever(pull))
    assert.deepStrictEqual([end, written() >= total], [Option.none(), true])
  })
})

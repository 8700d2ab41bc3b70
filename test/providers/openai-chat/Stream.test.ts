import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Option } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { type Heard, hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, chunk, finished, said, stop, text } from "./support.ts"

const calling = (...tool_calls: ReadonlyArray<unknown>) => chunk({ tool_calls })
const tools = chunk({}, "tool_calls")

const heard = (name: string, all: ReadonlyArray<Fake.Step>, then: (heard: Heard) => void) =>
  check(name, (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse(...all))
      then(yield* hear(adapter, route, request()))
    })
  )

describe("a stream of an openai-chat host", () => {
  heard(
    "of roles, empty deltas, comments and chunks without choices tells only that the first has come",
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
    (heard) => assert.deepStrictEqual(heard, said(text(""), text("a"), finished("stop")))
  )

  heard(
    "takes usage from any place, the last one counts, and tells it last",
    [
      chunk({ content: "a" }, null, { usage: { prompt_tokens: 1, completion_tokens: 1 } }),
      chunk({ content: "b" }, "stop", { usage: null }),
      Fake.event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }),
      Fake.done
    ],
    (heard) =>
      assert.deepStrictEqual(
        heard,
        said(text("a"), text("b"), finished("stop"), {
          type: "usage",
          usage: { prompt: 1, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
        })
      )
  )

  heard(
    "keeps usage that came before the end",
    [chunk({ content: "a" }, null, { usage: { prompt_tokens: 1, completion_tokens: 1 } }), stop, Fake.done],
    ({ events }) => assert.strictEqual(events.at(-1)?.type, "usage")
  )

  heard(
    "hears nothing after [DONE]",
    [chunk({ content: "a" }) + stop + Fake.done + chunk({ content: "b" }) + Fake.event({ error: "late" })],
    (heard) => assert.deepStrictEqual(heard, said(text("a"), finished("stop")))
  )

  heard(
    "shows a refusal as content that was filtered",
    [chunk({ refusal: "I will" }), chunk({ refusal: " not." }), stop, Fake.done],
    (heard) => assert.deepStrictEqual(heard, said(text("I will"), text(" not."), finished("content_filter")))
  )

  const two = [
    { type: "function", function: { name: "f", arguments: '{"a":1}' } },
    { type: "function", function: { name: "g", arguments: '{"b":2}' } }
  ]
  const callsOf = ({ events, failure }: Heard) => {
    assert.isUndefined(failure)
    assert.strictEqual(joined(events).finish, "tool_calls")
    return joined(events).toolCalls.map((call) => call.function)
  }
  const expected = two.map((call) => call.function)
  const [f, g] = ["f", "g"].map((name) => ({ name, arguments: "" }))
  const piece = (given: string) => ({ arguments: given })

  const dialects: ReadonlyArray<readonly [string, ReadonlyArray<Fake.Step>]> = [
    [
      "counted from 0, in pieces",
      [
        calling({ index: 0, id: "x", type: "function", function: f }),
        calling({ index: 0, function: piece('{"a"') }),
        calling({ index: 1, id: "y", type: "function", function: g }),
        calling({ index: 1, function: piece('{"b":2}') }, { index: 0, function: piece(":1}") })
      ]
    ],
    ["counted from 5", [calling({ index: 5, id: "x", ...two[0] }), calling({ index: 6, id: "y", ...two[1] })]],
    ["all with index 0", [calling({ index: 0, id: "x", ...two[0] }), calling({ index: 0, id: "y", ...two[1] })]],
    [
      "all with index 0, in pieces",
      [
        calling({ index: 0, id: "x", function: f }, { index: 0, function: piece('{"a":1}') }),
        calling({ index: 0, id: "y", function: g }, { index: 0, function: piece('{"b":2}') })
      ]
    ],
    ["without an index", [calling({ id: "x", ...two[0] }), calling({ id: "y", ...two[1] })]],
    [
      "without an index, in pieces",
      [
        calling({ id: "x", function: f }),
        calling({ function: piece('{"a":') }),
        calling({ function: piece("1}") }),
        calling({ id: "y", function: g }),
        calling({ id: "y", function: piece('{"b":2}') })
      ]
    ],
    ["without index or id", [calling(two[0], two[1])]],
    [
      "with ids and names repeated",
      [
        calling(
          { index: 0, id: "x", function: { name: "f", arguments: '{"a"' } },
          { index: 0, id: "x", function: { name: "f", arguments: ":1}" } }
        ),
        calling({ index: 1, id: "y", ...two[1] })
      ]
    ],
    [
      "with a new id in every piece",
      [
        calling({ index: 0, id: "x1", function: f }),
        calling({ index: 0, id: "x2", function: piece('{"a":1}') }),
        calling({ index: 1, id: "y1", function: g }),
        calling({ index: 1, id: "y2", function: piece('{"b":2}') })
      ]
    ],
    [
      "with the name after the first arguments",
      [
        calling({ index: 0, id: "x", function: piece('{"a"') }),
        calling({ index: 0, function: { name: "f", arguments: ":1}" } }),
        calling({ index: 1, id: "y", ...two[1] })
      ]
    ],
    [
      "with arguments that are objects",
      [
        calling(
          { index: 0, id: "x", function: { name: "f", arguments: { a: 1 } } },
          { index: 1, id: "y", function: { name: "g", arguments: { b: 2 } } }
        )
      ]
    ]
  ]
  for (const [name, fragments] of dialects) {
    heard(`tool calls ${name}`, [...fragments, tools, Fake.done], (heard) =>
      assert.deepStrictEqual(callsOf(heard), expected)
    )
  }

  heard(
    "a call without arguments is called with none",
    [calling({ index: 0, id: "x", function: f }), stop, Fake.done],
    (heard) => assert.deepStrictEqual(callsOf(heard), [{ name: "f", arguments: "{}" }])
  )

  const fails = (
    name: string,
    all: ReadonlyArray<Fake.Step>,
    meaning: string,
    status: number | undefined,
    before: ReadonlyArray<ChatEvent> = []
  ) =>
    heard(`${name}: ${meaning}`, all, ({ events, failure }) =>
      assert.deepStrictEqual([events, failure?.class, failure?.status], [before, meaning, status])
    )
  const a = chunk({ content: "a" })

  fails("an end without finish_reason or [DONE]", [a], "network", 200, [text("a")])
  fails("an empty body", [], "network", 200)
  fails("[DONE] without a finish_reason", [a, Fake.done], "retry", 200, [text("a")])
  fails("garbage in the middle", [a, 'data: {"choi\n\n', stop, Fake.done], "retry", 200, [text("a")])
  fails("data that is no chunk", ["data: 5\n\n", stop, Fake.done], "retry", 200)
  fails("a half-written last event", [a, 'data: {"choices":[{"delta":{}'], "retry", 200, [text("a")])
  fails("a cut inside an event", [a, 'data: {"choices":[{"delta":{}', Fake.cut], "network", 200, [text("a")])
  fails("a finish_reason of error", [a, chunk({}, "error"), Fake.done], "retry", 200, [text("a")])
  fails(
    "a call that never has a name",
    [calling({ index: 0, id: "x", function: piece("{}") }), tools, Fake.done],
    "retry",
    200,
    [text("")]
  )
  fails("an error chunk", [a, Fake.event({ error: { message: "m", type: "server_error" } })], "retry", 200, [text("a")])
  fails(
    "an error chunk with a finish",
    [Fake.event({ error: { code: 502, message: "m" }, choices: [{ delta: { content: "" }, finish_reason: "error" }] })],
    "retry",
    502
  )
  fails(
    "an error inside a choice",
    [Fake.event({ choices: [{ delta: {}, error: { code: 429 }, finish_reason: "error" }] })],
    "limit",
    429
  )
  fails(
    "an error of a flat host",
    [Fake.event({ object: "error", message: "m", type: "BadRequestError", code: 400 })],
    "request",
    400
  )
  fails(
    "an event named error",
    [`event: error\n${Fake.event({ code: "rate_limit_exceeded", message: "m" })}`],
    "limit",
    200
  )
  fails("an event named error that is no JSON", ["event: error\ndata: boom\n\n"], "retry", 200)
  fails(
    "quota that ran out before the first delta",
    [Fake.event({ error: { code: "insufficient_quota", message: "m" } })],
    "account",
    200
  )
  fails("moderation on the way", [a, Fake.event({ error: { code: "content_policy_violation" } })], "moderation", 200, [
    text("a")
  ])

  heard("a finish_reason without [DONE] is whole, cut or not", [a, stop, Fake.cut], (heard) =>
    assert.deepStrictEqual(heard, said(text("a"), finished("stop")))
  )
  heard("a last [DONE] without a line's end is whole", [a, stop, "data: [DONE]"], (heard) =>
    assert.deepStrictEqual(heard, said(text("a"), finished("stop")))
  )

  heard(
    "hands on many chunks at once",
    [Array.from({ length: 50 }, () => a).join("") + stop + Fake.done],
    ({ events }) => assert.strictEqual(events.length, 51)
  )

  check("ends at [DONE], whatever the host does with its connection", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse(a, stop, Fake.done, Effect.never))
      assert.deepStrictEqual(yield* hear(adapter, route, request()), said(text("a"), finished("stop")))
      const { closed } = yield* fake.received
      yield* closed
    })
  )

  check("leaves its connection to the next call once it is whole", (adapter, fake, route) =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      yield* fake.script(Fake.sse(a, stop, Fake.done, Deferred.await(ended)), Fake.json(200, {}))
      yield* hear(adapter, route, request())
      yield* Deferred.succeed(ended, undefined)
      yield* Fake.settled
      yield* Effect.exit(adapter.complete(route, request()))
      const [first, second] = [yield* fake.received, yield* fake.received]
      assert.strictEqual(second.socket, first.socket)
    })
  )

  check("a page where a stream belongs", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.text(200, "text/html; charset=utf-8", "<html></html>"))
      assert.strictEqual((yield* hear(adapter, route, request())).failure?.class, "retry")
    })
  )

  check("an error's body that breaks off still has its status", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.steps({ status: 401, type: "application/json" }, '{"error":', Fake.cut))
      const { failure } = yield* hear(adapter, route, request())
      assert.deepStrictEqual([failure?.class, failure?.status], ["account", 401])
    })
  )

  check("a reader that does not pull holds up the host", (adapter, fake, route) =>
    Effect.gen(function* () {
      const total = 64 * 1024 * 1024
      const piece = chunk({ content: "x".repeat(32 * 1024) }).repeat(4)
      let written = 0
      yield* fake.script(async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        while (written < total) {
          written += piece.length
          if (!response.write(piece)) await new Promise((resume) => response.once("drain", resume))
        }
        response.end(stop + Fake.done)
      })
      const pull = yield* adapter.stream(route, request())
      yield* pull
      for (let still = 0, seen = -1; still < 10; still = seen === written ? still + 1 : 0) {
        seen = written
        yield* Effect.sleep("50 millis")
      }
      assert.isBelow(written, total / 2)
      let ended: Option.Option<unknown> | undefined
      while (ended === undefined)
        ended = yield* Effect.match(pull, { onFailure: (end) => end, onSuccess: () => undefined })
      assert.deepStrictEqual([ended, written >= total], [Option.none(), true])
    })
  )
})

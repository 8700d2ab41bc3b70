import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { applyRules } from "../../../src/domain/ChatRules.ts"
import { InvalidRequest } from "../../../src/domain/Failure.ts"
import { readMessages } from "../../../src/http/chat/ChatMessages.ts"
import { hear, joined, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, inEvents, inOnePiece, refusing } from "./support.ts"
import { response, streamed, whole, written } from "./wire.ts"

const hi = { content: "hi", finish: "stop" } as const
const familyB = Effect.map(load({ text: builtIn, environment: { OPENAI_API_KEY: "k" } }), ({ models }) =>
  models.flatMap((model) => (model.surface === "chat" && model.family === "B" ? [model] : []))
)

describe("B / Chat Completions", () => {
  it.effect("has no functions from 5.4 on: they go over the Responses API, as do searches", () =>
    Effect.gen(function* () {
      const models = yield* familyB
      assert.lengthOf(models, 6)
      for (const { id, routes } of models) {
        const [first, ...others] = routes
        assert.strictEqual(first?.provider.adapter, "openai-responses", id)
        assert.isUndefined(first?.capabilities, id)
        const chat = others.filter(({ provider }) => provider.baseUrl === "https://api.openai.com/v1")
        assert.lengthOf(chat, 1)
        for (const { capabilities } of chat) {
          assert.strictEqual(capabilities?.has("tools"), id.endsWith("5.2"), id)
          assert.isFalse(capabilities?.has("web_search"), id)
        }
      }
    })
  )

  check("functions and reasoning go together here", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(inOnePiece(hi))
      yield* adapter.complete(route, request({ tools: [weatherTool], reasoningEffort: "high" }))
      const { body } = yield* fake.received
      assert.nestedInclude(body, { "tools[0].name": "get_weather", "reasoning.effort": "high" })
    })
  )
})

describe("B / web search", () => {
  check("is a tool of the host's own beside the client's, and none of the client's calls", (adapter, fake, route) =>
    Effect.gen(function* () {
      const search = { type: "web_search_call" as const, id: "ws_1", status: "completed" as const }
      const found = { ...search, action: { type: "search" as const, query: "q" } }
      const answered = response({ output: [found, ...whole(hi).output] })
      const { end, opening, output } = streamed(answered)
      yield* fake.script(Fake.json(200, answered), Fake.sse(...written([...opening, ...output, ...end])))
      const asked = request({ webSearch: true, tools: [weatherTool] })
      const piece = yield* adapter.complete(route, asked)
      const { events } = yield* hear(adapter, route, asked)
      assert.deepStrictEqual([piece.content, piece.toolCalls, piece.finish], ["hi", [], "stop"])
      assert.deepStrictEqual(joined(events), piece)
      for (const { body } of [yield* fake.received, yield* fake.received]) {
        assert.nestedInclude(body, { "tools[1].type": "web_search" })
      }
    })
  )
})

describe("B / summaries", () => {
  const sent = (fake: Fake.FakeUpstream) => Effect.map(fake.received, ({ body }) => Object(body).reasoning)

  check("are asked for, since reasoning has no text otherwise", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(inOnePiece({ ...hi, reasoning: "r" }))
      assert.strictEqual((yield* adapter.complete(route, request())).reasoning, "r")
      assert.deepStrictEqual(yield* sent(fake), { summary: "auto" })
    })
  )

  for (const code of ["unsupported_value", "unsupported_parameter"]) {
    check(`refused as ${code} are left out at once, and by this route from then on`, (adapter, fake, route) =>
      Effect.gen(function* () {
        const refusal = refusing(code, "reasoning.summary")
        yield* fake.script(refusal, inOnePiece(hi), inOnePiece(hi), inEvents(hi), inOnePiece(hi))
        const asked = request({ reasoningEffort: "low" })
        assert.strictEqual((yield* adapter.complete(route, asked)).content, "hi")
        yield* adapter.complete(route, asked)
        assert.isUndefined((yield* hear(adapter, route, asked)).failure)
        yield* adapter.complete({ ...route, id: "another" }, asked)
        const [without, all] = [{ effort: "low" }, { effort: "low", summary: "auto" }]
        for (const expected of [all, without, without, without, all]) {
          assert.deepStrictEqual(yield* sent(fake), expected)
        }
      })
    )
  }

  check("refused on a stream are left out of the same stream", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusing("unsupported_value", "reasoning.summary"), inEvents(hi))
      assert.strictEqual(joined((yield* hear(adapter, route, request())).events).content, "hi")
      assert.deepStrictEqual([yield* sent(fake), yield* sent(fake)], [{ summary: "auto" }, undefined])
    })
  )

  check(
    "refused once more, and whatever the client asked for itself, are the request's fault",
    (adapter, fake, route) =>
      Effect.gen(function* () {
        const again = refusing("unsupported_value", "reasoning.summary")
        yield* fake.script(
          again,
          again,
          refusing("unsupported_value", "reasoning.effort"),
          refusing("other", "reasoning.summary")
        )
        const fresh = { ...route, id: "another" }
        for (const to of [route, route, fresh]) {
          const failure = yield* Effect.flip(adapter.complete(to, request({ reasoningEffort: "low" })))
          assert.deepStrictEqual([failure.class, failure.status], ["request", 400])
        }
      })
  )

  check(
    "are not the only thing that takes a verified organization: so do streams of some models",
    (adapter, fake, route) =>
      Effect.gen(function* () {
        const refusals = [refusing("unsupported_value", "stream"), refusing("unsupported_value", "reasoning.summary")]
        yield* fake.script(...refusals, inOnePiece(hi), inOnePiece(hi))
        for (const _ of ["first", "second"]) {
          const { events, failure } = yield* hear(adapter, route, request())
          assert.deepStrictEqual([joined(events).content, failure], ["hi", undefined])
        }
        const streams = [yield* fake.received, yield* fake.received, yield* fake.received, yield* fake.received]
        assert.deepStrictEqual(
          streams.map(({ body }) => Object(body).stream),
          [true, undefined, undefined, undefined]
        )
      })
  )
})

describe("B / replay", () => {
  check("calls go back by their call_id alone, without the id that wants its reasoning", (adapter, fake, route) =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "call_a", name: "get_weather", arguments: '{"city":"Bern"}' }]
      const called = { toolCalls, reasoning: "r", finish: "tool_calls" } as const
      yield* fake.script(inOnePiece(called), inEvents(called), inOnePiece(hi))
      const asked = request({ tools: [weatherTool] })
      const answer = yield* adapter.complete(route, asked)
      assert.deepStrictEqual(joined((yield* hear(adapter, route, asked)).events).toolCalls, answer.toolCalls)
      assert.strictEqual(answer.toolCalls[0]?.id, "call_a")
      yield* adapter.complete(
        route,
        request({
          messages: [
            { role: "assistant", content: null, reasoning_content: answer.reasoning, tool_calls: answer.toolCalls },
            { role: "tool", content: "sunny", tool_call_id: "call_a" }
          ]
        })
      )
      yield* fake.received
      yield* fake.received
      assert.deepStrictEqual(Object((yield* fake.received).body).input, [
        { type: "function_call", call_id: "call_a", name: "get_weather", arguments: '{"city":"Bern"}' },
        { type: "function_call_output", call_id: "call_a", output: "sunny" }
      ])
    })
  )
})

describe("B / orphans", () => {
  it("a result without its call never leaves the gateway", () => {
    const read = readMessages([
      { role: "user", content: "hi" },
      { role: "tool", content: "sunny", tool_call_id: "call_a" }
    ])
    assert.instanceOf(read, InvalidRequest)
    assert.strictEqual(read instanceof InvalidRequest ? read.param : undefined, "messages")
  })
})

describe("B / effort", () => {
  it.effect("is what the catalog says of each id, whatever the host would take", () =>
    Effect.gen(function* () {
      for (const model of yield* familyB) {
        const refused = (["low", "medium", "high", "xhigh"] as const).filter((reasoningEffort) =>
          Either.isLeft(applyRules(model, request({ reasoningEffort })))
        )
        assert.deepStrictEqual(refused, model.id.endsWith("5.2") ? ["medium", "xhigh"] : [], model.id)
      }
    })
  )
})

describe("B / tool indexes and split characters", () => {
  const toolCalls = [
    { id: "call_a", name: "f", arguments: '{"a":"ü"}' },
    { id: "call_b", name: "g", arguments: '{"b":"👋"}' }
  ]
  const answer = { reasoning: "Hm, 你好.", content: "Grüße 👋", toolCalls, finish: "tool_calls" } as const

  check("indexes count calls alone, and characters may come in any bytes", (adapter, fake, route) =>
    Effect.gen(function* () {
      const { end, opening, output } = streamed(whole(answer))
      const bytes = Buffer.from(written([...opening, ...output, ...end]).join(""))
      const pieces = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
      yield* fake.script(Fake.sse(...pieces))
      const { events } = yield* hear(adapter, route, request())
      assert.deepStrictEqual(joined(events), {
        content: answer.content,
        reasoning: answer.reasoning,
        toolCalls: toolCalls.map(({ id, ...called }) => ({ id, type: "function" as const, function: called })),
        finish: "tool_calls",
        usage: undefined
      })
      const indexes = new Set(events.flatMap((event) => (event.type === "tool_call" ? [event.index] : [])))
      assert.deepStrictEqual([...indexes], [0, 1])
    })
  )
})

import { Effect } from "effect"
import type { ChatEvent } from "../../src/domain/Chat.ts"
import { called, hear, joined, request, weatherTool } from "../contracts/ChatHarness.ts"
import { scenarios } from "../contracts/ChatScenarios.ts"
import { assert, describe } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "./anthropic/Wire.ts"
import { chatWires } from "./ChatWires.ts"
import * as Responses from "./openai-responses/Wire.ts"

const usage = { prompt: 21, completion: 13, cached: 0, cacheWrite: 0, reasoning: 0 }
const call = { id: "call_a", name: "get_weather", arguments: '{"city":"Zürich"}' }
const answer = { content: "Let me see.", reasoning: "Hm.", toolCalls: [call], finish: "tool_calls", usage } as const
const expected = {
  content: "Let me see.",
  reasoning: "Hm.",
  toolCalls: [called(call.id, call.name, call.arguments)],
  finish: "tool_calls" as const
}
const chatRequest = request({ tools: [weatherTool] })

describe("whatever its content type says,", () => {
  for (const wire of chatWires) {
    const { check } = scenarios(wire)
    const { body, end, opening, output } = wire.encode(answer)
    const stream = [...opening, ...output, ...end]
    const as = (type: string, ...steps: ReadonlyArray<Fake.Step>) => Fake.steps({ type }, ...steps)

    check(`a stream in answer to a plain request is one answer: ${wire.adapter}`, function* (adapter, fake, route) {
      for (const type of ["text/event-stream", "application/json"]) {
        yield* fake.script(as(type, ": hello\n\n", ...stream))
        const fullAnswer = yield* adapter.complete(route, chatRequest)
        assert.deepInclude(fullAnswer, expected)
        assert.deepInclude(fullAnswer.usage, { prompt: 21, completion: 13 })
      }
    })

    check(
      `an answer in one piece is one, of a plain request and in place of a stream: ${wire.adapter}`,
      function* (adapter, fake, route) {
        const text = JSON.stringify(body)
        const halves = [`\n ${text.slice(0, 9)}`, Effect.yieldNow(), text.slice(9)]
        for (const type of ["text/event-stream; charset=utf-8", "application/json", "text/plain"]) {
          yield* fake.script(as(type, text), as(type, ...halves))
          assert.deepInclude(yield* adapter.complete(route, chatRequest), expected)
          const { events, failure } = yield* hear(adapter, route, chatRequest)
          assert.isUndefined(failure)
          assert.deepInclude(joined(events), expected)
        }
      }
    )

    check(`a stream is one, as it comes: ${wire.adapter}`, function* (adapter, fake, route) {
      yield* fake.script(as("application/json", ...stream))
      const { events, failure } = yield* hear(adapter, route, chatRequest)
      assert.isUndefined(failure)
      assert.deepInclude(joined(events), expected)
      assert.isAbove(events.filter(({ type }) => type === "tool_call").length, wire.adapter === "gemini" ? 0 : 1)
    })

    check(`a stream that breaks is no answer to a plain request: ${wire.adapter}`, function* (adapter, fake, route) {
      const { event } = wire.errorInside
      yield* fake.script(Fake.sse(...opening, ...output), Fake.sse(...opening, event))
      const cut = yield* Effect.flip(adapter.complete(route, chatRequest))
      assert.strictEqual(cut.class, "network")
      const failed = yield* Effect.flip(adapter.complete(route, chatRequest))
      assert.notStrictEqual(failed.class, "request")
    })

    check(`an error in one piece breaks a stream: ${wire.adapter}`, function* (adapter, fake, route) {
      yield* fake.script(as("text/event-stream", JSON.stringify(wire.errorInside.body)))
      const { events, failure } = yield* hear(adapter, route, chatRequest)
      assert.deepStrictEqual(events, [])
      assert.isDefined(failure)
    })

    const beats = [
      "data:\n\n",
      "data: \n\n",
      "event: ping\ndata:\n\n",
      "event: ping\n\n",
      "event: ping\ndata: pong\n\n",
      ": comment\n\n",
      "\n\n"
    ]
    check(`heartbeats of a stream are skipped: ${wire.adapter}`, function* (adapter, fake, route) {
      const beaten = stream.flatMap((event) => [...beats, event])
      yield* fake.script(Fake.sse(...stream), Fake.sse(...beaten, ...beats))
      const plain = yield* hear(adapter, route, chatRequest)
      const heard = yield* hear(adapter, route, chatRequest)
      assert.deepStrictEqual(heard, plain)
    })
  }
})

const natives = [
  {
    wire: Responses.openAiResponses,
    native: { dialect: "responses" as const, body: { model: "ours", input: "hi" }, headers: {}, extraTokens: 0 }
  },
  {
    wire: Anthropic.anthropic,
    native: {
      dialect: "messages" as const,
      body: { model: "ours", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
      headers: {},
      extraTokens: 0
    }
  }
]

const nativeIn = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((value) => (value.type === "native" ? [value.event] : []))

describe("in the client's own dialect", () => {
  for (const { native, wire } of natives) {
    const { check } = scenarios(wire)
    const { body, end, opening, output } = wire.encode(answer)
    const stream = [...opening, ...output, ...end]

    check(
      `a stream in answer to a plain request is the host's answer: ${wire.adapter}`,
      function* (adapter, fake, route) {
        yield* fake.script(Fake.json(200, body), Fake.sse(...stream))
        const fullAnswer = yield* adapter.complete(route, request({ native }))
        const assembled = yield* adapter.complete(route, request({ native }))
        assert.deepStrictEqual(Object(assembled.native).content, Object(fullAnswer.native).content)
        assert.deepStrictEqual(Object(assembled.native).output, Object(fullAnswer.native).output)
        assert.strictEqual(Object(assembled.native).stop_reason, Object(fullAnswer.native).stop_reason)
        assert.deepInclude(assembled, expected)
      }
    )

    check(`heartbeats are no events: ${wire.adapter}`, function* (adapter, fake, route) {
      const beats = ["data:\n\n", "event: ping\ndata:\n\n", "data: {}\n\n"]
      yield* fake.script(Fake.sse(...stream), Fake.sse(...stream.flatMap((event) => [...beats, event])))
      const plain = yield* hear(adapter, route, request({ native }))
      const heard = yield* hear(adapter, route, request({ native }))
      assert.deepStrictEqual(nativeIn(heard.events), nativeIn(plain.events))
    })
  }
})

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { bodyOf, called, check } from "./support.ts"
import { wire } from "./Wire.ts"

const thinking = (given: Partial<ChatRequest>, options: Record<string, unknown>) => bodyOf(given, options).thinking

const shown = { type: "adaptive", display: "summarized" } as const
const asked = { reasoningEffort: "low" } as const
const question = { role: "user", content: "Weather in Bern?" } as const
const calls: Message = { role: "assistant", content: null, tool_calls: [called("call_a", "get_weather", "{}")] }
const result: Message = { role: "tool", content: "sunny", tool_call_id: "call_a" }
const forced = { type: "function", function: { name: "get_weather" } } as const

describe("the thinking switch differs by model generation", () => {
  it("with a budget up to 4.5, adaptive from 4.6 on, and always on in some; any effort turns it on", () => {
    for (const reasoningEffort of ["low", "medium", "high", "xhigh"] as const) {
      assert.deepStrictEqual(thinking({ reasoningEffort }, { thinking: "budget" }), {
        type: "enabled",
        budget_tokens: 2048
      })
      assert.deepStrictEqual(thinking({ reasoningEffort }, { thinking: "adaptive" }), shown)
      assert.deepStrictEqual(thinking({ reasoningEffort }, { thinking: "always" }), shown)
    }
    assert.deepStrictEqual(thinking(asked, {}), shown, "adaptive where the route does not say")
  })

  it("off is to say nothing: `disabled` is refused by models that think always or only when asked", () => {
    for (const kind of ["budget", "adaptive", "always"]) assert.isUndefined(thinking({}, { thinking: kind }), kind)
  })

  it("models that think unless told not to are told so", () => {
    for (const off of ["disabled", "between_tools"] as const) {
      const options = { thinking: "adaptive", thinking_off: off }
      assert.deepStrictEqual(thinking({}, options), { type: off })
      assert.deepStrictEqual(thinking(asked, options), shown)
    }
  })

  it("models that always think do so least where nobody asked for it", () => {
    assert.deepStrictEqual(bodyOf({}, { thinking: "always" }).output_config, { effort: "low" })
    assert.isUndefined(bodyOf(asked, { thinking: "always" }).output_config)
    assert.isUndefined(bodyOf({}, { thinking: "adaptive" }).output_config)
  })
})

describe("empty reasoning", () => {
  it("thinking is asked for with its summary, which newer models leave out by default", () => {
    for (const kind of ["adaptive", "always"]) {
      assert.deepInclude(thinking(asked, { thinking: kind }), { display: "summarized" })
    }
  })
})

describe("budget arithmetic", () => {
  for (const [maxTokens, budget] of [
    [8192, 4096],
    [4096, 2048],
    [4097, 2048],
    [2048, 1024],
    [2047, 1024],
    [1537, 1024],
    [1536, 1024],
    [1535, undefined],
    [1, undefined]
  ] as const) {
    it(`of ${maxTokens} tokens ${budget ?? "none"} are for thinking`, () => {
      const sent = thinking({ ...asked, maxTokens }, { thinking: "budget" })
      assert.deepStrictEqual(sent, budget && { type: "enabled", budget_tokens: budget })
      if (budget !== undefined) assert.isAtMost(budget, maxTokens - 512)
    })
  }
})

describe("history without its signed thinking", () => {
  const loop = { ...asked, messages: [question, calls, result], tools: [weatherTool] }

  it("a budget is dropped while the last assistant turn has called tools", () => {
    assert.isUndefined(thinking(loop, { thinking: "budget" }))
    const later: ReadonlyArray<Message> = [...loop.messages, { role: "user", content: "And?" }]
    assert.isUndefined(thinking({ ...loop, messages: later }, { thinking: "budget" }), "it is the same turn")
  })

  it("a budget comes back once the assistant has answered in text", () => {
    const messages: ReadonlyArray<Message> = [
      ...loop.messages,
      { role: "assistant", content: "Sunny." },
      { role: "user", content: "And Oslo?" }
    ]
    assert.isDefined(thinking({ ...loop, messages }, { thinking: "budget" }))
  })

  it("adaptive thinking asks nothing of earlier turns", () => {
    assert.deepStrictEqual(thinking(loop, { thinking: "adaptive" }), shown)
    assert.deepStrictEqual(thinking(loop, { thinking: "always" }), shown)
  })

  it("reasoning that clients send back is not sent on: it has no signature", () => {
    const messages: ReadonlyArray<Message> = [
      question,
      { role: "assistant", content: "Sunny.", reasoning_content: "Let me see." },
      question
    ]
    assert.notInclude(JSON.stringify(bodyOf({ messages })), "Let me see.")
  })
})

describe("forced tool_choice", () => {
  for (const toolChoice of ["required", forced] as const) {
    const given = { ...asked, toolChoice, tools: [weatherTool] }
    it(`${typeof toolChoice === "string" ? toolChoice : "a named tool"} beats thinking, which cannot come first`, () => {
      assert.isUndefined(thinking(given, { thinking: "budget" }))
      assert.isUndefined(thinking(given, { thinking: "adaptive" }))
      assert.deepStrictEqual(thinking(given, { thinking_off: "disabled" }), { type: "disabled" })
      assert.deepStrictEqual(thinking(given, { thinking: "always" }), shown, "which has no choice")
    })
  }

  for (const toolChoice of ["auto", "none"] as const) {
    it(`${toolChoice} leaves thinking alone`, () => {
      assert.deepStrictEqual(thinking({ ...asked, toolChoice, tools: [weatherTool] }, {}), shown)
    })
  }

  const declined = { forced_tools: false }
  check(
    "a route whose model takes none declines such a request, and no other",
    (adapter, _, route) =>
      Effect.sync(() => {
        const param = (given: Partial<ChatRequest>) => adapter.declines?.(route, request(given))
        assert.strictEqual(param({ tools: [weatherTool], toolChoice: "required" }), "tool_choice")
        assert.strictEqual(param({ tools: [weatherTool], toolChoice: forced }), "tool_choice")
        for (const toolChoice of ["auto", "none", undefined] as const) {
          assert.isUndefined(param({ tools: [weatherTool], toolChoice }))
        }
        const open = { ...route, options: {} }
        assert.isUndefined(adapter.declines?.(open, request({ tools: [weatherTool], toolChoice: "required" })))
      }),
    declined
  )
})

describe("a host that refuses the thinking it was asked for", () => {
  const message = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
  const refusal = Fake.json(400, { type: "error", error: { type: "invalid_request_error", message } })
  const { body, end, opening, output } = wire({ content: "42", finish: "stop" })

  check("is asked once more without", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusal, Fake.json(200, body))
      const answer = yield* adapter.complete(route, request(asked))
      assert.strictEqual(answer.content, "42")
      const { thinking: first, ...rest } = Object(yield* Effect.map(fake.received, (one) => one.body))
      assert.deepStrictEqual(first, shown)
      assert.deepStrictEqual((yield* fake.received).body, rest)
    })
  )

  check("is asked once more without, in a stream", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusal, Fake.sse(opening, ...output, ...end))
      const pull = yield* adapter.stream(route, request({ ...asked, stream: true }))
      assert.isAbove((yield* pull).length, 0)
    })
  )

  check("is not asked a third time", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusal, refusal)
      const failure = yield* Effect.flip(adapter.complete(route, request(asked)))
      assert.strictEqual(failure.class, "request")
    })
  )

  check("is asked once where nothing was said of thinking", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusal)
      assert.strictEqual((yield* Effect.flip(adapter.complete(route, request()))).class, "request")
    })
  )
})

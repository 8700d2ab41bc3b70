import { Effect } from "effect"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import { options as decoder, encodeRequest, rulesOf } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { called, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, wire } from "./Wire.ts"

const { check } = scenarios(anthropic)
const callOf = callTo(anthropic, { decoder, rulesOf }, { thinking: true })
const bodyOf = (...overrides: Parameters<typeof callOf>) => encodeRequest(callOf(...overrides))

const adaptive = { type: "adaptive", display: "summarized" }
const enabled = (budget_tokens: number) => ({ type: "enabled", budget_tokens })
const chatRequest = { reasoningEffort: "low" } as const
const question = { role: "user", content: "Weather in Bern?" } as const
const calls: Message = { role: "assistant", content: null, tool_calls: [called("call_a", "get_weather", "{}")] }
const result: Message = { role: "tool", content: "sunny", tool_call_id: "call_a" }
const answer: Message = { role: "assistant", content: "Sunny.", reasoning_content: "Let me see." }
const loop = { ...chatRequest, messages: [question, calls, result], tools: [weatherTool] }
const named = { type: "function", function: { name: "get_weather" } } as const
const forced = { ...chatRequest, toolChoice: "required", tools: [weatherTool] } as const
const forcedByName = { ...forced, toolChoice: named }
const efforts = ["low", "medium", "high", "xhigh"] as const

describe("thinking", () => {
  const budget = { thinking: "budget" }
  const always = { thinking: "always" }
  const rows: ReadonlyArray<readonly [string, Partial<ChatRequest>, Record<string, unknown>, unknown]> = [
    ...efforts.flatMap((reasoningEffort) => [
      [`is a budget up to 4.5, ${reasoningEffort}`, { reasoningEffort }, budget, enabled(2048)] as const,
      [`is adaptive from 4.6 on, ${reasoningEffort}`, { reasoningEffort }, {}, adaptive] as const,
      [`is adaptive in models that always think, ${reasoningEffort}`, { reasoningEffort }, always, adaptive] as const
    ]),
    ["is adaptive by name", chatRequest, { thinking: "adaptive" }, adaptive],
    ["is off by saying nothing to a budget's model", {}, budget, undefined],
    ["is off by saying nothing to an adaptive model", {}, {}, undefined],
    ["is not spoken of to models that always think", {}, always, undefined],
    ["is turned off in models that think unless told not to", {}, { thinking_off: "disabled" }, { type: "disabled" }],
    ["is turned off between tools", {}, { thinking_off: "between_tools" }, { type: "between_tools" }],
    ["is on where asked for, whatever turns it off", chatRequest, { thinking_off: "disabled" }, adaptive],
    ["has no budget while the last assistant turn has called tools", loop, budget, undefined],
    [
      "has no budget after a question within the same turn",
      { ...loop, messages: [...loop.messages, { role: "user", content: "And?" }] },
      budget,
      undefined
    ],
    [
      "has a budget again once the assistant has answered in text",
      { ...loop, messages: [...loop.messages, answer, question] },
      budget,
      enabled(2048)
    ],
    ["asks nothing of earlier turns when adaptive", loop, {}, adaptive],
    ["asks nothing of earlier turns in models that always think", loop, always, adaptive],
    ...[forced, forcedByName].flatMap((input, at) => [
      [`gives way to a forced tool, budget ${at}`, input, budget, undefined] as const,
      [`gives way to a forced tool, adaptive ${at}`, input, {}, undefined] as const,
      [`is turned off for a forced tool ${at}`, input, { thinking_off: "disabled" }, { type: "disabled" }] as const,
      [`always goes before a forced tool ${at}`, input, always, adaptive] as const
    ]),
    ["is left alone by the choice auto", { ...forced, toolChoice: "auto" }, {}, adaptive],
    ["is left alone by the choice none", { ...forced, toolChoice: "none" }, {}, adaptive],
    ...(
      [
        [8192, 4096],
        [4096, 2048],
        [4097, 2048],
        [2048, 1024],
        [2047, 1024],
        [1537, 1024],
        [1536, 1024],
        [1535, undefined],
        [1, undefined]
      ] as const
    ).map(([maxTokens, tokens]) => {
      return [
        `of ${maxTokens} takes ${tokens}`,
        { ...chatRequest, maxTokens },
        budget,
        tokens && enabled(tokens)
      ] as const
    })
  ]
  it.each(rows)("%s", (_, input, options, expected) =>
    assert.deepStrictEqual<unknown>(bodyOf(input, options).thinking, expected)
  )

  it("is least in models that always think, where nobody asked for it", () => {
    assert.deepStrictEqual(bodyOf({}, always).output_config, { effort: "low" })
    assert.isUndefined(bodyOf(chatRequest, always).output_config)
    assert.isUndefined(bodyOf({}, { thinking: "adaptive" }).output_config)
  })

  it("that clients send back is not sent on: it has no signature", () => {
    assert.notInclude(JSON.stringify(bodyOf({ messages: [question, answer, question] })), "Let me see.")
  })

  const declined = { forced_tools: false }
  check(
    "makes a route whose model takes no forced tool decline such a request, and no other",
    (adapter, _, route) =>
      Effect.sync(() => {
        const param = (input: Partial<ChatRequest>) => adapter.findUnsupportedField?.(route, request(input))
        assert.strictEqual(param(forced), "tool_choice")
        assert.strictEqual(param(forcedByName), "tool_choice")
        for (const toolChoice of ["auto", "none"] as const) assert.isUndefined(param({ ...forced, toolChoice }))
        assert.isUndefined(param({ tools: [weatherTool] }))
        assert.isUndefined(param({ toolChoice: "required" }))
        assert.isUndefined(adapter.findUnsupportedField?.({ ...route, options: {} }, request(forced)))
      }),
    declined
  )
})

describe("a host that refuses the thinking it was asked for", () => {
  const message = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
  const refusal = Fake.json(400, { type: "error", error: { type: "invalid_request_error", message } })
  const { body, end, opening, output } = wire({ content: "42", finish: "stop" })

  check("is asked once more without", function* (adapter, fake, route) {
    yield* fake.script(refusal, Fake.json(200, body))
    assert.strictEqual((yield* adapter.complete(route, request(chatRequest))).content, "42")
    const { thinking: first, ...rest } = Object((yield* fake.received).body)
    assert.deepStrictEqual(first, adaptive)
    assert.deepStrictEqual((yield* fake.received).body, rest)
  })

  check("is asked once more without, in a stream", function* (adapter, fake, route) {
    yield* fake.script(refusal, Fake.sse(...opening, ...output, ...end))
    const pull = yield* adapter.stream(route, request({ ...chatRequest, stream: true }))
    assert.isAbove((yield* pull).length, 0)
  })

  for (const [name, input, replies] of [
    ["is not asked a third time", chatRequest, [refusal, refusal]],
    ["is asked once where nothing was said of thinking", {}, [refusal]]
  ] as const) {
    check(name, function* (adapter, fake, route) {
      yield* fake.script(...replies)
      assert.strictEqual((yield* Effect.flip(adapter.complete(route, request(input)))).class, "request")
    })
  }
})

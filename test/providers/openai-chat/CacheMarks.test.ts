import type { CacheControl, ChatRequest } from "../../../src/domain/Chat.ts"
import { options as decoder, encodeRequest, rulesOf } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { called, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { openAiChat } from "./Wire.ts"

const { check } = scenarios(openAiChat)
const callOf = callTo(openAiChat, { decoder, rulesOf }, { maxTokensField: "max_tokens", streamOptions: true } as const)
const bodyOf = (...overrides: Parameters<typeof callOf>): object => encodeRequest(callOf(...overrides))

const mark: CacheControl = { type: "ephemeral" }
const marked = { cache_control: mark }
const forAnHour = { cache_control: { ...mark, ttl: "1h" } } as const
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more }) as const

const conversation: Partial<ChatRequest> = {
  tools: [{ ...weatherTool, ...marked }],
  messages: [
    { role: "system", content: "Be brief.", ...marked },
    { role: "user", content: [text("Weather?", forAnHour), text("In Bern.")] },
    { role: "assistant", content: null, tool_calls: [called("call_a", "get_weather", "{}")] },
    { role: "tool", content: "sunny", tool_call_id: "call_a", ...marked }
  ]
}
const withMarks = (marks: object, onTool: object, onUser: object) => ({
  tools: [{ ...weatherTool, ...onTool }],
  messages: [
    { role: "system", content: [text("Be brief.", marks)] },
    { role: "user", content: [text("Weather?", onUser), text("In Bern.")] },
    { role: "assistant", content: null, tool_calls: [called("call_a", "get_weather", "{}")] },
    { role: "tool", content: [text("sunny", marks)], tool_call_id: "call_a" }
  ]
})

describe("marks for the cache of an openai-chat host", () => {
  it("are not sent to a host that is not known to take them", () => {
    const { messages = [] } = conversation
    const parts = [text("Weather?"), text("In Bern.")]
    const plain = {
      tools: [weatherTool],
      messages: messages.map((message) =>
        message.role === "user" ? { ...message, content: parts } : { ...message, cache_control: undefined }
      )
    }
    assert.deepStrictEqual(bodyOf(conversation), bodyOf(plain))
    assert.deepStrictEqual(bodyOf(conversation, { cache: "none" }), bodyOf(plain))
  })

  it("are sent on parts and tools, of one kind since the host's usage does not tell them apart", () => {
    assert.deepInclude(bodyOf(conversation, { cache: "manual" }), withMarks(marked, marked, marked))
    const messages = [{ role: "user", content: "Weather?", ...forAnHour }] as const
    assert.deepInclude(bodyOf({ messages }, { cache: "manual" }), {
      messages: [{ role: "user", content: [text("Weather?", forAnHour)] }]
    })
  })

  it("are sent as OpenAI's breakpoints, which tools have none of", () => {
    const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } }
    assert.deepInclude(bodyOf(conversation, { cache: "breakpoints" }), withMarks(breakpoint, {}, breakpoint))
  })

  it("are made by the gateway for a conversation without any", () => {
    const long = "All of this is worth keeping. ".repeat(100)
    const messages = [
      { role: "system", content: long },
      { role: "user", content: "Weather in Bern?" },
      { role: "assistant", content: "Sunny." },
      { role: "user", content: "And in Rome?" }
    ] as const
    assert.deepInclude(bodyOf({ messages }, { cache: "auto" }), {
      messages: [
        { role: "system", content: [text(long, marked)] },
        { role: "user", content: [text("Weather in Bern?", marked)] },
        messages[2],
        { role: "user", content: [text("And in Rome?", marked)] }
      ]
    })
  })
})

describe("what an openai-chat host has written to its cache", () => {
  const usage = { prompt_tokens: 90, completion_tokens: 2, prompt_tokens_details: { cache_write_tokens: 80 } }
  const answer = Fake.json(200, { choices: [{ message: { content: "Hi." }, finish_reason: "stop" }], usage })
  const of = (...marks: ReadonlyArray<object>): Partial<ChatRequest> => ({
    messages: marks.map((own) => ({ role: "user", content: "Weather?", ...own }))
  })

  for (const [name, chatRequest, options, written] of [
    ["is for an hour where all marks were", of(forAnHour, forAnHour), { cache: "manual" }, 80],
    ["is for five minutes where one mark was", of(forAnHour, marked), { cache: "manual" }, undefined],
    ["is for five minutes where no mark was sent", of(forAnHour), {}, undefined],
    [
      "is for five minutes where an hour has no price",
      { ...of(forAnHour), unpricedBreakpoints: "hour" },
      { cache: "auto" },
      undefined
    ]
  ] as const) {
    check(
      name,
      function* (adapter, fake, route) {
        yield* fake.script(answer)
        const { usage: counted } = yield* adapter.complete(route, request(chatRequest))
        assert.deepStrictEqual([counted?.cacheWrite, counted?.cacheWriteHour], [80, written])
      },
      options
    )
  }
})

describe("a key for the cache of an openai-chat host", () => {
  const keyed = { promptCacheKey: "session-1", promptCacheRetention: "24h" } as const
  const answer = Fake.json(200, { choices: [{ message: { content: "Hi." }, finish_reason: "stop" }] })
  const keyOf = ({ body, headers }: Fake.Received) => {
    const { prompt_cache_key, prompt_cache_retention } = Object(body)
    return [prompt_cache_key, prompt_cache_retention, headers["x-grok-conv-id"]]
  }

  for (const [name, options, expected] of [
    ["is kept from a host without an option for it", {}, [undefined, undefined, undefined]],
    ["goes into the body with the retention", { cache_key: "prompt_cache_key" }, ["session-1", "24h", undefined]],
    ["goes into xAI's header", { cache_key: "x-grok-conv-id" }, [undefined, undefined, "session-1"]]
  ] as const) {
    check(
      name,
      function* (adapter, fake, route) {
        yield* fake.script(answer)
        yield* adapter.complete(route, request(keyed))
        assert.deepStrictEqual(keyOf(yield* fake.received), [...expected])
      },
      options
    )
  }

  check(
    "that no header or host would take is hashed",
    function* (adapter, fake, route) {
      for (const promptCacheKey of ["x".repeat(65), "two\r\nlines", "Zürich"]) {
        yield* fake.script(answer)
        yield* adapter.complete(route, request({ promptCacheKey }))
        assert.match(String((yield* fake.received).headers["x-grok-conv-id"]), /^[0-9a-f]{64}$/)
      }
    },
    { cache_key: "x-grok-conv-id" }
  )

  check(
    "is sent again without a retention that the model does not have",
    function* (adapter, fake, route) {
      const error = { message: "No", type: "invalid_request_error", param: "prompt_cache_retention" }
      yield* fake.script(Fake.json(400, { error: { ...error, code: "unsupported_value" } }), answer)
      yield* adapter.complete(route, request({ ...keyed, promptCacheRetention: "in_memory" }))
      const sent = [yield* fake.received, yield* fake.received].map(keyOf)
      assert.deepStrictEqual(sent, [
        ["session-1", "in_memory", undefined],
        ["session-1", undefined, undefined]
      ])
    },
    { cache_key: "prompt_cache_key" }
  )
})

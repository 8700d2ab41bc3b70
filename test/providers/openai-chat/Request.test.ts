import { Effect } from "effect"
import type { ChatCompletionCreateParamsBase } from "openai/resources/chat/completions"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import {
  options as decoder,
  encodeRequest,
  type Quirks,
  rulesOf
} from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { called, hear, joined, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { secret } from "../../contracts/ChatHosts.ts"
import { callTo, finished, scenarios, text } from "../../contracts/ChatScenarios.ts"
import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk, openAiChat, refusing } from "./Wire.ts"

const { bodies, check } = scenarios(openAiChat)

const usual: Quirks = { maxTokensField: "max_tokens", streamOptions: true }
const callOf = callTo(openAiChat, { decoder, rulesOf }, usual)
/** Bodies have the types of OpenAI's client. */
const bodyOf = (...overrides: Parameters<typeof callOf>) => {
  const body: ChatCompletionCreateParamsBase = encodeRequest(callOf(...overrides))
  return body
}

const result = (id: string): Message => ({ role: "tool", content: "r", tool_call_id: id })
const calling = (...ids: ReadonlyArray<string>): Message => {
  return { role: "assistant", content: null, tool_calls: ids.map((id) => called(id, "f", "{}")) }
}
const answered = (content: unknown) => Fake.json(200, { choices: [{ message: { content }, finish_reason: "stop" }] })

const noParameters = { type: "object", properties: {} }

describe("a request to an openai-chat host", () => {
  const parts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" }
  ] as const
  const everything: Partial<ChatRequest> = {
    messages: [
      { role: "system", content: "S", name: "boss" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png", detail: "huge" } }] },
      { role: "assistant", content: null, reasoning_content: "thought", tool_calls: [called("c", "f", "{}")] },
      { role: "tool", content: parts, tool_call_id: "c" },
      { role: "assistant", content: "ok", tool_calls: [] },
      { role: "assistant", content: null }
    ],
    maxTokens: 9,
    stop: ["a", "b"],
    tools: [weatherTool, { type: "function", function: { name: "bare", strict: null } }],
    toolChoice: "auto",
    parallelToolCalls: false,
    reasoningEffort: "xhigh",
    responseFormat: { type: "json_object" },
    temperature: 0,
    topP: 0.5,
    seed: 7,
    frequencyPenalty: -1,
    presencePenalty: 1
  }

  it("says everything that was asked, and nothing else", () => {
    assert.deepStrictEqual<unknown>(bodyOf(everything, {}, true), {
      model: "vendor/model-1",
      messages: [
        { role: "system", content: "S", name: "boss" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] },
        { role: "assistant", content: null, tool_calls: [called("c", "f", "{}")] },
        { role: "tool", content: "a\nb", tool_call_id: "c" },
        { role: "assistant", content: "ok" }
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 9,
      stop: ["a", "b"],
      tools: [weatherTool, { type: "function", function: { name: "bare", parameters: noParameters, strict: null } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      reasoning_effort: "xhigh",
      response_format: { type: "json_object" },
      temperature: 0,
      top_p: 0.5,
      seed: 7,
      frequency_penalty: -1,
      presence_penalty: 1
    })
  })

  it("leaves out what was not asked", () => {
    assert.deepStrictEqual<unknown>(bodyOf({ toolChoice: "auto", parallelToolCalls: true }), {
      model: "vendor/model-1",
      messages: [{ role: "user", content: "Say something." }],
      max_tokens: 4096
    })
  })

  it("sends reasoning back only to routes that want it", () => {
    const sends = (options: object) => JSON.stringify(bodyOf(everything, { ...options })).includes("thought")
    assert.deepStrictEqual([sends({}), sends({ reasoning_history: true })], [false, true])
  })

  it("adds a route's own web search where it was asked for, beside the client's tools", () => {
    const search = { type: "web_search" }
    const options = { web_search: { tools: [search], search_context_size: "low" } }
    const without = bodyOf({ tools: [weatherTool] }, options)
    const searching: unknown = bodyOf({ tools: [weatherTool], webSearch: true }, options)
    assert.deepInclude<object>(without, { tools: [weatherTool] })
    assert.notProperty(without, "search_context_size")
    assert.deepInclude(searching, { tools: [weatherTool, search], search_context_size: "low" })
  })

  it("shortens ids of calls that OpenAI refuses, a call's and its result's alike", () => {
    const idsFor = (id: string) =>
      bodyOf({ messages: [calling(id), result(id)] }).messages.map((message) =>
        "tool_call_id" in message ? message.tool_call_id : "tool_calls" in message && message.tool_calls?.[0]?.id
      )
    const fits = "c".repeat(40)
    assert.deepStrictEqual(idsFor(fits), [fits, fits])
    const [call, answer] = idsFor(`${fits}d`)
    assert.match(String(call), /^call_[a-zA-Z0-9]{24}$/)
    assert.strictEqual(answer, call)
    assert.notDeepEqual(idsFor(`${fits}e`), [call, call])
  })

  it.each([
    [{ thought_signatures: true }, ["b", "d"]],
    [{}, []],
    [{ thought_signatures: false }, []]
  ])("with %j puts a placeholder beside the first call of each step of the turn: %j", (options, expected) => {
    const user = (content: string) => ({ role: "user", content }) as const
    const before = [user("before"), calling("a"), result("a")]
    const now = [user("now"), calling("b", "c"), result("b"), result("c"), calling("d"), result("d")]
    const google = { thought_signature: "skip_thought_signature_validator" }
    const { messages } = encodeRequest(callOf({ messages: [...before, ...now] }, options))
    const sent = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
    assert.deepStrictEqual(
      sent.flatMap((call) => ("extra_content" in call ? [[call.id, call.extra_content]] : [])),
      expected.map((id) => [id, { google }])
    )
  })

  check("goes to the route's path with its credential", function* (adapter, fake, route) {
    yield* fake.script(answered("hi"))
    yield* adapter.complete(route, request())
    const { headers, path } = yield* fake.received
    assert.deepStrictEqual([path, headers.authorization], ["/v1/chat/completions", `Bearer ${secret}`])
  })
})

describe("stop sequences of an openai-chat host", () => {
  const content = "One. END Two."
  const usage = { prompt_tokens: 21, completion_tokens: 13 }
  const chatRequest = request({ stop: ["END"] })

  check("are its own business unless the route says so", function* (adapter, fake, route) {
    yield* fake.script(answered(content))
    assert.strictEqual((yield* adapter.complete(route, chatRequest)).content, content)
    assert.deepInclude((yield* fake.received).body, { stop: ["END"] })
  })

  check("are cut here where it refuses them, and its usage counts all", function* (adapter, fake, route) {
    const cutting = { ...route, options: { stop: "cut" } }
    yield* fake.script(
      Fake.json(200, { choices: [{ message: { content }, finish_reason: "length" }], usage }),
      Fake.sse(chunk({ content: "One. E" }), chunk({ content: "ND Two." }), chunk({}, "length", { usage }), Fake.done)
    )
    const fullAnswer = yield* adapter.complete(cutting, chatRequest)
    const { events, failure } = yield* hear(adapter, cutting, chatRequest)
    assert.isUndefined(failure)
    assert.deepStrictEqual(joined(events), fullAnswer)
    assert.deepInclude(fullAnswer, { content: "One. ", finish: "stop" })
    assert.deepInclude(fullAnswer.usage, { prompt: 21, completion: 13 })
    for (const body of yield* bodies(fake, 2)) assert.notProperty(body, "stop")
  })

  it.effect("are cut here on every such route of the built-in catalog that serves family B", function* () {
    const { models } = yield* load({ text: builtIn, environment: { OPENAI_API_KEY: "k", OPENROUTER_API_KEY: "k" } })
    const routes = models.flatMap((model) => (model.surface === "chat" && model.family === "B" ? model.routes : []))
    const chat = routes.filter(({ provider }) => provider.adapter === "openai-chat")
    assert.lengthOf(chat, 12)
    for (const { id, options } of chat) assert.strictEqual(options["stop"], "cut", id)
  })
})

describe("an openai-chat host that refuses a field of the gateway's", () => {
  const good = answered("hi")
  const goodStream = Fake.sse(chunk({ content: "hi" }), chunk({}, "stop"), Fake.done)

  check("is asked again the other way, and so from then on", function* (adapter, fake, route) {
    yield* fake.script(refusing("unsupported_parameter", "max_tokens"), good, good, good)
    yield* adapter.complete(route, request())
    yield* adapter.complete(route, request())
    yield* adapter.complete({ ...route, id: "another" }, request())
    const [refused, ...others] = yield* bodies(fake, 3)
    assert.property(refused, "max_tokens")
    for (const body of others) {
      assert.property(body, "max_completion_tokens")
      assert.notProperty(body, "max_tokens")
    }
    assert.property((yield* fake.received).body, "max_tokens")
  })

  check("starts as the catalog says", function* (adapter, fake, route) {
    yield* fake.script(refusing("unsupported_parameter", "max_completion_tokens"), good)
    yield* adapter.complete({ ...route, options: { max_tokens_field: "max_completion_tokens" } }, request())
    const [first, second] = yield* bodies(fake, 2)
    assert.property(first, "max_completion_tokens")
    assert.property(second, "max_tokens")
  })

  check("may refuse both fields of a stream, by either way of saying so", function* (adapter, fake, route) {
    const extra = { detail: [{ type: "extra_forbidden", loc: ["body", "stream_options"], msg: "m" }] }
    yield* fake.script(Fake.json(422, extra), refusing("unsupported_parameter", "max_tokens"), goodStream, goodStream)
    for (const _ of ["first", "second"]) {
      const heard = yield* hear(adapter, route, request())
      assert.deepStrictEqual(heard, { events: [text("hi"), finished("stop")], failure: undefined })
    }
    const sent = yield* bodies(fake, 4)
    assert.deepStrictEqual(
      sent.map((body) => ["stream_options" in body, "max_tokens" in body]),
      [
        [true, true],
        [false, true],
        [false, false],
        [false, false]
      ]
    )
  })

  for (const [name, replies] of [
    [
      "max_tokens",
      [refusing("unsupported_parameter", "max_tokens"), refusing("unsupported_parameter", "max_completion_tokens")]
    ],
    ["reasoning_effort", [refusing("unsupported_value", "reasoning_effort")]]
  ] as const) {
    check(`is asked ${replies.length} times at most about ${name}`, function* (adapter, fake, route) {
      yield* fake.script(...replies)
      const failure = yield* Effect.flip(adapter.complete(route, request({ reasoningEffort: "low" })))
      assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, undefined])
    })
  }
})

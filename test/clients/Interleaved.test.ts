import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, jsonSchema, streamText, tool } from "ai"
import { Effect } from "effect"
import { customer } from "../harness/client/MessagesClient.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../harness/It.ts"
import { DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"
import { done, event, json, type Reply, sse } from "../harness/upstream/FakeUpstream.ts"

const chat = dialects.find(({ name }) => name === "openai-chat") ?? assert.fail("no chat wire")
const model = "mixed"

const chunk = (delta: object, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason }] })
const piece = (index: number, text: string, name?: string) =>
  chunk({
    tool_calls: [
      {
        index,
        ...(name === undefined ? undefined : { id: `call_${name}`, type: "function" }),
        function: { ...(name === undefined ? undefined : { name }), arguments: text }
      }
    ]
  })

const bash = { command: 'ls "a b"' }
const read = { path: "a.txt", lines: [1, 2] }
const [first, second] = [JSON.stringify(bash), JSON.stringify(read)]
const called = [
  { name: "bash", input: bash },
  { name: "read", input: read }
]

/** Two calls in turns, with text and reasoning between their pieces. */
const mixed: Reply = sse(
  chunk({ role: "assistant", content: "Let me " }),
  chunk({ content: "see." }),
  piece(0, "", "bash"),
  piece(1, second.slice(0, 4), "read"),
  chunk({ content: " Both" }),
  piece(0, first.slice(0, 9)),
  chunk({ reasoning_content: "Hm." }),
  piece(1, second.slice(4, 20)),
  piece(0, first.slice(9)),
  chunk({ content: " now." }),
  piece(1, second.slice(20)),
  piece(0, "\n"),
  chunk({}, "tool_calls"),
  event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }),
  done
)
const text = "Let me see. Both now."

const parameters = { type: "object" } as const
const names = ["bash", "read"]
const scripted = Effect.flatMap(DialectHosts, (hosts) => hosts.of(chat).script(mixed))

withLayer(gateway({ [model]: [routeTo(chat)] }))("calls that a host mixes with text", (it) => {
  it.effect("are whole for OpenAI's client of chat completions", function* () {
    yield* scripted
    const { openai } = yield* customer()
    const body = {
      model,
      messages: [{ role: "user" as const, content: "hi" }],
      tools: names.map((name) => ({ type: "function" as const, function: { name, parameters } }))
    }
    const { choices } = yield* calling(() => openai.chat.completions.stream(body).finalChatCompletion())
    const { content, tool_calls } = choices[0]?.message ?? assert.fail("no choice")
    assert.strictEqual(content, text)
    const made = (tool_calls ?? []).flatMap((call) =>
      call.type === "function" ? [{ name: call.function.name, input: JSON.parse(call.function.arguments) }] : []
    )
    assert.deepStrictEqual<unknown>(made, called)
  })

  it.effect("are whole for OpenAI's client of Responses", function* () {
    yield* scripted
    const { openai } = yield* customer()
    const body = {
      model,
      input: "hi",
      tools: names.map((name) => ({ type: "function" as const, name, parameters, strict: false }))
    }
    const { output, output_text } = yield* calling(() => openai.responses.stream(body).finalResponse())
    assert.strictEqual(output_text, text)
    const made = output.flatMap((item) =>
      item.type === "function_call" ? [{ name: item.name, input: JSON.parse(item.arguments) }] : []
    )
    assert.deepStrictEqual<unknown>(made, called)
  })

  it.effect("are whole for Anthropic's client, which runs a call when its block stops", function* () {
    yield* scripted
    const { anthropic } = yield* customer()
    const stopped: Array<unknown> = []
    const message = yield* calling(() =>
      anthropic.messages
        .stream({
          model,
          max_tokens: 99,
          messages: [{ role: "user", content: "hi" }],
          tools: names.map((name) => ({ name, input_schema: parameters }))
        })
        .on("contentBlock", (block) => {
          if (block.type === "tool_use") stopped.push({ name: block.name, input: structuredClone(block.input) })
        })
        .finalMessage()
    )
    assert.deepStrictEqual(stopped, called)
    const made = message.content.flatMap((block) =>
      block.type === "tool_use" ? [{ name: block.name, input: block.input }] : []
    )
    assert.deepStrictEqual<unknown>(made, called)
    assert.strictEqual(message.content.map((block) => (block.type === "text" ? block.text : "")).join(""), text)
  })

  it.effect("are whole for the AI SDK in every dialect", function* () {
    const { baseUrl: baseURL, secret: apiKey } = yield* customer()
    const models = [
      createOpenAICompatible({ name: "gateway", baseURL, apiKey })(model),
      createOpenAI({ baseURL, apiKey })(model),
      createAnthropic({ baseURL, apiKey })(model)
    ]
    for (const one of models) {
      yield* scripted
      const any = tool({ inputSchema: jsonSchema<object>(parameters), execute: () => "done" })
      const tools = { bash: any, read: any }
      const streaming = streamText({ model: one, prompt: "hi", maxRetries: 0, tools })
      const made = yield* calling(async () => ({ calls: await streaming.toolCalls, text: await streaming.text }))
      assert.strictEqual(made.text, text, one.provider)
      assert.deepStrictEqual<unknown>(
        made.calls.map(({ input, toolName }) => ({ name: toolName, input })),
        called,
        one.provider
      )
    }
  })
})

const page = { url: "https://a.example/", title: "A", start_index: 0, end_index: 5 }
const annotations = [{ type: "url_citation", url_citation: page }]

/** An answer with a source, as hosts that search say it. */
const searched: Reply = (response, received) => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const message = { role: "assistant", content: "Rain.", annotations }
  const reply = chat.wantsStream(received)
    ? sse(
        chunk({ role: "assistant", content: "Rain." }),
        chunk({ annotations }),
        chunk({}, "stop"),
        event({ choices: [], usage }),
        done
      )
    : json(200, { choices: [{ index: 0, message, finish_reason: "stop" }], usage })
  return reply(response, received)
}

withLayer(gateway({ [model]: [routeTo(chat)] }))("the source of an answer", (it) => {
  const scriptSearch = Effect.flatMap(DialectHosts, (hosts) => hosts.of(chat).script(searched))

  it.effect.each([false, true])("reaches the official clients, streamed: %s", function* (stream) {
    const { anthropic, openai } = yield* customer()
    const messages = [{ role: "user" as const, content: "hi" }]

    yield* scriptSearch
    const completions = openai.chat.completions
    const completion = yield* calling(() =>
      stream ? completions.stream({ model, messages }).finalChatCompletion() : completions.create({ model, messages })
    )
    assert.deepStrictEqual<unknown>(completion.choices[0]?.message.annotations, annotations)

    yield* scriptSearch
    const { output } = yield* calling(() =>
      stream
        ? openai.responses.stream({ model, input: "hi" }).finalResponse()
        : openai.responses.create({ model, input: "hi" })
    )
    const parts = output.flatMap((item) => (item.type === "message" ? item.content : []))
    assert.deepInclude(parts[0], { text: "Rain.", annotations: [{ type: "url_citation", ...page }] })

    yield* scriptSearch
    const body = { model, max_tokens: 99, messages }
    const { content } = yield* calling(() =>
      stream ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body)
    )
    const source = { type: "web_search_result_location", url: page.url, title: "A", cited_text: "" }
    const [block] = content
    assert.deepInclude(Object(block).citations[0], source)
  })

  it.effect("reaches the AI SDK", function* () {
    const { baseUrl: baseURL, secret: apiKey } = yield* customer()
    const models = [
      createOpenAI({ baseURL, apiKey }).chat(model),
      createOpenAI({ baseURL, apiKey })(model),
      createAnthropic({ baseURL, apiKey })(model)
    ]
    for (const one of models) {
      yield* scriptSearch
      const whole = yield* calling(() => generateText({ model: one, prompt: "hi", maxRetries: 0 }))
      yield* scriptSearch
      const streaming = streamText({ model: one, prompt: "hi", maxRetries: 0 })
      const sources = yield* calling(() => streaming.sources)
      for (const found of [whole.sources, sources]) {
        assert.lengthOf(found, 1, one.provider)
        assert.deepInclude(found[0], { sourceType: "url", url: page.url, title: "A" })
      }
    }
  })
})

import { createAnthropic } from "@ai-sdk/anthropic"
import { ChatAnthropic } from "@langchain/anthropic"
import { HumanMessage, ToolMessage } from "@langchain/core/messages"
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import { Effect, Layer } from "effect"
import type { Answer } from "../contracts/ChatHarness.ts"
import { ask, customer } from "../harness/client/MessagesClient.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import { chatCatalog, price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Mocks, mocks } from "../harness/upstream/Aimock.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"

const modelOf = ({ name }: Dialect) => `on-${name}`
const served = gateway(Object.fromEntries(dialects.map((one) => [modelOf(one), [routeTo(one)]])))

const usage = { prompt: 20, completion: 9, cached: 8, cacheWrite: 0, reasoning: 2 }
const charge = 20n * price.prompt + 9n * price.completion
const calls: Answer = {
  toolCalls: [{ id: "toolu_01", name: "weather", arguments: '{"city":"Wien"}' }],
  finish: "tool_calls",
  usage
}
const text: Answer = { content: "Sunny.", reasoning: "Hm.", finish: "stop", usage }
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const

const cases = dialects.flatMap((dialect) =>
  [false, true].map((stream) => ({ dialect, stream, host: dialect.name, as: stream ? "a stream" : "JSON" }))
)

withLayer(served)("the Messages API for other clients", (it) => {
  it.effect.each(cases)("lets the AI SDK call a tool and think over $host as $as", function* ({ dialect, stream }) {
    const host = (yield* DialectHosts).of(dialect)
    yield* host.script(answers(dialect, calls), answers(dialect, text))
    const account = yield* customer()
    const provider = createAnthropic({ baseURL: account.baseUrl, apiKey: account.secret })
    const options = {
      model: provider(modelOf(dialect)),
      prompt: "How is the weather?",
      maxRetries: 0,
      maxOutputTokens: 1_000,
      stopWhen: stepCountIs(2),
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1_024 } } },
      tools: {
        weather: tool({ inputSchema: jsonSchema<{ city: string }>(schema), execute: ({ city }) => `fine in ${city}` })
      }
    }
    const result = yield* calling(async () => {
      if (!stream) return generateText(options)
      const streaming = streamText(options)
      return {
        text: await streaming.text,
        reasoningText: await streaming.reasoningText,
        finishReason: await streaming.finishReason,
        totalUsage: await streaming.totalUsage
      }
    })
    assert.deepStrictEqual([result.text, result.reasoningText, result.finishReason], ["Sunny.", "Hm.", "stop"])
    const { cachedInputTokens, inputTokens, outputTokens } = result.totalUsage
    assert.deepStrictEqual([inputTokens, cachedInputTokens, outputTokens], [40, 16, 18])
    yield* host.received
    assert.include((yield* host.received).bytes.toString(), "fine in Wien")
    assert.strictEqual(yield* account.spent, 2n * charge)
  })

  it.effect.each(cases)("lets LangChain call a tool over $host as $as", function* ({ dialect, stream }) {
    const host = (yield* DialectHosts).of(dialect)
    yield* host.script(answers(dialect, calls), answers(dialect, text))
    const account = yield* customer()
    const model = new ChatAnthropic({
      model: modelOf(dialect),
      anthropicApiKey: account.secret,
      anthropicApiUrl: account.baseURL,
      maxTokens: 1_000,
      maxRetries: 0,
      streaming: stream
    }).bindTools([{ name: "weather", input_schema: schema }])
    const asked = new HumanMessage("How is the weather?")
    const called = yield* calling(() => model.invoke([asked]))
    const [made] = called.tool_calls ?? []
    assert.deepInclude(made, { name: "weather", args: { city: "Wien" } })
    const result = new ToolMessage({ content: "fine in Wien", tool_call_id: made?.id ?? "" })
    const said = yield* calling(() => model.invoke([asked, called, result]))
    assert.strictEqual(said.text, "Sunny.")
    yield* host.received
    assert.include((yield* host.received).bytes.toString(), "fine in Wien")
    assert.strictEqual(yield* account.spent, 2n * charge)
  })
})

const mocked = Served.layer(
  Effect.map(Mocks, ({ first }) => ({
    catalog: chatCatalog(
      { mock: { adapter: "anthropic", base_url: first.url, credential: "FIRST_KEY" } },
      { talk: [{ provider: "mock", model: "talk-one" }] }
    ),
    env: { FIRST_KEY: "first-secret" }
  }))
).pipe(Layer.provideMerge(mocks))

withLayer(mocked)("the Messages API over aimock", (it) => {
  it.effect.each([false, true])("passes on text, thinking and a tool's call, streamed: %s", function* (stream) {
    const { first } = yield* Mocks
    const counted = { input_tokens: 20, output_tokens: 9 }
    first.on({ model: "talk-one", userMessage: "say" }, { content: "Servus!", reasoning: "Hm.", usage: counted })
    first.on(
      { model: "talk-one", userMessage: "call" },
      { toolCalls: [{ id: "toolu_9", name: "weather", arguments: '{"city":"Wien"}' }], usage: counted }
    )
    const account = yield* customer()
    const body = { model: "talk", max_tokens: 100, thinking: { type: "adaptive" as const } }
    const say = (content: string) => ({ ...body, messages: [{ role: "user" as const, content }] })
    const { message } = yield* calling(() => ask(account, say("say"), stream))
    assert.deepInclude(message.content[0], { type: "thinking", thinking: "Hm." })
    assert.deepInclude(message.content[1], { type: "text", text: "Servus!" })
    const called = yield* calling(() => ask(account, say("call"), stream))
    assert.deepInclude(called.message.content[0], { type: "tool_use", id: "toolu_9", input: { city: "Wien" } })
    assert.strictEqual(called.message.stop_reason, "tool_use")
    assert.strictEqual(yield* account.spent, 2n * charge)
  })
})

import { createOpenAI } from "@ai-sdk/openai"
import { HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { APICallError, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import { Effect } from "effect"
import { calling, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { usageCost } from "./AiSdk.ts"
import { costOf, gateway, model, pixel } from "./SandboxChat.ts"

/** A customer with the AI SDK's own provider, which speaks Responses unless told otherwise. */
const customer = Effect.map(Served.customer(), (account) => {
  const provider = createOpenAI({ baseURL: account.baseUrl, apiKey: account.secret })
  return { ...account, asked: { model: provider(model), maxRetries: 0 } }
})

const kept = { providerOptions: { openai: { store: false } } }

const person = jsonSchema<{ name: string }>({
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
  additionalProperties: false
})

const weather = tool({
  description: "The weather of a city",
  inputSchema: jsonSchema<{ city: string }>({
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"]
  }),
  execute: ({ city }) => ({ city, sky: "clear" })
})

withLayer(gateway)("the AI SDK's own provider with the sandbox", (it) => {
  it.effect("generates and streams the same text", function* () {
    const { asked, spent } = yield* customer
    const whole = yield* calling(() => generateText({ ...asked, system: "Be kind.", prompt: "Hello there" }))
    assert.include(whole.text, "Hello there")
    assert.strictEqual(whole.finishReason, "stop")
    assert.strictEqual(whole.response.modelId, model)
    const stream = streamText({ ...asked, system: "Be kind.", prompt: "Hello there" })
    const { items } = yield* drained(stream.textStream)
    assert.strictEqual(items.join(""), whole.text)
    const used = yield* calling(() => stream.totalUsage)
    assert.strictEqual(used.totalTokens, whole.usage.totalTokens)
    assert.strictEqual(yield* spent, 2n * usageCost(used))
  })

  for (const isStream of [false, true]) {
    it.effect(`runs tools over several steps, ${isStream ? "streamed" : "whole"}`, function* () {
      const { asked, spent } = yield* customer
      const options = {
        ...asked,
        ...kept,
        prompt: "The weather in Wien?",
        tools: { weather },
        stopWhen: stepCountIs(3)
      }
      const steps = yield* calling(async () =>
        isStream ? await streamText(options).steps : (await generateText(options)).steps
      )
      assert.lengthOf(steps, 2)
      assert.deepInclude(steps[0]?.toolCalls[0], { toolName: "weather" })
      assert.include(steps[1]?.text, "clear")
      const cost = steps.reduce((sum, { usage }) => sum + usageCost(usage), 0n)
      assert.strictEqual(yield* spent, cost)
    })
  }

  it.effect("generates objects, sees pictures and shows reasoning", function* () {
    const { asked } = yield* customer
    const { object } = yield* calling(() => generateObject({ ...asked, schema: person, prompt: "A person" }))
    assert.isString(object.name)
    const looked = yield* calling(() =>
      generateText({
        ...asked,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Look" },
              { type: "image", image: pixel, mediaType: "image/png" }
            ]
          }
        ]
      })
    )
    assert.include(looked.text, "1 image")
    const options = { openai: { ...kept.providerOptions.openai, forceReasoning: true, reasoningEffort: "medium" } }
    const thought = yield* calling(() => generateText({ ...asked, prompt: "Why?", providerOptions: options }))
    assert.isAbove(thought.reasoningText?.length ?? 0, 0)
  })

  it.effect("gets the reason why it cannot refer to what is not stored", function* () {
    const { asked } = yield* customer
    const first = yield* calling(() => generateText({ ...asked, prompt: "Hello there" }))
    const messages = [...first.response.messages, { role: "user" as const, content: "And now?" }]
    const error = yield* thrownBy(() => generateText({ ...asked, messages }))
    assert.isTrue(APICallError.isInstance(error) && /the gateway stores nothing.*`store: false`/.test(error.message))
    const { text } = yield* calling(() => generateText({ ...asked, ...kept, messages }))
    assert.include(text, "And now?")
  })

  it.effect("gets an error for a stream that breaks, and pays nothing", function* () {
    const { asked, spent } = yield* customer
    const stream = streamText({ ...asked, prompt: "[sandbox cut=3] Hello", onError: () => {} })
    const { items } = yield* drained(stream.fullStream)
    assert.isTrue(items.some(({ type }) => type === "error"))
    assert.deepInclude(items.at(-1), { type: "finish", finishReason: "error" })
    assert.strictEqual(yield* spent, 0n)
  })
})

withLayer(gateway)("LangChain with the sandbox over Responses", (it) => {
  const client = Effect.map(Served.customer(), ({ baseUrl, secret, spent }) => {
    const configuration = { baseURL: baseUrl }
    return {
      spent,
      chat: new ChatOpenAI({ model, apiKey: secret, configuration, useResponsesApi: true, maxRetries: 0 })
    }
  })

  it.effect("answers whole and streamed", function* () {
    const { chat, spent } = yield* client
    const whole = yield* calling(() => chat.invoke("Hello there"))
    assert.include(whole.text, "Hello there")
    const { items } = yield* drained(yield* calling(() => chat.stream("Hello there")))
    assert.strictEqual(items.map(({ text }) => text).join(""), whole.text)
    const { usage_metadata: used } = yield* calling(() => chat.invoke("Hello there"))
    assert.strictEqual(yield* spent, 3n * costOf(Object(used).input_tokens, Object(used).output_tokens))
  })

  it.effect("calls a tool and goes on from its result", function* () {
    const { chat } = yield* client
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
    const bound = chat.bindTools([{ type: "function", function: { name: "weather", parameters } }])
    const asked = new HumanMessage("The weather in Wien?")
    const first = yield* calling(() => bound.invoke([asked]))
    const [called] = first.tool_calls ?? []
    assert.strictEqual(called?.name, "weather")
    const result = new ToolMessage({ content: "all clear", tool_call_id: called?.id ?? "" })
    const second = yield* calling(() => bound.invoke([asked, first, result]))
    assert.include(second.text, "all clear")
  })
})

import { generateObject, generateText, jsonSchema, stepCountIs, streamObject, streamText, tool } from "ai"
import { Struct } from "effect"
import { calling, drained } from "../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../harness/It.ts"
import { customer, usageCost } from "./AiSdk.ts"
import { gateway, model as modelId, pixel } from "./SandboxChat.ts"

const person = jsonSchema<{ name: string; age: number }>({
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer", minimum: 18 } },
  required: ["name", "age"],
  additionalProperties: false
})

/** A tool that remembers what it was called with. */
const weather = (called: Array<unknown>) =>
  tool({
    description: "The weather of a city",
    inputSchema: jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"]
    }),
    execute: (input) => {
      called.push(Object.keys(input))
      return { sky: "clear" }
    }
  })

withLayer(gateway)("the AI SDK with the sandbox", (it) => {
  it.effect("generates text", function* () {
    const { model, spent } = yield* customer()
    const { finishReason, response, text, usage } = yield* calling(() =>
      generateText({ model, system: "Be kind.", prompt: "Hello there", temperature: 0.3, maxRetries: 0 })
    )
    assert.include(text, "Hello there")
    assert.strictEqual(finishReason, "stop")
    assert.strictEqual(response.modelId, modelId)
    assert.isAbove(usage.outputTokens ?? 0, 0)
    assert.strictEqual(yield* spent, usageCost(usage))
  })

  it.effect("streams text and reasoning", function* () {
    const { model, spent } = yield* customer()
    const asked = {
      model,
      prompt: "Grüß dich 👋",
      maxRetries: 0,
      providerOptions: { gateway: { reasoningEffort: "medium" } }
    }
    const whole = yield* calling(() => generateText(asked))
    assert.isAbove(whole.reasoningText?.length ?? 0, 0)
    const stream = streamText(asked)
    const { items } = yield* drained(stream.fullStream)
    const said = (kind: "text-delta" | "reasoning-delta") =>
      items.map((part) => (part.type === kind ? part.text : "")).join("")
    assert.strictEqual(said("text-delta"), whole.text)
    assert.strictEqual(said("reasoning-delta"), whole.reasoningText)
    assert.deepInclude(items.at(-1), { type: "finish", finishReason: "stop" })
    const used = yield* calling(() => stream.totalUsage)
    assert.deepStrictEqual([used.inputTokens, used.outputTokens], [whole.usage.inputTokens, whole.usage.outputTokens])
    assert.isAbove(used.outputTokenDetails.reasoningTokens ?? 0, 0)
    assert.strictEqual(yield* spent, 2n * usageCost(used))
  })

  it.effect("runs tools over several steps", function* () {
    const { model, spent } = yield* customer()
    const called: Array<unknown> = []
    const asked = {
      model,
      prompt: "The weather in Wien?",
      tools: { weather: weather(called) },
      stopWhen: stepCountIs(3),
      maxRetries: 0
    }
    const { steps, text, totalUsage } = yield* calling(() => generateText(asked))
    assert.deepStrictEqual(steps.map(Struct.get("finishReason")), ["tool-calls", "stop"])
    assert.include(text, "clear")
    assert.strictEqual(yield* spent, usageCost(totalUsage))

    const stream = streamText(asked)
    const { items } = yield* drained(stream.fullStream)
    assert.notInclude(items.map(Struct.get("type")), "error")
    assert.strictEqual(yield* calling(() => stream.text), text)
    assert.deepStrictEqual(called, [["city"], ["city"]])
    assert.strictEqual(yield* spent, 2n * usageCost(totalUsage))
  })

  it.effect("generates objects, whole and streamed", function* () {
    const { model, spent } = yield* customer()
    const asked = { model, schema: person, prompt: "Invent a person", maxRetries: 0 }
    const { object, usage } = yield* calling(() => generateObject(asked))
    assert.hasAllKeys(object, ["name", "age"])
    assert.isAtLeast(object.age, 18)
    assert.strictEqual(yield* spent, usageCost(usage))
    const streamed = streamObject(asked)
    yield* drained(streamed.partialObjectStream)
    assert.deepStrictEqual(yield* calling(() => streamed.object), object)
    assert.strictEqual(yield* spent, 2n * usageCost(usage))
  })

  it.effect("sends images, and fields of ours that it does not know", function* () {
    const { model, spent } = yield* customer()
    const image = Buffer.from(pixel, "base64")
    const { text, usage } = yield* calling(() =>
      generateText({
        model,
        maxRetries: 0,
        providerOptions: { gateway: { web_search: true } },
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image", image }
            ]
          }
        ]
      })
    )
    assert.include(text, "1 image")
    assert.include(text, "web search")
    assert.strictEqual(yield* spent, usageCost(usage))
  })
})

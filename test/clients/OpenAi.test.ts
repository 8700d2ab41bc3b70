import { Ajv } from "ajv"
import { Effect } from "effect"
import type { CompletionUsage } from "openai/resources/completions"
import { refusals } from "../harness/client/HttpCalls.ts"
import { asJson, assertClientError, calling, contentOf, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { costOf, gateway, listed, model, pixel } from "./SandboxChat.ts"

const usageCost = (usage: CompletionUsage | null | undefined): bigint =>
  costOf(usage?.prompt_tokens, usage?.completion_tokens)

const say = (content: string) => ({ model, messages: [{ role: "user" as const, content }] })
const tool = (name: string, field: string) => ({
  type: "function" as const,
  function: {
    name,
    parameters: {
      type: "object",
      properties: { [field]: { type: "string" } },
      required: [field],
      additionalProperties: false
    }
  }
})
const tools = [tool("weather", "city"), tool("clock", "zone")]

withLayer(gateway)("the official client with the sandbox", (it) => {
  it.effect("lists the models with their prices", function* () {
    const { openai, spent } = yield* Served.customer()
    const { data } = yield* calling(() => openai.models.list())
    const byId = new Map(data.map((one) => [one.id, asJson(one)]))
    assert.lengthOf(
      data.filter((one) => "context_length" in one),
      24
    )
    assert.isTrue(data.every(({ object, owned_by }) => object === "model" && owned_by === "generation-gateway"))
    assert.deepNestedInclude(byId.get(model), {
      surface: "chat",
      context_length: 1_048_576,
      "pricing.prompt_per_1m_usd": listed.prompt,
      "pricing.completion_per_1m_usd": listed.completion,
      "pricing.approximate": true
    })
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("gets a chat marked as the sandbox's", function* () {
    const { openai, spent } = yield* Served.customer()
    const { data, request_id, response } = yield* calling(() =>
      openai.chat.completions.create(say("Hello there")).withResponse()
    )
    assert.strictEqual(response.headers.get("x-gateway-sandbox"), "true")
    assert.strictEqual(response.headers.get("x-ratelimit-limit"), "600")
    assert.strictEqual(response.headers.get("x-ratelimit-remaining"), "599")
    assert.strictEqual(request_id, response.headers.get("x-request-id"))
    assert.strictEqual(data.object, "chat.completion")
    assert.strictEqual(data.model, model)
    assert.strictEqual(data.choices[0]?.finish_reason, "stop")
    assert.include(data.choices[0]?.message.content, "Hello there")
    assert.isAbove(data.usage?.prompt_tokens ?? 0, 0)
    const { completion_tokens = 0, prompt_tokens = 0, total_tokens = 0 } = data.usage ?? {}
    assert.strictEqual(total_tokens, prompt_tokens + completion_tokens)
    assert.strictEqual(yield* spent, usageCost(data.usage))
  })

  it.effect("streams the same answer, with and without usage, raw and through its helper", function* () {
    const { openai, spent } = yield* Served.customer()
    const whole = yield* calling(() => openai.chat.completions.create(say("Grüß dich 👋")))
    const expected = whole.choices[0]?.message.content ?? ""
    assert.include(expected, "Grüß dich 👋")
    const once = usageCost(whole.usage)

    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...say("Grüß dich 👋"), stream: true }).withResponse()
    )
    assert.strictEqual(response.headers.get("content-type"), "text/event-stream; charset=utf-8")
    assert.strictEqual(response.headers.get("x-gateway-sandbox"), "true")
    assert.strictEqual(response.headers.get("x-ratelimit-remaining"), "598")
    const plain = yield* drained(data)
    assert.isUndefined(plain.error)
    assert.isTrue(plain.items.every(({ choices, usage }) => choices.length === 1 && usage === undefined))
    assert.strictEqual(contentOf(plain.items), expected)
    assert.strictEqual(plain.items.at(-1)?.choices[0]?.finish_reason, "stop")
    assert.strictEqual(yield* spent, 2n * once)

    const counted = { ...say("Grüß dich 👋"), stream_options: { include_usage: true } }
    const shown = yield* drained(yield* calling(() => openai.chat.completions.create({ ...counted, stream: true })))
    assert.deepStrictEqual(shown.items.at(-1)?.choices, [])
    assert.deepStrictEqual(asJson(shown.items.at(-1)?.usage), asJson(whole.usage))
    assert.strictEqual(yield* spent, 3n * once)

    const helped = yield* calling(() => openai.chat.completions.stream(counted).finalChatCompletion())
    assert.strictEqual(helped.choices[0]?.message.content, expected)
    assert.strictEqual(helped.choices[0]?.message.role, "assistant")
    assert.deepStrictEqual(asJson(helped.usage), asJson(whole.usage))
    assert.strictEqual(yield* spent, 4n * once)
  })

  it.effect("gets a 404 for a model of another surface", function* () {
    const { openai, spent } = yield* Served.customer()
    const error = yield* thrownBy(() => openai.chat.completions.create({ ...say("Hello"), model: "gpt-image-2" }))
    const hint = "`gpt-image-2` is an image model: use /v1/images/generations."
    assertClientError(error, refusals.noModel("gpt-image-2", "a chat", hint))
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("gets answers within max_tokens and stop, with their reasoning", function* () {
    const { openai, spent } = yield* Served.customer()
    const short = yield* calling(() => openai.chat.completions.create({ ...say("Hello"), max_completion_tokens: 5 }))
    assert.strictEqual(short.choices[0]?.finish_reason, "length")
    assert.strictEqual(short.usage?.completion_tokens, 5)
    const stopped = yield* calling(() => openai.chat.completions.create({ ...say("Hello"), stop: [" answer"] }))
    assert.strictEqual(stopped.choices[0]?.message.content, "This is a sandbox")
    const thought = yield* calling(() => openai.chat.completions.create({ ...say("Hello"), reasoning_effort: "high" }))
    assert.containsAllKeys(thought.choices[0]?.message, ["reasoning_content"])
    assert.isAbove(thought.usage?.completion_tokens_details?.reasoning_tokens ?? 0, 0)
    assert.strictEqual(
      yield* spent,
      [short, stopped, thought].reduce((sum, { usage }) => sum + usageCost(usage), 0n)
    )
  })

  it.effect("gets JSON that fits the schema", function* () {
    const { openai, spent } = yield* Served.customer()
    const schema = {
      type: "object",
      properties: {
        name: { type: "string", minLength: 2 },
        age: { type: "integer", minimum: 18 },
        tags: { type: "array", items: { enum: ["red", "green"] }, minItems: 1 }
      },
      required: ["name", "age", "tags"],
      additionalProperties: false
    }
    const parsed = yield* calling(() =>
      openai.chat.completions.parse({
        ...say("Invent a person"),
        response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema } }
      })
    )
    const validate = new Ajv().compile(schema)
    assert.isTrue(validate(parsed.choices[0]?.message.parsed), JSON.stringify(validate.errors))
    assert.strictEqual(yield* spent, usageCost(parsed.usage))
  })

  for (const stream of [false, true]) {
    it.effect(`calls tools and takes their results, ${stream ? "streamed" : "in one piece"}`, function* () {
      const { openai, spent } = yield* Served.customer()
      const called: Array<unknown> = []
      const runnable = tools.map(({ function: { name, parameters }, type }) => ({
        type,
        function: {
          name,
          description: name,
          parameters,
          parse: JSON.parse,
          function: (input: object) => {
            called.push([name, Object.keys(input)])
            return `${name} is fine`
          }
        }
      }))
      const asked = { ...say('Ask "weather" and "clock" for Wien'), tools: runnable }
      const runner = stream
        ? openai.chat.completions.runTools({ ...asked, stream, stream_options: { include_usage: true } })
        : openai.chat.completions.runTools({ ...asked, stream })
      const content = yield* calling(() => runner.finalContent())
      assert.deepStrictEqual(called, [
        ["weather", ["city"]],
        ["clock", ["zone"]]
      ])
      assert.include(content, "weather is fine")
      assert.lengthOf(runner.allChatCompletions(), 2)
      assert.strictEqual(
        yield* spent,
        runner.allChatCompletions().reduce((sum, { usage }) => sum + usageCost(usage), 0n)
      )
    })
  }

  it.effect("gets one tool call where parallel calls are off, and the named one", function* () {
    const { openai } = yield* Served.customer()
    const namesCalled = (over: object) =>
      Effect.map(
        calling(() => openai.chat.completions.create({ ...say("weather and clock"), tools, ...over })),
        ({ choices }) =>
          choices[0]?.message.tool_calls?.map((call) => (call.type === "function" ? call.function.name : call.type))
      )
    assert.deepStrictEqual(yield* namesCalled({ parallel_tool_calls: false }), ["weather"])
    assert.deepStrictEqual(yield* namesCalled({ tool_choice: "required" }), ["weather", "clock"])
    const clock = { type: "function", function: { name: "clock" } }
    assert.deepStrictEqual(yield* namesCalled({ tool_choice: clock }), ["clock"])
    assert.isUndefined(yield* namesCalled({ tool_choice: "none" }))
  })

  it.effect("sends an image", function* () {
    const { openai, spent } = yield* Served.customer()
    const url = `data:image/png;base64,${pixel}`
    const seen = yield* calling(() =>
      openai.chat.completions.create({
        model,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url } }
            ]
          }
        ]
      })
    )
    assert.include(seen.choices[0]?.message.content, "1 image")
    assert.strictEqual(yield* spent, usageCost(seen.usage))
  })
})

import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import { assert, describe } from "../../harness/It.ts"
import { asks, complete, counted, getTime, getWeather, test, tool } from "./Sandbox.ts"

const ajv = new Ajv2020({ strict: false })
const assertValid = (schema: object, json: string): void => {
  const value: unknown = JSON.parse(json)
  assert.isTrue(ajv.validate(schema, value), `${ajv.errorsText()}: ${json}`)
}

describe("tools", () => {
  test("are called on auto with arguments that satisfy their schema", function* () {
    const chatRequest = { tools: [getWeather], messages: asks("What is the weather in Paris, in celsius?") }
    const answer = yield* complete(chatRequest)
    assert.strictEqual(answer.finish, "tool_calls")
    assert.isNull(answer.content)
    assert.strictEqual(answer.toolCalls[0]?.function.name, "get_weather")
    assert.match(answer.toolCalls[0]?.id ?? "", /^call_[0-9a-f]{24}$/)
    assert.strictEqual(answer.toolCalls[0]?.function.arguments, '{"city":"Paris","unit":"celsius"}')
    assert.strictEqual(answer.usage?.completion, yield* counted(answer))
  })

  test("are the first one, or those that the question names, unless one at a time is wanted", function* () {
    const tools = [getWeather, getTime, tool("send_mail")]
    const named = (overrides: Partial<ChatRequest>) =>
      Effect.map(complete({ tools, ...overrides }), ({ toolCalls }) => toolCalls.map((call) => call.function.name))
    const both = asks("Use get_time and then send_mail.")
    assert.deepStrictEqual(yield* named({}), ["get_weather"])
    assert.deepStrictEqual(yield* named({ messages: both }), ["get_time", "send_mail"])
    assert.deepStrictEqual(yield* named({ messages: both, parallelToolCalls: false }), ["get_time"])
    assert.deepStrictEqual(yield* named({ messages: asks("No get_timely answer") }), ["get_weather"])
    const ids = (yield* complete({ tools, messages: both })).toolCalls.map((call) => call.id)
    assert.strictEqual(new Set(ids).size, 2)
  })

  const results: ReadonlyArray<Message> = [
    ...asks("Weather in Paris?"),
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: "{}" } }]
    },
    { role: "tool", tool_call_id: "c1", content: "17 degrees and sunny" }
  ]

  test("are followed by text that mentions the result", function* () {
    const answer = yield* complete({ tools: [getWeather], messages: results })
    assert.deepStrictEqual([answer.finish, answer.toolCalls], ["stop", []])
    assert.include(answer.content, "get_weather")
    assert.include(answer.content, '"17 degrees and sunny"')
    const again = yield* complete({ tools: [getWeather], messages: [...results, ...asks("And in Rome?")] })
    assert.strictEqual(again.finish, "tool_calls")
  })

  test("follow the tool choice", function* () {
    const tools = [getWeather, getTime]
    const finish = (overrides: Partial<ChatRequest>) =>
      Effect.map(complete({ tools, ...overrides }), ({ toolCalls }) => toolCalls[0]?.function.name)
    assert.isUndefined(yield* finish({ toolChoice: "none" }))
    assert.strictEqual(yield* finish({ toolChoice: "required", messages: results }), "get_weather")
    const toolChoice = { type: "function", function: { name: "get_time" } } as const
    assert.strictEqual(yield* finish({ toolChoice }), "get_time")
    assert.strictEqual(yield* finish({ toolChoice, messages: results }), "get_time")
  })

  test("may come without parameters", function* () {
    const { toolCalls } = yield* complete({ tools: [tool("now")] })
    assert.strictEqual(toolCalls[0]?.function.arguments, "{}")
  })
})

describe("response_format", () => {
  test("json_object is an object with the answer", function* () {
    const { content } = yield* complete({ responseFormat: { type: "json_object" } })
    assertValid(
      { type: "object", required: ["answer", "model"], properties: { model: { const: "gpt-5.2" } } },
      content ?? ""
    )
  })

  test("json_schema satisfies the schema, references and all", function* () {
    const schema = {
      $ref: "#/$defs/trip",
      $defs: {
        trip: {
          type: "object",
          properties: {
            from: { type: "string", minLength: 2 },
            stops: { type: "array", items: { $ref: "#/$defs/stop" }, minItems: 2 },
            note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }] }
          },
          required: ["from", "stops", "note"],
          additionalProperties: false
        },
        stop: {
          type: "object",
          properties: { name: { type: "string" }, night: { type: "integer", minimum: 1, maximum: 9 } },
          required: ["name", "night"],
          additionalProperties: false
        }
      }
    }
    const responseFormat = { type: "json_schema", json_schema: { name: "trip", strict: true, schema } } as const
    const { content, finish } = yield* complete({ responseFormat, messages: asks("From Oslo to Bergen by train") })
    assertValid(schema, content ?? "")
    assert.strictEqual(finish, "stop")
    const free = yield* complete({ responseFormat: { type: "json_schema", json_schema: { name: "any" } } })
    assertValid({ type: "object" }, free.content ?? "")
  })
})

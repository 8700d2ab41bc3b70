import { Effect, FastCheck as fc } from "effect"
import type { ChatEvent, ChatRequest, Message, ToolChoice } from "../../../src/domain/Chat.ts"
import type { ReasoningEffort } from "../../../src/domain/Model.ts"
import { TokenCounter } from "../../../src/services/chat/TokenCounter.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe } from "../../harness/It.ts"
import {
  asks,
  chatOf,
  complete,
  counted,
  getTime,
  getWeather,
  hear,
  hearFrom,
  joined,
  outputs,
  request,
  route,
  spoken,
  test
} from "./Sandbox.ts"

const order = (type: ChatEvent["type"]): number =>
  ["reasoning", "content", "tool_call", "finish", "usage"].indexOf(type)

describe("an answer", () => {
  test("says what it is, which model was asked and what was said", function* () {
    const answer = yield* complete({ messages: asks("Why is   the\nsky blue?") })
    assert.include(answer.content, "sandbox")
    assert.include(answer.content, "gpt-5.2")
    assert.include(answer.content, '"Why is the sky blue?"')
    assert.strictEqual(answer.finish, "stop")
    assert.isUndefined(answer.reasoning)
    const { prompt } = yield* TokenCounter
    assert.deepStrictEqual(answer.usage, {
      prompt: yield* prompt(request({ messages: asks("Why is   the\nsky blue?") }), 0),
      completion: yield* counted(answer),
      cached: 0,
      cacheWrite: 0,
      reasoning: 0
    })
  })

  test("depends on the conversation and on no sampling parameter", function* () {
    const one = yield* complete({ seed: 1, temperature: 2 })
    assert.deepStrictEqual(one, yield* complete({ seed: 2, temperature: 0, topP: 0.1 }))
    assert.deepStrictEqual(one, yield* complete({}, "sandbox-b"))
    const closings = new Set<string | undefined>()
    for (let n = 0; n < 20; n++) {
      closings.add((yield* complete({ messages: asks(`Question ${n}`) })).content?.split(`${n}". `)[1])
    }
    assert.isAtLeast(closings.size, 3)
  })

  test("shortens a long question between characters", function* () {
    const { content } = yield* complete({ messages: asks("🙂".repeat(3_000)) })
    assert.include(content, `"${"🙂".repeat(80)}…"`)
    assert.isAtMost(content?.length ?? 0, 600)
  })

  test("counts the pictures and mentions a web search", function* () {
    const picture = { type: "image_url", image_url: { url: "https://example.test/a.png" } } as const
    const messages: ReadonlyArray<Message> = [
      { role: "user", content: [{ type: "text", text: "Compare these." }, picture, picture] }
    ]
    const answer = yield* complete({ messages, webSearch: true })
    assert.include(answer.content, "2 images")
    assert.include(answer.content, "web search")
    const plain = yield* complete({ messages: asks("Compare these.") })
    assert.notInclude(plain.content, "image")
    assert.notInclude(plain.content, "web search")
    assert.isAtLeast((answer.usage?.prompt ?? 0) - (plain.usage?.prompt ?? 0), 2 * 85)
  })

  test("reasons the longer the more effort is asked", function* () {
    const answers = yield* Effect.forEach(["low", "medium", "high", "xhigh"] as const, (reasoningEffort) =>
      complete({ reasoningEffort })
    )
    const { count } = yield* TokenCounter
    let last = 0
    for (const answer of answers) {
      const length = answer.reasoning?.length ?? 0
      assert.isAbove(length, last)
      last = length
      assert.strictEqual(answer.usage?.reasoning, yield* count(answer.reasoning ?? ""))
      assert.strictEqual(answer.usage?.completion, yield* counted(answer))
    }
  })

  test("ends before the first stop sequence", function* () {
    const { content: whole } = yield* complete({})
    const stopped = yield* complete({ stop: ["no such text", " provider was", "sky"] })
    assert.strictEqual(stopped.content, whole?.slice(0, whole.indexOf(" provider was")))
    assert.strictEqual(stopped.finish, "stop")
    assert.strictEqual((yield* complete({ stop: ["This"] })).content, "")
  })
})

describe("max_tokens", () => {
  test("cuts exactly there, reasoning first", function* () {
    const full = yield* complete({ reasoningEffort: "high" })
    const total = full.usage?.completion ?? 0
    const inReasoning = full.usage?.reasoning ?? 0
    for (const maxTokens of [1, inReasoning - 3, inReasoning, inReasoning + 1, inReasoning + 9, total - 1]) {
      const cut = yield* complete({ reasoningEffort: "high", maxTokens })
      assert.strictEqual(cut.finish, "length")
      assert.strictEqual(cut.usage?.completion, maxTokens)
      assert.strictEqual(yield* counted(cut), maxTokens)
      assert.isTrue(full.content?.startsWith(cut.content ?? "?"))
      assert.isTrue(full.reasoning?.startsWith(cut.reasoning ?? "?"))
      if (maxTokens <= inReasoning) assert.strictEqual(cut.content, "")
    }
    assert.deepStrictEqual(yield* complete({ reasoningEffort: "high", maxTokens: total }), full)
  })

  test("cuts between characters", function* () {
    const messages = asks("🦑🪼".repeat(20))
    for (let maxTokens = 20; maxTokens < 90; maxTokens++) {
      const { content } = yield* complete({ messages, maxTokens })
      assert.notMatch(content ?? "", /\p{Surrogate}/u)
    }
  })

  test("cuts the arguments of a tool call, or the call itself", function* () {
    const chatRequest = { tools: [getWeather], messages: asks("Weather in Paris?") }
    const full = yield* complete(chatRequest)
    const cut = yield* complete({ ...chatRequest, maxTokens: (full.usage?.completion ?? 0) - 2 })
    assert.strictEqual(cut.finish, "length")
    const [text, whole] = [cut, full].map(({ toolCalls }) => toolCalls[0]?.function.arguments ?? "")
    assert.isTrue(text !== "" && text !== whole && whole?.startsWith(text ?? "?"))
    const none = yield* complete({ ...chatRequest, maxTokens: 1 })
    assert.deepStrictEqual([none.toolCalls, none.finish], [[], "length"])
  })
})

const toolChoices: ReadonlyArray<ToolChoice | undefined> = ["auto", "none", "required", undefined]
const efforts: ReadonlyArray<ReasoningEffort | undefined> = ["low", "high", undefined]
const anyRequest: fc.Arbitrary<ChatRequest> = fc
  .record({
    text: fc.oneof(fc.fullUnicodeString({ maxLength: 200 }), fc.constantFrom("call get_time and get_weather", "hi")),
    tools: fc.subarray([getWeather, getTime]),
    toolChoice: fc.constantFrom(...toolChoices),
    reasoningEffort: fc.constantFrom(...efforts),
    json: fc.boolean(),
    stop: fc.array(fc.constantFrom("e", ".", "sandbox", "🙂", '":'), { maxLength: 2 }),
    maxTokens: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(4096))
  })
  .map(({ json, reasoningEffort, text, toolChoice, ...more }) =>
    request({
      ...more,
      messages: asks(text),
      ...(toolChoice === undefined ? {} : { toolChoice }),
      ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
      ...(json ? { responseFormat: { type: "json_object" } } : {})
    })
  )

describe("any request", () => {
  test("is answered within its tokens, by a stream exactly as in one piece", function* () {
    const chat = yield* chatOf
    for (const chatRequest of fc.sample(anyRequest, { numRuns: runs(200), seed: 3 })) {
      const answer = yield* chat.complete(route(), chatRequest)
      const { failure, pulls } = yield* hearFrom(chat, chatRequest)
      assert.isUndefined(failure)
      assert.deepStrictEqual(joined(pulls), spoken(answer))
      assert.isTrue(pulls.every((events) => events.length > 0))
      const total = answer.usage?.completion ?? -1
      assert.strictEqual(total, yield* counted(answer))
      assert.isAtMost(total, chatRequest.maxTokens)
      if (answer.finish === "length") assert.isAtLeast(total, chatRequest.maxTokens - 8)
      for (const sequence of chatRequest.stop) assert.notInclude(answer.content ?? "", sequence)
    }
  })
})

describe("a stream", () => {
  test("comes in words, reasoning first, with finish and usage at its end", function* () {
    const { failure, pulls } = yield* hear({ reasoningEffort: "medium" })
    assert.isUndefined(failure)
    const types = pulls.flat().map((event) => event.type)
    assert.deepStrictEqual(
      types.toSorted((one, other) => order(one) - order(other)),
      types
    )
    assert.deepStrictEqual(types.slice(-2), ["finish", "usage"])
    assert.isAbove(types.filter((type) => type === "content").length, 15)
    assert.isAbove(types.filter((type) => type === "reasoning").length, 10)
  })

  test("sends the arguments of a tool call in fragments", function* () {
    const { pulls } = yield* hear({ tools: [getWeather, getTime], messages: asks("get_weather and get_time please") })
    const calls = outputs(pulls).flatMap((event) => (event.type === "tool_call" ? [event] : []))
    assert.deepStrictEqual([...new Set(calls.map((call) => call.index))], [0, 1])
    assert.deepStrictEqual(
      calls.flatMap((call) => (call.name === undefined ? [] : [[call.index, call.name, call.arguments]])),
      [
        [0, "get_weather", ""],
        [1, "get_time", ""]
      ]
    )
    assert.isAbove(calls.filter((call) => call.index === 0).length, 2)
  })
})

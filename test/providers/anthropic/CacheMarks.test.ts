import { FastCheck as fc } from "effect"
import type { CacheControl, ChatRequest, Message, Tool } from "../../../src/domain/Chat.ts"
import { options as decoder, encodeRequest, rulesOf } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { called, weatherTool } from "../../contracts/ChatHarness.ts"
import { callTo } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { PromptCache } from "./PromptCache.ts"
import { anthropic } from "./Wire.ts"

const callOf = callTo(anthropic, { decoder, rulesOf }, { thinking: true })
const bodyOf = (...overrides: Parameters<typeof callOf>) => encodeRequest(callOf(...overrides))

const mark: CacheControl = { type: "ephemeral" }
const hour: CacheControl = { type: "ephemeral", ttl: "1h" }
const marked = { cache_control: mark }
const forAnHour = { cache_control: hour }
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more }) as const
const long = "All of this is worth keeping. ".repeat(100)

const system: Message = { role: "system", content: long }
const question: Message = { role: "user", content: "Weather in Bern?" }
const calls = (...ids: ReadonlyArray<string>): Message => {
  return { role: "assistant", content: null, tool_calls: ids.map((id) => called(id, "get_weather", "{}")) }
}
const result = (id: string): Message => ({ role: "tool", content: "sunny", tool_call_id: id })

/** The cache breakpoints of a body with their positions. */
const marksIn = (value: unknown, path = ""): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, member]) =>
    key === "cache_control" ? [`${path}${member.ttl === "1h" ? " 1h" : ""}`] : marksIn(member, `${path}/${key}`)
  )
}

describe("a client's marks for the cache of an anthropic host", () => {
  it("stay on what they mark, a message's on its last block", () => {
    const body = bodyOf({
      tools: [weatherTool, { ...weatherTool, ...forAnHour }],
      messages: [
        { role: "system", content: [text("a", forAnHour), text("b")] },
        {
          role: "user",
          content: [text("c"), { type: "image_url", image_url: { url: "https://x.test/a.png" } }],
          ...marked
        },
        { role: "assistant", content: "d", tool_calls: [called("call_a", "f", "{}")] },
        { role: "tool", content: [text("e", marked), text("f")], tool_call_id: "call_a" }
      ]
    })
    assert.deepStrictEqual(body.system, [text("a", forAnHour), text("b")])
    assert.deepStrictEqual(marksIn(body), [
      "/system/0 1h",
      "/messages/0/content/1",
      "/messages/2/content/0",
      "/tools/1 1h"
    ])
  })

  it("turn a text alone into a block", () => {
    const body = bodyOf({
      messages: [
        { ...system, ...marked },
        { ...question, cache_control: { ...mark, ttl: "5m" } }
      ]
    })
    assert.deepStrictEqual(body.system, [text(long, marked)])
    assert.deepStrictEqual<unknown>(body.messages, [{ role: "user", content: [text("Weather in Bern?", marked)] }])
  })

  it("go with an assistant's call, and with empty text they go away", () => {
    const body = bodyOf({
      messages: [
        question,
        { ...calls("call_a"), ...marked },
        { role: "tool", content: "", tool_call_id: "call_a", ...marked },
        { role: "user", content: [text(" ", marked)] }
      ]
    })
    assert.deepStrictEqual(marksIn(body), ["/messages/1/content/0", "/messages/2/content/0"])
  })

  it("that are more than four keep the last of tools and system and the last three of the rest", () => {
    const users = Array.from(
      { length: 5 },
      (_, at): ReadonlyArray<Message> => [
        { role: "user", content: `${at}`, ...marked },
        { role: "assistant", content: "Yes." }
      ]
    ).flat()
    const conversation = { messages: [{ ...system, ...marked }, ...users], tools: [{ ...weatherTool, ...marked }] }
    const tail = ["/messages/4/content/0", "/messages/6/content/0", "/messages/8/content/0"]
    assert.deepStrictEqual(marksIn(bodyOf(conversation)), ["/system/0", ...tail])
    assert.deepStrictEqual(marksIn(bodyOf({ messages: users })), ["/messages/2/content/0", ...tail])
    const many: ReadonlyArray<Tool> = Array.from({ length: 6 }, () => ({ ...weatherTool, ...marked }))
    assert.deepStrictEqual(
      marksIn(bodyOf({ messages: [question], tools: many })),
      [2, 3, 4, 5].map((at) => `/tools/${at}`)
    )
  })

  it("before one for an hour are for an hour too", () => {
    const messages: ReadonlyArray<Message> = [
      { ...question, ...forAnHour },
      { role: "assistant", content: "Sunny." },
      { ...question, ...marked },
      { ...system, ...marked }
    ]
    assert.deepStrictEqual(marksIn(bodyOf({ messages })), [
      "/system/0 1h",
      "/messages/0/content/0 1h",
      "/messages/2/content/0"
    ])
  })

  it("are not sent where the model has no price for them", () => {
    const chatRequest = {
      messages: [
        { ...system, ...forAnHour },
        { ...question, ...marked }
      ],
      tools: [weatherTool]
    }
    const marks = (unpricedBreakpoints: ChatRequest["unpricedBreakpoints"], options = {}) =>
      marksIn(bodyOf({ ...chatRequest, unpricedBreakpoints }, options))
    assert.deepStrictEqual(marks("all"), [])
    assert.deepStrictEqual(marks("all", { cache: "auto" }), [])
    assert.deepStrictEqual(marks("hour"), ["/system/0", "/messages/0/content/0"])
    assert.deepStrictEqual(marks(undefined), ["/system/0 1h", "/messages/0/content/0"])
  })

  const Mark = fc.constantFrom<{ readonly cache_control?: CacheControl }>({}, {}, marked, forAnHour, {
    cache_control: { ...mark, ttl: "5m" }
  })
  const Parts = fc.array(
    fc.tuple(fc.constantFrom("a", " ", ""), Mark).map(([words, of]) => text(words, of)),
    { minLength: 1, maxLength: 4 }
  )
  const Said = fc
    .tuple(fc.constantFrom("system" as const, "user" as const, "assistant" as const), Parts, Mark)
    .map(([role, content, of]): Message => ({ role, content, ...of }))

  it("are never what the vendor refuses", () => {
    const Request: fc.Arbitrary<Partial<ChatRequest>> = fc.record({
      messages: fc.array(Said, { minLength: 1, maxLength: 12 }),
      tools: fc.array(
        Mark.map((of): Tool => ({ ...weatherTool, ...of })),
        { maxLength: 6 }
      )
    })
    fc.assert(
      fc.property(Request, fc.constantFrom("manual", "auto"), (chatRequest, cache) => {
        assert.isObject(new PromptCache(0).take(bodyOf(chatRequest, { cache })))
      })
    )
  })
})

describe("automatic marks for the cache of an anthropic host", () => {
  const auto = { cache: "auto" }
  const marks = (overrides: Partial<ChatRequest>, options: object = auto) => marksIn(bodyOf(overrides, { ...options }))
  const agent = { messages: [system, question], tools: [weatherTool] }

  it("stand at the end of the system and of the conversation", () =>
    assert.deepStrictEqual(marks(agent), ["/system/0", "/messages/0/content/0"]))

  it("stand at the end of the tools where there is no system", () => {
    const tools = [weatherTool, { ...weatherTool, function: { ...weatherTool.function, description: long } }]
    assert.deepStrictEqual(marks({ messages: [question], tools }), ["/messages/0/content/0", "/tools/1"])
  })

  it("stand where the conversation ended one turn ago too, whatever a turn is made of", () => {
    const turn = [calls("call_a", "call_b"), result("call_a"), result("call_b")]
    assert.deepStrictEqual(marks({ ...agent, messages: [system, question, ...turn] }), [
      "/system/0",
      "/messages/0/content/0",
      "/messages/2/content/1"
    ])
    const next = [calls("call_c"), result("call_c"), { ...question }]
    assert.deepStrictEqual(marks({ ...agent, messages: [system, question, ...turn, ...next] }), [
      "/system/0",
      "/messages/2/content/1",
      "/messages/4/content/1"
    ])
    const prefilled: Message = { role: "assistant", content: "The weather" }
    assert.deepStrictEqual(marks({ messages: [system, question, prefilled] }), ["/system/0", "/messages/0/content/0"])
  })

  it("are not added to a client's own, nor without the option", () => {
    const own = { ...agent, messages: [system, { ...question, ...marked }] }
    assert.deepStrictEqual(marks(own), ["/messages/0/content/0"])
    assert.deepStrictEqual(marks(agent, {}), [])
  })

  it.each<[string, Partial<ChatRequest>]>([
    ["a single question", { messages: [system, question] }],
    ["a forced call", { ...agent, toolChoice: "required" }],
    ["a call forced by name", { ...agent, toolChoice: { type: "function", function: { name: "get_weather" } } }],
    ["tools that may not be called", { ...agent, toolChoice: "none" }],
    ["a short prompt", { messages: [question, calls("call_a"), result("call_a")], tools: [weatherTool] }]
  ])("are not made for %s", (_, chatRequest) => assert.deepStrictEqual(marks(chatRequest), []))

  it.each<[string, Partial<ChatRequest>]>([
    ["an answer so far", { messages: [system, question, { role: "assistant", content: "Sunny." }, question] }],
    ["tools of the model's choice", { ...agent, toolChoice: "auto" }],
    [
      "a picture",
      {
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] }],
        tools: [weatherTool]
      }
    ]
  ])("are made for a request with %s", (_, chatRequest) => assert.isAbove(marks(chatRequest).length, 0))
})

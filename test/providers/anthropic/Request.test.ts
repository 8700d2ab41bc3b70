import { Effect } from "effect"
import type { Message, Part } from "../../../src/domain/Chat.ts"
import { options as decoder, encodeRequest, rulesOf } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { called, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { secret } from "../../contracts/ChatHosts.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { wrongOptions } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, wire } from "./Wire.ts"

const { check } = scenarios(anthropic)
const callOf = callTo(anthropic, { decoder, rulesOf }, { thinking: true })
const bodyOf = (...overrides: Parameters<typeof callOf>) => encodeRequest(callOf(...overrides))
const turns = (...messages: ReadonlyArray<Message>) => bodyOf({ messages }).messages

const user = (content: string | ReadonlyArray<Part>): Message => ({ role: "user", content })
const assistant = (content: string): Message => ({ role: "assistant", content })
const calling = (...calls: ReadonlyArray<ReturnType<typeof called>>): Message => {
  return { role: "assistant", content: null, tool_calls: calls }
}
const result = (id: string, content: string): Message => ({ role: "tool", content, tool_call_id: id })
const text = (words: string) => ({ type: "text", text: words }) as const

describe("the head of a request to an anthropic host", () => {
  for (const [name, options, headers] of [
    ["has the common version and x-api-key", {}, { "anthropic-version": "2023-06-01", "x-api-key": secret }],
    ["has another version", { version: "2026-10-21" }, { "anthropic-version": "2026-10-21", "x-api-key": secret }],
    ["has a bearer token", { auth: "bearer" }, { "anthropic-version": "2023-06-01", authorization: `Bearer ${secret}` }]
  ] as const) {
    check(
      name,
      function* (adapter, fake, route) {
        yield* fake.script(Fake.json(200, wire({ content: "Hi.", finish: "stop" }).body))
        yield* adapter.complete(route, request())
        const { headers: sent, method, path } = yield* fake.received
        assert.deepStrictEqual([method, path], ["POST", "/v1/messages"])
        assert.deepInclude(sent, { ...headers, "content-type": "application/json" })
        assert.isUndefined("authorization" in headers ? sent["x-api-key"] : sent.authorization)
      },
      options
    )
  }

  it("searches beside tools that may be called, as often as the hold covers", () => {
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 5 }
    const searching = { webSearch: true, maxWebSearches: 5 }
    const { tools, tool_choice } = bodyOf({ ...searching, tools: [weatherTool], toolChoice: "required" })
    assert.deepStrictEqual<unknown>([tools?.length, tools?.[1], tool_choice], [2, search, { type: "any" }])
    for (const alone of [{}, { tools: [weatherTool], toolChoice: "none" as const }]) {
      const sent = bodyOf({ ...searching, ...alone })
      assert.deepStrictEqual<unknown>(sent.tools, [search])
      assert.notProperty(sent, "tool_choice")
    }
  })

  it.each([{ thinkin: "budget" }, { thinking: "enabled" }, { version: "latest" }, { auth: "basic" }])(
    "is refused with the options %j",
    (options) => assert.include(wrongOptions(decoder.decode(options)), `option ${Object.keys(options).join()}`)
  )

  check("leaves fetching images to the gateway where the route wants it", (adapter, _, route) =>
    Effect.sync(() => {
      assert.isFalse(adapter.requiresInlineImages?.({ ...route, options: { inline_images: false } }))
      const provider = { ...route.provider, baseUrl: "https://api.anthropic.com" }
      assert.isFalse(adapter.requiresInlineImages?.({ ...route, provider }))
      assert.isTrue(adapter.requiresInlineImages?.(route))
      assert.isTrue(adapter.requiresInlineImages?.({ ...route, options: { inline_images: true } }))
    })
  )
})

describe("a request to an anthropic host", () => {
  it("never has sampling: newer models refuse even the defaults", () => {
    const sampling = { temperature: 1, topP: 1, seed: 1, frequencyPenalty: 0, presencePenalty: 0 }
    assert.deepStrictEqual(bodyOf(sampling), bodyOf({}))
    assert.deepStrictEqual<object>(bodyOf({}, {}, true), {
      model: "claude-model-1",
      max_tokens: 4096,
      messages: [{ role: "user", content: [text("Say something.")] }],
      stream: true
    })
  })

  it("has the system messages as its system, wherever they stand, part by part", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "system", content: "Be brief." },
      user("Hi"),
      { role: "system", content: [text("Be kind."), text(" "), text("Be true.")] }
    ]
    const turn = { role: "user", content: [text("Hi")] }
    const system = [text("Be brief."), text("Be kind."), text("Be true.")]
    assert.deepInclude<object>(bodyOf({ messages }), { system, messages: [turn] })
    assert.deepInclude(bodyOf({ messages: messages.slice(0, 2) }), { system: "Be brief." })
  })

  it("of a system alone is the user's turn", () => {
    const sent = bodyOf({ messages: [{ role: "system", content: "Greet me." }] })
    assert.deepStrictEqual<unknown>(sent.messages, [{ role: "user", content: [text("Greet me.")] }])
    assert.notProperty(sent, "system")
  })

  it("has one turn for messages of one role in a row, and none for blank ones", () => {
    const parts = [text("c"), text("")]
    assert.deepStrictEqual<unknown>(
      turns(user("a"), user(" \n"), user("b"), assistant(""), user(parts), assistant("d"), user("e")),
      [
        { role: "user", content: [text("a"), text("b"), text("c")] },
        { role: "assistant", content: [text("d")] },
        { role: "user", content: [text("e")] }
      ]
    )
  })

  it("opens with a user's turn even before the assistant's greeting", () => {
    assert.deepStrictEqual<unknown>(turns(assistant("Hello!"), user("Hi")), [
      { role: "user", content: [text(".")] },
      { role: "assistant", content: [text("Hello!")] },
      { role: "user", content: [text("Hi")] }
    ])
  })

  it("ends a begun answer without white space, and asks for no budget then", () => {
    const messages = [user("Name a color."), assistant("The color is \n")]
    const sent = bodyOf({ messages, reasoningEffort: "high" }, { thinking: "budget" })
    assert.deepStrictEqual<unknown>(sent.messages.at(-1), { role: "assistant", content: [text("The color is")] })
    assert.isUndefined(sent.thinking)
    const unended = turns(...messages, user("Go on."))[1]
    assert.deepStrictEqual<unknown>(unended, { role: "assistant", content: [text("The color is \n")] })
  })

  it("has stop sequences but those of white space, which are refused", () => {
    assert.deepStrictEqual(bodyOf({ stop: ["\n", "END", " "] }).stop_sequences, ["END"])
    assert.isUndefined(bodyOf({ stop: ["\n"] }).stop_sequences)
  })

  const image = (url: string) => turns(user([{ type: "image_url", image_url: { url, detail: "low" } }]))[0]?.content[0]
  const base64 = (media_type: string, data: string) => ({ type: "image", source: { type: "base64", media_type, data } })

  it("lets the host fetch images behind a URL", () => {
    const url = "https://pictures.test/a.png"
    assert.deepStrictEqual<unknown>(image(url), { type: "image", source: { type: "url", url } })
  })

  it.each([
    ["image/png", "iVBORw0KGgoAAAA="],
    ["image/jpeg", "/9j/4AAQSkZJRg=="],
    ["image/gif", "R0lGODlhAQABAAAA"],
    ["image/webp", "UklGRiQAAABXRUJQ"]
  ])("says %s by the image's bytes, whatever the URL calls them", (type, data) => {
    for (const named of [type, "image/jpg", "image/png"]) {
      assert.deepStrictEqual<unknown>(image(`data:${named};base64,${data}`), base64(type, data))
    }
  })

  it("writes images anew that are in the other alphabet of base64 or have line breaks", () => {
    assert.deepStrictEqual<unknown>(image("DATA:image/jpeg;base64,_9j_\n4AAQ"), base64("image/jpeg", "/9j/4AAQ"))
  })

  it("has tools with a schema of an object, whatever was given", () => {
    const bare = { type: "function", function: { name: "now" } } as const
    const open = { type: "function", function: { name: "any", parameters: { additionalProperties: true } } } as const
    assert.deepStrictEqual<unknown>(bodyOf({ tools: [weatherTool, bare, open] }).tools, [
      {
        name: "get_weather",
        description: "Current weather of a city",
        input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
      },
      { name: "now", input_schema: { type: "object" } },
      { name: "any", input_schema: { type: "object", additionalProperties: true } }
    ])
  })

  const named = { type: "function", function: { name: "get_weather" } } as const
  const single = { disable_parallel_tool_use: true }
  it.each([
    [undefined, undefined, undefined],
    [undefined, true, undefined],
    [undefined, false, { type: "auto", ...single }],
    ["auto", undefined, { type: "auto" }],
    ["auto", false, { type: "auto", ...single }],
    ["none", false, { type: "none" }],
    ["required", undefined, { type: "any" }],
    ["required", false, { type: "any", ...single }],
    [named, true, { type: "tool", name: "get_weather" }],
    [named, false, { type: "tool", name: "get_weather", ...single }]
  ] as const)(
    "has for the choice %j with parallel calls %j the tool_choice %j",
    (toolChoice, parallelToolCalls, sent) => {
      assert.deepStrictEqual<unknown>(bodyOf({ tools: [weatherTool], toolChoice, parallelToolCalls }).tool_choice, sent)
      assert.isUndefined(bodyOf({ toolChoice, parallelToolCalls }).tool_choice, "none without tools")
    }
  )
})

describe("replayed calls of an anthropic host", () => {
  const question: Message = {
    role: "assistant",
    content: "Let me look.",
    tool_calls: [called("call_a", "get_weather", '{"city":"Bern"}'), called("call_b", "now", "")]
  }

  it("have an object for input, and their results open the next turn, before what the user says", () => {
    assert.deepStrictEqual<unknown>(
      turns(user("?"), question, result("call_a", "sunny"), user("Well?"), result("call_b", "")),
      [
        { role: "user", content: [text("?")] },
        {
          role: "assistant",
          content: [
            text("Let me look."),
            { type: "tool_use", id: "call_a", name: "get_weather", input: { city: "Bern" } },
            { type: "tool_use", id: "call_b", name: "now", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_a", content: [text("sunny")] },
            { type: "tool_result", tool_use_id: "call_b" },
            text("Well?")
          ]
        }
      ]
    )
  })

  it.each(['{"city": "Be', "[1]", '"Bern"'])("keep the arguments %s, which are no object", (value) => {
    const [, turn] = turns(user("?"), calling(called("a", "now", value)))
    assert.deepInclude(turn?.content[0], { input: { arguments: value } })
  })

  const idsOf = (...messages: ReadonlyArray<Message>) => {
    const blocks = turns(user("?"), ...messages).flatMap(({ content }) => content)
    return {
      calls: blocks.flatMap((block) => (block.type === "tool_use" ? [block.id] : [])),
      results: blocks.flatMap((block) => (block.type === "tool_result" ? [[block.tool_use_id, block.content]] : []))
    }
  }

  it("of other vendors get ids that this wire takes, each its own", () => {
    const ids = ["functions.now:0", "functions.now:1", "x".repeat(65), "fine-1_A"]
    const calls = ids.map((id) => called(id, "now", "{}"))
    const sent = idsOf(calling(...calls), ...ids.map((id) => result(id, id)))
    assert.deepStrictEqual(
      sent.results.map(([id]) => id),
      sent.calls
    )
    assert.strictEqual(new Set(sent.calls).size, ids.length)
    for (const id of sent.calls) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
    assert.strictEqual(sent.calls.at(-1), "fine-1_A")
  })

  it("of hosts that count anew in every answer stay distinct, each result with its own", () => {
    const turn = (content: string): ReadonlyArray<Message> => [
      calling(called("call_0", "now", "{}"), called("call_0", "now", "{}")),
      result("call_0", content),
      result("call_0", `${content} later`)
    ]
    const { calls, results } = idsOf(...turn("first"), ...turn("second"))
    assert.strictEqual(new Set(calls).size, 4)
    const words = ["first", "first later", "second", "second later"]
    assert.deepStrictEqual<unknown>(
      results,
      words.map((word, index) => [calls[index], [text(word)]])
    )
  })

  it("have their tools defined where the client names none any more, and none of them may be called", () => {
    const sent = bodyOf({ messages: [user("?"), question, result("call_a", "sunny"), result("call_b", "noon")] })
    const tools = ["get_weather", "now"].map((name) => ({ name, input_schema: { type: "object" } }))
    assert.deepInclude<object>(sent, { tools, tool_choice: { type: "none" } })
  })
})

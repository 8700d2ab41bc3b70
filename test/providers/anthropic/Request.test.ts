import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Message, Part } from "../../../src/domain/Chat.ts"
import type { ImageType } from "../../../src/domain/Media.ts"
import { options as decoder } from "../../../src/providers/anthropic/Options.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import { wrongOptions } from "../../harness/fixtures/WrongOptions.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { secret } from "./Hosts.ts"
import { bodyOf, check } from "./support.ts"
import { wire } from "./Wire.ts"

const user = (content: string | ReadonlyArray<Part>): Message => ({ role: "user", content })
const assistant = (content: string): Message => ({ role: "assistant", content })
const turns = (...messages: ReadonlyArray<Message>) => bodyOf({ messages }).messages
const says = (text: string) => ({ type: "text", text }) as const
const { body } = wire({ content: "Hi.", finish: "stop" })

describe("versions", () => {
  for (const [name, options, headers] of [
    ["the common one, with x-api-key", {}, { "anthropic-version": "2023-06-01", "x-api-key": secret }],
    ["a newer one by option", { version: "2026-10-21" }, { "anthropic-version": "2026-10-21", "x-api-key": secret }],
    [
      "a bearer token by option",
      { auth: "bearer" },
      { "anthropic-version": "2023-06-01", authorization: `Bearer ${secret}` }
    ]
  ] as const) {
    check(
      name,
      (adapter, fake, route) =>
        Effect.gen(function* () {
          yield* fake.script(Fake.json(200, body))
          yield* adapter.complete(route, request())
          const { headers: sent, method, path } = yield* fake.received
          assert.deepStrictEqual([method, path], ["POST", "/v1/messages"])
          assert.deepInclude(sent, { ...headers, "content-type": "application/json" })
          assert.isUndefined("authorization" in headers ? sent["x-api-key"] : sent.authorization)
        }),
      options
    )
  }

  it("sampling is never sent: newer versions and models refuse even the defaults", () => {
    const given = { temperature: 1, topP: 1, seed: 1, frequencyPenalty: 0, presencePenalty: 0 }
    assert.deepStrictEqual(bodyOf(given), bodyOf({}))
    assert.deepStrictEqual(bodyOf({}, {}, true), {
      model: "claude-model-1",
      max_tokens: 4096,
      messages: [{ role: "user", content: [says("Say something.")] }],
      stream: true
    })
  })
})

describe("options that are wrong", () => {
  for (const options of [{ thinkin: "budget" }, { thinking: "enabled" }, { version: "latest" }, { auth: "basic" }]) {
    it(`${JSON.stringify(options)} are refused by name`, () => {
      assert.include(wrongOptions(decoder.decode(options)), `option ${Object.keys(options).join()}`)
    })
  }
})

describe("turns", () => {
  it("system messages become the system, wherever they stand, part by part", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "system", content: "Be brief." },
      user("Hi"),
      { role: "system", content: [says("Be kind."), says(" "), says("Be true.")] }
    ]
    const sent = bodyOf({ messages })
    assert.deepStrictEqual(sent.system, [says("Be brief."), says("Be kind."), says("Be true.")])
    assert.deepStrictEqual(sent.messages, [{ role: "user", content: [says("Hi")] }])
    assert.strictEqual(bodyOf({ messages: messages.slice(0, 2) }).system, "Be brief.")
  })

  it("what the system alone says is the user's turn", () => {
    const sent = bodyOf({ messages: [{ role: "system", content: "Greet me." }] })
    assert.deepStrictEqual(sent.messages, [{ role: "user", content: [says("Greet me.")] }])
    assert.isUndefined(sent.system)
  })

  it("messages of one role in a row are one turn, blank ones none", () => {
    const parts = [says("c"), says("")]
    assert.deepStrictEqual(
      turns(user("a"), user(" \n"), user("b"), assistant(""), user(parts), assistant("d"), user("e")),
      [
        { role: "user", content: [says("a"), says("b"), says("c")] },
        { role: "assistant", content: [says("d")] },
        { role: "user", content: [says("e")] }
      ]
    )
  })

  it("a greeting of the assistant's is answered to: the first turn has to be the user's", () => {
    assert.deepStrictEqual(turns(assistant("Hello!"), user("Hi")), [
      { role: "user", content: [says(".")] },
      { role: "assistant", content: [says("Hello!")] },
      { role: "user", content: [says("Hi")] }
    ])
  })

  it("prefill goes out as it comes, without the white space that it must not end in, and without a budget", () => {
    const messages = [user("Name a color."), assistant("The color is \n")]
    const sent = bodyOf({ messages, reasoningEffort: "high" }, { thinking: "budget" })
    assert.deepStrictEqual(sent.messages.at(-1), { role: "assistant", content: [says("The color is")] })
    assert.isUndefined(sent.thinking)
    assert.deepStrictEqual(turns(...messages, user("Go on."))[1], {
      role: "assistant",
      content: [says("The color is \n")]
    })
  })
})

describe("pictures", () => {
  const image = (url: string) => turns(user([{ type: "image_url", image_url: { url, detail: "low" } }]))[0]?.content[0]
  const base64 = (media_type: ImageType, data: string) =>
    ({ type: "image", source: { type: "base64", media_type, data } }) as const

  it("behind a URL are fetched by the host", () => {
    const url = "https://pictures.test/a.png"
    assert.deepStrictEqual(image(url), { type: "image", source: { type: "url", url } })
  })

  for (const [type, data] of [
    ["image/png", "iVBORw0KGgoAAAA="],
    ["image/jpeg", "/9j/4AAQSkZJRg=="],
    ["image/gif", "R0lGODlhAQABAAAA"],
    ["image/webp", "UklGRiQAAABXRUJQ"]
  ] as const) {
    it(`are ${type} by their bytes, whatever the URL calls them`, () => {
      for (const called of [type, "image/jpg", "image/png"]) {
        assert.deepStrictEqual(image(`data:${called};base64,${data}`), base64(type, data))
      }
    })
  }

  it("in the other alphabet of base64, or with line breaks, are written anew", () => {
    assert.deepStrictEqual(image("DATA:image/jpeg;base64,_9j_\n4AAQ"), base64("image/jpeg", "/9j/4AAQ"))
  })

  check("are fetched by the gateway where the route wants it", (adapter, _, route) =>
    Effect.sync(() => {
      assert.isFalse(adapter.inlines?.({ ...route, options: { inline_images: false } }))
      const provider = { ...route.provider, baseUrl: "https://api.anthropic.com" }
      assert.isFalse(adapter.inlines?.({ ...route, provider }))
      assert.isTrue(adapter.inlines?.(route))
      assert.isTrue(adapter.inlines?.({ ...route, options: { inline_images: true } }))
    })
  )
})

describe("stop sequences", () => {
  it("go out, except those of white space, which are refused", () => {
    assert.deepStrictEqual(bodyOf({ stop: ["\n", "END", " "] }).stop_sequences, ["END"])
    assert.isUndefined(bodyOf({ stop: ["\n"] }).stop_sequences)
  })
})

describe("tools", () => {
  it("have a schema of an object, whatever was given", () => {
    const bare = { type: "function", function: { name: "now" } } as const
    const open = { type: "function", function: { name: "any", parameters: { additionalProperties: true } } } as const
    assert.deepStrictEqual(bodyOf({ tools: [weatherTool, bare, open] }).tools, [
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
  const single = { disable_parallel_tool_use: true } as const
  for (const [toolChoice, parallelToolCalls, sent] of [
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
  ] as const) {
    it(`choice ${JSON.stringify(toolChoice)} with parallel calls ${parallelToolCalls}`, () => {
      assert.deepStrictEqual(bodyOf({ tools: [weatherTool], toolChoice, parallelToolCalls }).tool_choice, sent)
      assert.isUndefined(bodyOf({ toolChoice, parallelToolCalls }).tool_choice, "none without tools")
    })
  }
})

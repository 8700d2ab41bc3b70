import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ResponseCreateParams } from "openai/resources/responses/responses"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Options } from "../../../src/providers/openai-responses/Options.ts"
import { encodeRequest, type WireRequest, type WireSearch } from "../../../src/providers/openai-responses/Request.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import { routeTo, secret } from "./Hosts.ts"
import { check, inOnePiece } from "./support.ts"

type Tools = NonNullable<WireRequest["tools"]>
type OwnTools = Array<Exclude<Tools[number], WireSearch> | { type: "web_search" }>

/** A second opinion on the body, by the types of the vendor's own client; what an option adds is the operator's. */
const asOfficial = (body: Omit<WireRequest, "tools"> & { tools?: OwnTools }): ResponseCreateParams => body

const isOwn = (tools: Tools): tools is OwnTools =>
  tools.every((tool) => tool.type === "function" || tool.type === "web_search")

const encoded = (asked: ChatRequest, options: Options = {}, isStream = false): WireRequest => {
  const quirks = { summary: true, stream: true }
  return encodeRequest({ route: routeTo("http://x"), request: asked, options, isStream, quirks })
}

const bodyOf = (asked: ChatRequest, options: Options = {}, stream = false): unknown => {
  const { tools, ...rest } = encoded(asked, options, stream)
  if (tools !== undefined && !isOwn(tools)) throw new Error("a tool that the vendor does not know")
  return JSON.parse(JSON.stringify(asOfficial(tools === undefined ? rest : { ...rest, tools })))
}

const { description, name, parameters } = weatherTool.function
const search = { type: "web_search" }

describe("a request to an openai-responses host", () => {
  it("says everything that was asked, and nothing else", () => {
    const asked = request({
      messages: [
        { role: "system", content: "S", name: "boss" },
        {
          role: "user",
          content: [
            { type: "text", text: "t" },
            { type: "image_url", image_url: { url: "https://x.test/a.png", detail: "low" } },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "huge" } }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I " },
            { type: "text", text: "look." }
          ],
          reasoning_content: "thought",
          tool_calls: [
            { id: "c", type: "function", function: { name: "f", arguments: "{}" } },
            { id: "d", type: "function", function: { name: "g", arguments: "" }, signature: "s" }
          ]
        },
        {
          role: "tool",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" }
          ],
          tool_call_id: "c"
        },
        { role: "tool", content: "", tool_call_id: "d" },
        { role: "system", content: [{ type: "text", text: "Later." }] },
        { role: "assistant", content: null, reasoning_content: "only" },
        { role: "user", content: "ok" }
      ],
      maxTokens: 99,
      stop: ["a"],
      tools: [weatherTool, { type: "function", function: { name: "bare", strict: true } }],
      toolChoice: { type: "function", function: { name: "bare" } },
      parallelToolCalls: false,
      reasoningEffort: "xhigh",
      responseFormat: { type: "json_object" },
      webSearch: true,
      temperature: 0,
      topP: 0.5,
      seed: 7,
      frequencyPenalty: -1,
      presencePenalty: 1
    })
    assert.deepStrictEqual(bodyOf(asked, {}, true), {
      model: "vendor/model-1",
      input: [
        { role: "developer", content: "S" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "t" },
            { type: "input_image", image_url: "https://x.test/a.png", detail: "low" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" }
          ]
        },
        { role: "assistant", content: "I look." },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call", call_id: "d", name: "g", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "ab" },
        { type: "function_call_output", call_id: "d", output: "" },
        { role: "developer", content: [{ type: "input_text", text: "Later." }] },
        { role: "assistant", content: "" },
        { role: "user", content: "ok" }
      ],
      store: false,
      max_output_tokens: 99,
      stream: true,
      tools: [
        { type: "function", name, description, parameters, strict: false },
        { type: "function", name: "bare", parameters: { type: "object", properties: {} }, strict: true },
        search
      ],
      tool_choice: { type: "function", name: "bare" },
      parallel_tool_calls: false,
      reasoning: { effort: "xhigh", summary: "auto" },
      text: { format: { type: "json_object" } }
    })
  })

  it("leaves out what was not asked", () => {
    const asked = request({ toolChoice: "auto", parallelToolCalls: true })
    assert.deepStrictEqual(bodyOf(asked), {
      model: "vendor/model-1",
      input: [{ role: "user", content: "Say something." }],
      store: false,
      max_output_tokens: 4096,
      reasoning: { summary: "auto" }
    })
  })

  it("asks for no fewer tokens than the host takes", () => {
    const asked = [1, 15, 16, 17].map((maxTokens) => bodyOf(request({ maxTokens })))
    for (const [at, expected] of [16, 16, 16, 17].entries()) {
      assert.deepInclude(asked[at], { max_output_tokens: expected })
    }
  })

  it("has a schema flat, and strict only where asked", () => {
    const format = (json_schema: { name: string; description?: string; schema?: object; strict?: boolean | null }) =>
      bodyOf(
        request({
          responseFormat: { type: "json_schema", json_schema: { ...json_schema, schema: { type: "object" } } }
        })
      )
    const flat = { type: "json_schema", name: "n", schema: { type: "object" } }
    assert.deepInclude(format({ name: "n", strict: true, description: "d" }), {
      text: { format: { ...flat, description: "d", strict: true } }
    })
    assert.deepInclude(format({ name: "n", strict: null }), { text: { format: { ...flat, strict: false } } })
  })

  it("takes the summary that the route asks for, or none", () => {
    const thinking = request({ reasoningEffort: "low" })
    assert.deepInclude(bodyOf(thinking, { reasoning_summary: "detailed" }), {
      reasoning: { effort: "low", summary: "detailed" }
    })
    assert.deepInclude(bodyOf(thinking, { reasoning_summary: "none" }), { reasoning: { effort: "low" } })
    assert.notProperty(bodyOf(request(), { reasoning_summary: "none" }), "reasoning")
  })

  it("keeps a search that functions must not get in the way of", () => {
    const both = request({ webSearch: true, tools: [weatherTool], toolChoice: "none" })
    assert.deepInclude(bodyOf(both), { tools: [search] })
    assert.notProperty(bodyOf(both), "tool_choice")
    assert.deepInclude(bodyOf({ ...both, webSearch: false }), { tool_choice: "none" })
    const narrow = { ...search, search_context_size: "low" }
    assert.deepInclude(bodyOf(request({ webSearch: true }), { web_search: narrow }), { tools: [narrow] })
  })

  it("shortens ids of calls that the host would refuse, a call's and its result's alike", () => {
    const idsFor = (id: string) => {
      const body = encoded(
        request({
          messages: [
            { role: "assistant", content: null, tool_calls: [{ id, ...callOf }] },
            { role: "tool", content: "r", tool_call_id: id }
          ]
        })
      )
      return body.input.map((item) => ("call_id" in item ? item.call_id : undefined))
    }
    const callOf = { type: "function", function: { name: "f", arguments: "{}" } } as const
    const fits = "c".repeat(64)
    assert.deepStrictEqual(idsFor(fits), [fits, fits])
    const [call = "", result] = idsFor(`${fits}d`)
    assert.match(call, /^call_[\w-]{43}$/)
    assert.strictEqual(result, call)
    assert.notDeepEqual(idsFor(`${fits}e`), [call, call])
  })

  check("goes to the route's path with its credential", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(inOnePiece({ content: "hi", finish: "stop" }))
      yield* adapter.complete(route, request())
      const { headers, method, path } = yield* fake.received
      assert.deepStrictEqual([method, path, headers.authorization], ["POST", "/v1/responses", `Bearer ${secret}`])
    })
  )

  check("wants pictures as bytes unless its host fetches, or the route says otherwise", (adapter, _, route) =>
    Effect.sync(() => {
      const to = (baseUrl: string) => ({ ...route, provider: { ...route.provider, baseUrl } })
      assert.isTrue(adapter.inlines?.(route))
      assert.isFalse(adapter.inlines?.({ ...route, options: { inline_images: false } }))
      assert.isFalse(adapter.inlines?.(to("https://api.openai.com/v1")))
      assert.isTrue(adapter.inlines?.(to("https://api.openai.com.evil.example/v1")))
      assert.isTrue(adapter.inlines?.({ ...to("https://api.openai.com/v1"), options: { inline_images: true } }))
    })
  )
})

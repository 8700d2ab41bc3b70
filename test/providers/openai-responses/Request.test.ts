import { Effect } from "effect"
import type { ResponseCreateParams } from "openai/resources/responses/responses"
import { options as decoder, encodeRequest, rulesOf } from "../../../src/providers/openai-responses/ResponsesRequest.ts"
import { called, hear, joined, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { secret } from "../../contracts/ChatHosts.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { inEvents, inOnePiece, openAiResponses } from "./Wire.ts"

const { bodies, check } = scenarios(openAiResponses)

const callOf = callTo(openAiResponses, { decoder, rulesOf }, { summary: true, stream: true, encrypted: true })
type Tool = NonNullable<ReturnType<typeof encodeRequest>["tools"]>[number]
type FunctionTool = Extract<Tool, { readonly strict: boolean }>
const isFunction = (tool: Tool): tool is FunctionTool => tool.type === "function"

/** Bodies have the types of the vendor's client, except fields that an option adds. */
const bodyOf = (...overrides: Parameters<typeof callOf>) => {
  const { tools, ...rest } = encodeRequest(callOf(...overrides))
  const body: ResponseCreateParams = { ...rest, tools: (tools ?? []).filter(isFunction) }
  return { ...body, tools }
}

const { description, name, parameters } = weatherTool.function
const search = { type: "web_search" }

describe("a request to an openai-responses host", () => {
  const parts = (...texts: ReadonlyArray<string>) => texts.map((text) => ({ type: "text", text }) as const)
  const image = (url: string, detail: string) => ({ type: "image_url", image_url: { url, detail } }) as const

  it("says everything that was asked, and nothing else", () => {
    const body = bodyOf(
      {
        messages: [
          { role: "system", content: "S", name: "boss" },
          {
            role: "user",
            content: [...parts("t"), image("https://x.test/a.png", "low"), image("data:image/png;base64,AAAA", "huge")]
          },
          {
            role: "assistant",
            content: parts("I ", "look."),
            reasoning_content: "thought",
            tool_calls: [called("c", "f", "{}"), { ...called("d", "g", ""), signature: "s" }]
          },
          { role: "tool", content: parts("a", "b"), tool_call_id: "c" },
          { role: "tool", content: "", tool_call_id: "d" },
          { role: "system", content: parts("Later.") },
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
      },
      {},
      true
    )
    assert.deepStrictEqual<unknown>(body, {
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
        { type: "function_call_output", call_id: "c", output: "a\nb" },
        { type: "function_call_output", call_id: "d", output: "" },
        { role: "developer", content: [{ type: "input_text", text: "Later." }] },
        { role: "user", content: "ok" }
      ],
      store: false,
      max_output_tokens: 99,
      stream: true,
      tools: [
        { type: "function", name, description, parameters, strict: false },
        { type: "function", name: "bare", parameters: { type: "object", properties: {} }, strict: false },
        search
      ],
      tool_choice: { type: "function", name: "bare" },
      parallel_tool_calls: false,
      reasoning: { effort: "xhigh", summary: "auto" },
      text: { format: { type: "json_object" } }
    })
  })

  it("leaves out what was not asked", () => {
    assert.deepStrictEqual<unknown>(encodeRequest(callOf({ toolChoice: "auto", parallelToolCalls: true })), {
      model: "vendor/model-1",
      input: [{ role: "user", content: "Say something." }],
      store: false,
      max_output_tokens: 4096,
      reasoning: { summary: "auto" }
    })
  })

  it.each([
    [1, 16],
    [15, 16],
    [16, 16],
    [17, 17]
  ])("with a cap of %i asks for %i tokens", (maxTokens, max_output_tokens) =>
    assert.deepInclude(bodyOf({ maxTokens }), { max_output_tokens })
  )

  it("has a schema flat, and strict only where asked", () => {
    const schema = { type: "object", properties: {}, additionalProperties: false }
    const format = (more: object) =>
      bodyOf({ responseFormat: { type: "json_schema", json_schema: { name: "n", schema, ...more } } })
    const flat = { type: "json_schema", name: "n", schema }
    const strict = format({ strict: true, description: "d" })
    assert.deepInclude<object>(strict, { text: { format: { ...flat, description: "d", strict: true } } })
    assert.deepInclude<object>(format({ strict: null }), { text: { format: { ...flat, strict: false } } })
  })

  it("takes the summary that the route asks for, or none", () => {
    const effort = "low"
    const body = (reasoning_summary: string) => bodyOf({ reasoningEffort: effort }, { reasoning_summary })
    assert.deepInclude(body("detailed"), { reasoning: { effort, summary: "detailed" } })
    assert.deepInclude(body("none"), { reasoning: { effort } })
    assert.notProperty(bodyOf({}, { reasoning_summary: "none" }), "reasoning")
  })

  it("keeps a search that functions must not get in the way of", () => {
    const both = { webSearch: true, tools: [weatherTool], toolChoice: "none" } as const
    assert.deepInclude<object>(bodyOf(both), { tools: [search] })
    assert.notProperty(bodyOf(both), "tool_choice")
    assert.deepInclude(bodyOf({ ...both, webSearch: false }), { tool_choice: "none" })
    const narrow = { ...search, search_context_size: "low" }
    assert.deepInclude<object>(bodyOf({ webSearch: true }, { web_search: narrow }), { tools: [narrow] })
    assert.deepInclude<object>(bodyOf({ webSearch: true, maxWebSearches: 5 }), { max_tool_calls: 5 })
    assert.notProperty(bodyOf({ maxWebSearches: 5 }), "max_tool_calls")
  })

  it("shortens ids of calls that the host would refuse, a call's and its result's alike", () => {
    const idsFor = (id: string) => {
      const call = { role: "assistant", content: null, tool_calls: [called(id, "f", "{}")] } as const
      const { input } = encodeRequest(callOf({ messages: [call, { role: "tool", content: "r", tool_call_id: id }] }))
      return input.map((item) => ("call_id" in item ? item.call_id : undefined))
    }
    const fits = "c".repeat(64)
    assert.deepStrictEqual(idsFor(fits), [fits, fits])
    const [call = "", result] = idsFor(`${fits}d`)
    assert.match(call, /^call_[a-zA-Z0-9]{24}$/)
    assert.strictEqual(result, call)
    assert.notDeepEqual(idsFor(`${fits}e`), [call, call])
  })

  check("goes to the route's path with its credential", function* (adapter, fake, route) {
    yield* fake.script(inOnePiece({ content: "hi", finish: "stop" }))
    yield* adapter.complete(route, request())
    const { headers, method, path } = yield* fake.received
    assert.deepStrictEqual([method, path, headers.authorization], ["POST", "/v1/responses", `Bearer ${secret}`])
  })

  check("has images as bytes unless its host fetches, or the route says otherwise", (adapter, _, route) =>
    Effect.sync(() => {
      const to = (baseUrl: string) => ({ ...route, provider: { ...route.provider, baseUrl } })
      assert.isTrue(adapter.requiresInlineImages?.(route))
      assert.isFalse(adapter.requiresInlineImages?.({ ...route, options: { inline_images: false } }))
      assert.isFalse(adapter.requiresInlineImages?.(to("https://api.openai.com/v1")))
      assert.isTrue(adapter.requiresInlineImages?.(to("https://api.openai.com.evil.example/v1")))
      assert.isTrue(
        adapter.requiresInlineImages?.({ ...to("https://api.openai.com/v1"), options: { inline_images: true } })
      )
    })
  )

  check(
    "replays calls by their call_id alone, without the id that wants its reasoning",
    function* (adapter, fake, route) {
      const toolCalls = [{ id: "call_a", name, arguments: '{"city":"Bern"}' }]
      const calling = { toolCalls, reasoning: "r", finish: "tool_calls" } as const
      const hi = inOnePiece({ content: "hi", finish: "stop" })
      yield* fake.script(inOnePiece(calling), inEvents(calling), hi)
      const chatRequest = request({ tools: [weatherTool], reasoningEffort: "high" })
      const answer = yield* adapter.complete(route, chatRequest)
      assert.deepStrictEqual(joined((yield* hear(adapter, route, chatRequest)).events).toolCalls, answer.toolCalls)
      assert.strictEqual(answer.toolCalls[0]?.id, "call_a")
      const messages = [
        { role: "assistant", content: null, reasoning_content: answer.reasoning, tool_calls: answer.toolCalls },
        { role: "tool", content: "sunny", tool_call_id: "call_a" }
      ] as const
      yield* adapter.complete(route, request({ messages }))
      const [first, , third] = yield* bodies(fake, 3)
      assert.nestedInclude(first, { "tools[0].name": name, "reasoning.effort": "high" })
      assert.deepStrictEqual(third.input, [
        { type: "function_call", call_id: "call_a", name, arguments: '{"city":"Bern"}' },
        { type: "function_call_output", call_id: "call_a", output: "sunny" }
      ])
    }
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatCompletionCreateParamsBase } from "openai/resources/chat/completions"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { options as decoder } from "../../../src/providers/openai-chat/Options.ts"
import { encodeRequest, type Quirks, type WireRequest } from "../../../src/providers/openai-chat/Request.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { routeTo, secret } from "./Hosts.ts"
import { check } from "./support.ts"

const usual: Quirks = { maxTokensField: "max_tokens", streamOptions: true }

const bodyOf = (route: Route, asked: ChatRequest, isStream = false): WireRequest =>
  encodeRequest({ route, request: asked, options: decoder.of(route), isStream, quirks: usual })

/** A second opinion on the body, by the types of the convention's own client; `xhigh` and the rest included. */
const asOfficial = (body: WireRequest): ChatCompletionCreateParamsBase => body

describe("a request to an openai-chat host", () => {
  it("shortens ids of calls that OpenAI refuses, a call's and its result's alike", () => {
    const idsFor = (id: string) => {
      const tool_calls = [{ id, type: "function" as const, function: { name: "f", arguments: "{}" } }]
      const messages = [
        { role: "assistant" as const, content: null, tool_calls },
        { role: "tool" as const, content: "r", tool_call_id: id }
      ]
      return bodyOf(routeTo("http://x"), request({ messages })).messages.map((message) =>
        "tool_call_id" in message ? message.tool_call_id : "tool_calls" in message && message.tool_calls?.[0]?.id
      )
    }
    const fits = "c".repeat(40)
    assert.deepStrictEqual(idsFor(fits), [fits, fits])
    const [call, result] = idsFor(`${fits}d`)
    assert.match(String(call), /^call_[\w-]{35}$/)
    assert.strictEqual(result, call)
    assert.notDeepEqual(idsFor(`${fits}e`), [call, call])
  })

  const everything: ChatRequest = request({
    messages: [
      { role: "system", content: "S", name: "boss" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png", detail: "huge" } }] },
      {
        role: "assistant",
        content: null,
        reasoning_content: "thought",
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }]
      },
      {
        role: "tool",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ],
        tool_call_id: "c"
      },
      { role: "assistant", content: "ok", tool_calls: [] },
      { role: "assistant", content: null }
    ],
    maxTokens: 9,
    stop: ["a", "b"],
    tools: [weatherTool, { type: "function", function: { name: "bare", strict: null } }],
    toolChoice: "auto",
    parallelToolCalls: false,
    reasoningEffort: "xhigh",
    responseFormat: { type: "json_object" },
    temperature: 0,
    topP: 0.5,
    seed: 7,
    frequencyPenalty: -1,
    presencePenalty: 1
  })

  it("says everything that was asked, and nothing else", () => {
    const body = asOfficial(bodyOf(routeTo("http://x"), everything, true))
    assert.deepStrictEqual(JSON.parse(JSON.stringify(body)), {
      model: "vendor/model-1",
      messages: [
        { role: "system", content: "S", name: "boss" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }]
        },
        {
          role: "tool",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" }
          ],
          tool_call_id: "c"
        },
        { role: "assistant", content: "ok" },
        { role: "assistant", content: "" }
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 9,
      stop: ["a", "b"],
      tools: [weatherTool, { type: "function", function: { name: "bare", strict: null } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      reasoning_effort: "xhigh",
      response_format: { type: "json_object" },
      temperature: 0,
      top_p: 0.5,
      seed: 7,
      frequency_penalty: -1,
      presence_penalty: 1
    })
  })

  it("leaves out what was not asked", () => {
    const body: unknown = JSON.parse(
      JSON.stringify(bodyOf(routeTo("http://x"), request({ toolChoice: "auto", parallelToolCalls: true })))
    )
    assert.deepStrictEqual(body, {
      model: "vendor/model-1",
      messages: [{ role: "user", content: "Say something." }],
      max_tokens: 4096
    })
  })

  it("adds a route's own web search where it was asked for, beside the client's tools", () => {
    const search = { type: "web_search" }
    const route = routeTo("http://x", { web_search: { tools: [search], search_context_size: "low" } })
    const asked = request({ tools: [weatherTool] })
    const without: unknown = JSON.parse(JSON.stringify(bodyOf(route, asked)))
    const searching: unknown = JSON.parse(JSON.stringify(bodyOf(route, { ...asked, webSearch: true })))
    assert.deepInclude(without, { tools: [weatherTool] })
    assert.notProperty(without, "search_context_size")
    assert.deepInclude(searching, { tools: [weatherTool, search], search_context_size: "low" })
  })

  it("sends reasoning back only to routes that want it", () => {
    const sent = (options: Route["options"]) =>
      JSON.stringify(bodyOf(routeTo("http://x", options), everything)).includes("thought")
    assert.deepStrictEqual([sent({}), sent({ reasoning_history: true })], [false, true])
  })

  check("goes to the route's path with its credential", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(200, { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] }))
      yield* adapter.complete(route, request())
      const { headers, path } = yield* fake.received
      assert.deepStrictEqual([path, headers.authorization], ["/v1/chat/completions", `Bearer ${secret}`])
    })
  )
})

import { FastCheck as fc } from "effect"
import { type ChatRequest, unsignedMark } from "../../../src/domain/Chat.ts"
import { billedParameters } from "../../../src/providers/chat/Messages.ts"
import { native } from "../../../src/providers/openai-responses/NativeResponses.ts"
import { options as decoder, type Quirks, rulesOf } from "../../../src/providers/openai-responses/ResponsesRequest.ts"
import { callTo } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { openAiResponses } from "./Wire.ts"

type Body = Readonly<Record<string, unknown>>

const usual: Quirks = { summary: true, stream: true, encrypted: true }
const encode = (body: Body, more: Partial<ChatRequest> = {}, options = {}, quirks = usual, isStream = false) =>
  native.encode(
    callTo(openAiResponses, { decoder, rulesOf }, quirks)({ maxTokens: 64_000, ...more }, options, isStream),
    body
  )

const chatRequest = { model: "ours", input: "Say something." }
const plain = { model: "vendor/model-1", input: "Say something.", store: false, max_output_tokens: 64_000 }
const question = { role: "user", content: [{ type: "input_text", text: "Weather in Bern?" }] }
const itemsOf = (input: ReadonlyArray<unknown>, quirks = usual): unknown =>
  Object(encode({ ...chatRequest, input }, {}, {}, quirks)).input

const tool = { type: "function", name: "get_weather", parameters: { type: "object", properties: {} }, strict: false }
const patch = {
  type: "custom",
  name: "apply_patch",
  format: { type: "grammar", syntax: "lark", definition: "start: x" }
}
const agents = { type: "namespace", name: "agents", description: "d", tools: [tool, patch] }
const encrypted = { type: "reasoning", summary: [], encrypted_content: "gAAA" }

describe("a body of the Responses dialect", () => {
  it("is sent as the client wrote it, but for the model, the cap and what is stored", () => {
    const body = {
      ...chatRequest,
      instructions: "Be brief.",
      input: [
        { type: "additional_tools", role: "developer", tools: [tool, patch, agents] },
        { type: "message", role: "developer", content: [{ type: "input_text", text: "Now." }] },
        question,
        encrypted,
        { type: "custom_tool_call", call_id: "call_1", name: "apply_patch", input: "*** Begin" },
        { type: "custom_tool_call_output", call_id: "call_1", output: "Done" },
        { type: "local_shell_call", id: "lsh_1", call_id: "call_2", action: { type: "exec" }, status: "completed" },
        { type: "function_call_output", call_id: "call_2", output: "ok" },
        { type: "compaction", id: "cmp_1", encrypted_content: "x" },
        { type: "of_tomorrow", id: "ot_1" }
      ],
      tools: [
        tool,
        patch,
        agents,
        { type: "local_shell" },
        { type: "tool_search", execution: "client" },
        { type: "apply_patch" }
      ],
      tool_choice: "auto",
      parallel_tool_calls: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "low", summary: "detailed", context: "all_turns" },
      text: {
        verbosity: "low",
        format: { type: "json_schema", name: "n", schema: { type: "object", properties: {} }, strict: true }
      },
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
      metadata: { a: "b" },
      truncation: "auto",
      of_tomorrow: { a: [1, { b: null }] }
    }
    const options = { include_obfuscation: false }
    const given = { ...body, store: true, max_output_tokens: 9, stream_options: options }
    const sent = { ...body, model: "vendor/model-1", store: false, max_output_tokens: 16 }
    assert.deepStrictEqual<unknown>(encode(given, { maxTokens: 9, reasoningEffort: "low" }), sent)
    const streamed = encode(given, { maxTokens: 9, reasoningEffort: "low" }, {}, usual, true)
    assert.deepStrictEqual<unknown>(streamed, { ...sent, stream: true, stream_options: options })
    const unstreamed = encode(given, { maxTokens: 9, reasoningEffort: "low" }, {}, { ...usual, stream: false }, true)
    assert.deepStrictEqual<unknown>(unstreamed, sent)
    assert.deepStrictEqual<unknown>(encode(chatRequest), plain)
  })

  it.each([
    "background",
    "context_management",
    "conversation",
    "moderation",
    "previous_response_id",
    "prompt",
    "safety_identifier",
    "service_tier",
    "user",
    ...billedParameters
  ])("loses %s, which costs extra or names what is the operator's or the customer's", (field) => {
    for (const value of [true, "priority", { id: "pmpt_1" }]) {
      assert.deepStrictEqual<unknown>(encode({ ...chatRequest, [field]: value }), plain)
    }
  })

  it.each([
    ["a code interpreter", { type: "code_interpreter", container: { type: "auto" } }],
    ["a search in files", { type: "file_search", vector_store_ids: ["vs_1"] }],
    ["a painter", { type: "image_generation" }],
    ["a computer", { type: "computer_use_preview" }],
    ["another computer", { type: "computer" }],
    ["a server of tools", { type: "mcp", server_url: "https://a.test" }],
    ["a program", { type: "programmatic_tool_calling" }],
    ["a shell in a container", { type: "shell", environment: { type: "container_auto" } }],
    ["a shell of the host's choosing", { type: "shell" }],
    ["a search", { type: "web_search" }],
    ["a tool of tomorrow", { type: "of_tomorrow" }]
  ])("loses %s, which no price covers, wherever it is offered", (_, dear) => {
    assert.deepStrictEqual<unknown>(encode({ ...chatRequest, tools: [dear], tool_choice: "required" }), plain)
    const choice = {
      type: "allowed_tools",
      mode: "auto",
      tools: [{ type: dear.type }, { type: "function", name: "a" }]
    }
    const beside = encode({ ...chatRequest, tools: [dear, tool], tool_choice: choice })
    const kept = { ...choice, tools: choice.tools.slice(1) }
    assert.deepStrictEqual<unknown>(beside, { ...plain, tools: [tool], tool_choice: kept })
    assert.deepStrictEqual<unknown>(encode({ ...chatRequest, tools: [dear, tool], tool_choice: { type: dear.type } }), {
      ...plain,
      tools: [tool]
    })
    for (const holder of [{ type: "additional_tools", role: "developer" }, { type: "tool_search_output" }]) {
      assert.deepStrictEqual(itemsOf([{ ...holder, tools: [dear, tool] }]), [{ ...holder, tools: [tool] }])
    }
    const nested = { ...agents, tools: [dear, tool] }
    assert.deepInclude(encode({ ...chatRequest, tools: [nested] }), { tools: [{ ...nested, tools: [tool] }] })
  })

  it("keeps a shell at the client, and a search where the route searches, in the route's own words", () => {
    const shell = { type: "shell", environment: { type: "local" } }
    assert.deepInclude(encode({ ...chatRequest, tools: [shell] }), { tools: [shell] })
    const search = { type: "web_search_preview", search_context_size: "low" }
    const searching = { webSearch: true }
    assert.deepInclude(encode({ ...chatRequest, tools: [search] }, searching), {
      tools: [{ ...search, type: "web_search" }]
    })
    const bounded = (max_tool_calls: unknown) =>
      encode({ ...chatRequest, tools: [search], max_tool_calls }, { ...searching, maxWebSearches: 5 })
    for (const endless of [undefined, null, 0, "many", 6]) assert.deepInclude(bounded(endless), { max_tool_calls: 5 })
    assert.deepInclude(bounded(2), { max_tool_calls: 2 })
    const own = { type: "search_of_host" }
    assert.deepInclude(encode({ ...chatRequest, tools: [search] }, searching, { web_search: own }), { tools: [own] })
  })

  it("keeps reasoning that its host can read, and loses what refers to what is not stored", () => {
    const call = { type: "function_call", call_id: "call_1", name: "now", arguments: "{}" }
    const named = (item: object) => ({ ...item, id: "x_1" })
    const output = { type: "function_call_output", call_id: "call_1", output: "noon" }
    const input = [
      named({ type: "message", ...question }),
      named(encrypted),
      named({ ...encrypted, encrypted_content: unsignedMark }),
      named({ type: "reasoning", summary: [] }),
      named({ type: "reasoning", summary: [], encrypted_content: null }),
      named(call),
      named(output),
      { type: "item_reference", id: "msg_1" },
      { id: "msg_2" },
      { id: "msg_2", type: null },
      { type: "compaction_trigger" }
    ]
    assert.deepStrictEqual(itemsOf(input), [{ type: "message", ...question }, encrypted, call, output])
    const unread = itemsOf(input, { ...usual, encrypted: false })
    assert.deepStrictEqual(unread, [{ type: "message", ...question }, call, output])
  })

  it("gets ids of calls that its host takes, the same for a call and its result", () => {
    const call_id = `call_~sig~${"x".repeat(80)}`
    const [call, output] = [{ type: "function_call" }, { type: "function_call_output" }].map((item) => ({
      ...item,
      call_id
    }))
    const [first, second] = JSON.stringify(itemsOf([call, output])).match(/call_[a-zA-Z0-9]{24}(?=")/g) ?? []
    assert.isString(first)
    assert.strictEqual(first, second)
  })

  it("has the effort and the sampling that the model's rules left, and no dearer mode", () => {
    const reasoning = (given: object, more: Partial<ChatRequest> = {}, quirks = usual, options = {}): unknown =>
      Object(encode({ ...chatRequest, reasoning: given }, more, options, quirks)).reasoning
    assert.deepStrictEqual(reasoning({ effort: "xhigh", mode: "pro" }, { reasoningEffort: "high" }), { effort: "high" })
    assert.deepStrictEqual(reasoning({ effort: "low", summary: "auto" }), { summary: "auto" })
    assert.deepStrictEqual(reasoning({ effort: "none" }), { effort: "none" })
    assert.deepStrictEqual(reasoning({ effort: "none" }, {}, { ...usual, noEffort: false }), {})
    for (const effort of ["max", "minimal"]) {
      assert.deepStrictEqual(reasoning({ effort }, { reasoningEffort: "high" }), { effort: "high" })
    }
    const summed = { effort: "none", summary: "auto", generate_summary: "auto" }
    assert.deepStrictEqual(reasoning(summed, {}, { ...usual, summary: false }), { effort: "none" })
    assert.deepStrictEqual(reasoning(summed, {}, usual, { reasoning_summary: "none" }), { effort: "none" })
    const sampled = { ...chatRequest, temperature: 0.5, top_p: 0.9 }
    assert.deepStrictEqual<unknown>(encode(sampled), plain)
    assert.deepInclude(encode(sampled, { temperature: 0.5, topP: 0.9 }), { temperature: 0.5, top_p: 0.9 })
  })

  it("has a cache key that its host takes, and none where it takes none", () => {
    const cached = { ...chatRequest, prompt_cache_key: "k".repeat(500), prompt_cache_retention: "24h" }
    const { prompt_cache_key, prompt_cache_retention } = Object(encode(cached))
    assert.isAtMost(String(prompt_cache_key).length, 64)
    assert.strictEqual(prompt_cache_retention, "24h")
    const refusing = { ...usual, cacheKey: false, cacheRetention: false }
    assert.deepStrictEqual<unknown>(encode(cached, {}, {}, refusing), plain)
    assert.deepStrictEqual<unknown>(encode({ ...chatRequest, prompt_cache_key: 7 }), plain)
  })

  const { route } = callTo(openAiResponses, { decoder, rulesOf }, usual)({})
  const accepts = (item: unknown, options = {}) => {
    const given = { ...route, options }
    return native.accepts({ ...chatRequest, input: [item] }, given, decoder.of(given))
  }

  it("goes translated where its files are the operator's, or its host must not fetch what it names", () => {
    const message = (part: object) => ({ role: "user", content: [part] })
    const output = (part: object) => ({ type: "function_call_output", output: [part] })
    const passing = { inline_images: false }
    for (const wrap of [message, output]) {
      assert.isFalse(accepts(wrap({ type: "input_file", file_id: "file-1" }), passing))
      assert.isFalse(accepts(wrap({ type: "input_image", image_url: "https://a.test/a.png" })))
      assert.isFalse(accepts(wrap({ type: "input_file", file_url: "https://a.test/a.pdf" })))
      assert.isTrue(accepts(wrap({ type: "input_image", image_url: "https://a.test/a.png" }), passing))
      assert.isTrue(accepts(wrap({ type: "input_image", image_url: "data:image/png;base64,iVBO" })))
    }
    const screenshot = { type: "computer_screenshot", image_url: "http://10.0.0.1/a.png" }
    assert.isFalse(accepts({ type: "computer_call_output", output: screenshot }))
    assert.isTrue(accepts(message({ type: "input_text", text: "https://a.test" })))
    assert.isFalse(accepts(message({}), { native: false }))
  })

  it("may be any JSON: encoding never throws, and what costs extra never gets through", () => {
    const junk = fc.jsonValue()
    const some = fc.record({
      type: fc.constantFrom("mcp", "namespace", "additional_tools", "reasoning"),
      tools: fc.array(junk),
      id: junk
    })
    const dear = fc.constant({
      type: "additional_tools",
      tools: [{ type: "namespace", tools: [{ type: "mcp", server_url: "dear" }] }]
    })
    const value = fc.oneof(junk, fc.array(fc.oneof(junk, some, dear)))
    const names = ["input", "tools", "tool_choice", "reasoning", "max_output_tokens", "stream_options", "service_tier"]
    const body = fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] })
    fc.assert(
      fc.property(body, (given) => {
        native.accepts(given, route, decoder.of(route))
        const sent: Body = JSON.parse(JSON.stringify(encode(given)))
        assert.notProperty(sent, "service_tier")
        assert.notInclude(JSON.stringify(sent), '"server_url":"dear"')
        assert.deepInclude(sent, { model: "vendor/model-1", store: false, max_output_tokens: 64_000 })
      })
    )
  })
})

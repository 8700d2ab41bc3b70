import { FastCheck as fc } from "effect"
import { type ChatRequest, unsignedMark } from "../../../src/domain/Chat.ts"
import { options as decoder, rulesOf } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { native, nativeHeaders } from "../../../src/providers/anthropic/NativeMessages.ts"
import { billedParameters } from "../../../src/providers/chat/Messages.ts"
import { callTo } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { anthropic } from "./Wire.ts"

type Body = Readonly<Record<string, unknown>>

const callOf = callTo(anthropic, { decoder, rulesOf }, { thinking: true })
const question = { role: "user", content: "Weather in Bern?" }
const requestBody: Body = { model: "claude-nine", max_tokens: 64_000, messages: [question] }
const encode = (body: Body, request: Partial<ChatRequest> = {}, isStream = false) =>
  native.encode(callOf({ maxTokens: 64_000, ...request }, {}, isStream), body)
const plain = { model: "claude-model-1", max_tokens: 64_000, messages: [question] }

const tool = { name: "get_weather", input_schema: { type: "object" }, defer_loading: true }
const search = { type: "web_search_20260318", name: "web_search", allowed_domains: ["a.test"] }
const adaptive = { type: "adaptive" }
const budget = (budget_tokens: number) => ({ type: "enabled", budget_tokens })

describe("a body of the Messages dialect", () => {
  it("is sent as the client wrote it, but for the model and the cap", () => {
    const body = {
      ...requestBody,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        question,
        { role: "system", content: [{ type: "text", text: "Now in French.", of_tomorrow: 1 }] },
        { role: "assistant", content: "Soleil.", of_tomorrow: [null] }
      ],
      tools: [
        tool,
        { type: "bash_20250124", name: "bash" },
        { type: "custom", name: "b", input_schema: { type: "object" } }
      ],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      metadata: { user_id: "u" },
      temperature: 1,
      top_k: 5,
      stop_sequences: ["\n\n"],
      thinking: adaptive,
      output_config: { effort: "max", format: { type: "json_schema", schema: {} } },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      cache_control: { type: "ephemeral" },
      of_tomorrow: { a: [1, { b: null }] }
    }
    assert.deepStrictEqual<unknown>(encode(body, { maxTokens: 1000 }, true), {
      ...body,
      model: "claude-model-1",
      max_tokens: 1000,
      stream: true
    })
    assert.deepStrictEqual<unknown>(encode({ ...requestBody, stream: true }), plain)
  })

  it.each([
    "billing_policy",
    "compaction",
    "container",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "mcp_servers",
    ...billedParameters,
    "speed",
    "thread",
    "user_profile_id",
    "workspace_id"
  ])("loses %s, which costs extra or names what is the operator's", (field) => {
    for (const value of ["fast", [{ model: "dear" }], { skills: [] }]) {
      assert.deepStrictEqual<unknown>(encode({ ...requestBody, [field]: value }), plain)
    }
  })

  it("is marked for the cache where the route says so, and the client marked nothing", () => {
    const messages = [question, { role: "assistant", content: "a".repeat(5000) }, question]
    const call = callOf({ maxTokens: 64_000 }, { cache: "auto" })
    assert.include(JSON.stringify(native.encode(call, { ...requestBody, messages })), '"cache_control"')
    assert.notInclude(JSON.stringify(encode({ ...requestBody, messages })), '"cache_control"')
  })

  it("buys no priority", () => {
    assert.deepInclude(encode({ ...requestBody, service_tier: "auto" }), { service_tier: "standard_only" })
  })

  it.each([
    "code_execution_20260521",
    "web_fetch_20260318",
    "mcp_toolset",
    "advisor_20260301",
    "web_search_20260318",
    "of_tomorrow_20270101",
    "custom_of_tomorrow"
  ])("loses the tool %s, which no price covers, and the choice of it", (type) => {
    const dear = { type, name: "dear", mcp_server_name: "m" }
    const choice = { type: "tool", name: "dear" }
    assert.deepStrictEqual<unknown>(encode({ ...requestBody, tools: [dear], tool_choice: choice }), plain)
    const beside = encode({ ...requestBody, tools: [dear, tool], tool_choice: choice })
    assert.deepStrictEqual<unknown>(beside, { ...plain, tools: [tool] })
    const offered = encode({ ...requestBody, tools: [dear, tool], tool_choice: { type: "any" } })
    assert.deepStrictEqual<unknown>(offered, { ...plain, tools: [tool], tool_choice: { type: "any" } })
    const added = {
      role: "user",
      content: [{ type: "tool_addition", tool: { type: "tool_definition", definition: dear } }]
    }
    assert.deepStrictEqual<unknown>(encode({ ...requestBody, messages: [question, added] }), plain)
  })

  it("keeps its search where the route searches, as often as the hold covers", () => {
    const searching = { webSearch: true, maxWebSearches: 5 }
    const sent = (max_uses: unknown) => encode({ ...requestBody, tools: [{ ...search, max_uses }] }, searching)
    for (const endless of [undefined, null, 0, -1, "many", 6, 1e9]) {
      assert.deepInclude(sent(endless), { tools: [{ ...search, max_uses: 5 }] })
    }
    assert.deepInclude(sent(2), { tools: [{ ...search, max_uses: 2 }] })
    const twice = [search, tool, { ...search, type: "web_search_20250305" }]
    const once = [{ ...search, max_uses: 5 }, tool]
    assert.deepInclude(encode({ ...requestBody, tools: twice }, searching), { tools: once })
  })

  it("keeps what edits its context, but no compaction, which usage does not count", () => {
    const edits = [{ type: "clear_tool_uses_20250919" }, { type: "compact_20260112" }]
    const kept = encode({ ...requestBody, context_management: { edits } })
    assert.deepStrictEqual<unknown>(kept, { ...plain, context_management: { edits: edits.slice(0, 1) } })
    assert.deepStrictEqual<unknown>(encode({ ...requestBody, context_management: { edits: edits.slice(1) } }), plain)
    const content = [{ type: "compaction", content: "So far.", tool_changes: [{ type: "tool_addition" }] }]
    const compacted = encode({ ...requestBody, messages: [{ role: "assistant", content }] })
    assert.deepInclude(compacted, {
      messages: [{ role: "assistant", content: [{ type: "compaction", content: "So far." }] }]
    })
  })

  it("keeps thinking that its host has signed, and loses what another route thought", () => {
    const signed = { type: "thinking", thinking: "Hm.", signature: "EqQB" }
    const own = { type: "thinking", thinking: "Hm?", signature: unsignedMark }
    const redacted = { type: "redacted_thinking", data: "x" }
    const assistant = (...content: ReadonlyArray<object>) => ({ role: "assistant", content })
    const text = { type: "text", text: "Sunny." }
    const messages = [question, assistant(signed, redacted, text), question, assistant(own, text), assistant(own)]
    assert.deepInclude(encode({ ...requestBody, messages }), {
      messages: [question, assistant(signed, redacted, text), question, assistant(text)]
    })
  })

  it("has the effort that the model's rules left", () => {
    const config = (effort: string, fitted: "high" | "none" | undefined): unknown => {
      const body = { ...requestBody, output_config: { effort, format: { type: "json_schema" } } }
      return Object(
        encode(body, { native: { dialect: "messages", body, headers: {}, extraTokens: 0, effort: fitted } })
      ).output_config
    }
    const format = { type: "json_schema" }
    assert.deepStrictEqual(config("max", undefined), { effort: "max", format })
    assert.deepStrictEqual(config("max", "high"), { effort: "high", format })
    assert.deepStrictEqual(config("low", "none"), { format })
  })

  it("has its texts under their own name, and no sources that another route named", () => {
    const theirs = { type: "web_search_result_location", url: "https://a.test/", encrypted_index: "EqQB" }
    const ours = { ...theirs, encrypted_index: unsignedMark }
    const text = { type: "text", text: "Sunny." }
    const assistant = (...content: ReadonlyArray<object>) => ({ role: "assistant", content })
    const result = (...content: ReadonlyArray<object>) => ({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content }]
    })
    const messages = [
      { role: "user", content: [{ ...text, type: "input_text" }] },
      assistant(
        { ...text, citations: [theirs] },
        { ...text, citations: [theirs, ours] },
        { ...text, citations: [ours] }
      ),
      assistant(text, { type: "text", text: "", citations: [ours] }),
      result({ ...text, type: "output_text" }, { type: "tool_reference", tool_name: "f" })
    ]
    assert.deepInclude(encode({ ...requestBody, messages, system: [{ ...text, type: "input_text" }] }), {
      messages: [
        { role: "user", content: [text] },
        assistant({ ...text, citations: [theirs] }, { ...text, citations: [theirs] }, text),
        assistant(text),
        result(text, { type: "tool_reference", tool_name: "f" })
      ],
      system: [text]
    })
  })

  it("gets ids of calls that its host takes, the same for a call and its result", () => {
    const turns = (id: string) => [
      { role: "assistant", content: [{ type: "tool_use", id, name: "now", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "3 pm" }] }
    ]
    assert.deepInclude(encode({ ...requestBody, messages: turns("toolu_01") }), { messages: turns("toolu_01") })
    for (const id of ["call~sig~x", `call_${"x".repeat(80)}`]) {
      const text = JSON.stringify(encode({ ...requestBody, messages: turns(id) }))
      const [call, result] = text.match(/call_[\w-]+/g) ?? []
      assert.strictEqual(call, result)
      assert.notInclude(text, id)
    }
  })

  it.each([
    ["a budget that the cap leaves room for", budget(2000), 64_000, 3000, budget(2000)],
    ["a budget above a lowered cap", budget(32_000), 64_000, 8192, budget(7680)],
    ["a budget at a lowered cap", budget(8192), 64_000, 8192, budget(7680)],
    ["no thinking where the cap is too low for a budget", budget(32_000), 64_000, 1535, undefined],
    ["the least budget", budget(32_000), 64_000, 1536, budget(1024)],
    ["a budget of the client's own making, which its host may take", budget(9000), 8000, 8000, budget(9000)],
    ["a budget without a cap of the client's", budget(9000), undefined, 8000, budget(7488)],
    ["thinking without a budget", adaptive, 64_000, 1024, adaptive]
  ])("has %s", (_, thinking, max_tokens, maxTokens, expected) => {
    const edits = [{ type: "clear_thinking_20251015" }]
    const body = { ...requestBody, max_tokens, thinking, context_management: { edits } }
    const { context_management, thinking: sent } = Object(encode(body, { maxTokens }))
    assert.deepStrictEqual([sent, context_management], [expected, expected && { edits }])
  })

  it("is sent with its version, and with its betas in header and body that are harmless", () => {
    const headersOf = (headers: Readonly<Record<string, string>>, body = {}) => {
      const given = { dialect: "messages", body: { ...requestBody, ...body }, headers, extraTokens: 0 } as const
      return nativeHeaders({ ...callOf({}, { version: "2023-06-01" }), native: given })
    }
    const given = { "anthropic-beta": "Interleaved-Thinking-2025-05-14, of-tomorrow", cookie: "c" }
    assert.deepStrictEqual(
      headersOf({ ...given, "anthropic-version": "2026-10-21" }, { betas: ["effort-2025-11-24"] }),
      {
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "interleaved-thinking-2025-05-14,effort-2025-11-24"
      }
    )
    const usual = { "anthropic-version": "2023-06-01" }
    assert.deepStrictEqual(headersOf({ "anthropic-beta": "context-1m-2025-08-07,", "anthropic-version": "new" }), usual)
    assert.deepStrictEqual(headersOf({}, { betas: [7, { a: 1 }], anthropic_beta: ["effort-2025-11-24"] }), usual)
    assert.deepStrictEqual(nativeHeaders(callOf({})), usual)
    assert.notProperty(encode({ ...requestBody, betas: ["effort-2025-11-24"], anthropic_beta: ["x"] }), "betas")
    assert.notProperty(
      encode({ ...requestBody, betas: ["effort-2025-11-24"], anthropic_beta: ["x"] }),
      "anthropic_beta"
    )
  })

  const { route } = callOf({})
  const accepts = (content: unknown, options = {}) => {
    const given = { ...route, options }
    return native.accepts({ ...requestBody, messages: [{ role: "user", content }] }, given, decoder.of(given))
  }
  const source = (type: string) => ({ type: "document", source: { type, url: "https://a.test/a.pdf", file_id: "f" } })

  it("goes translated where its files are the operator's, or its host must not fetch what it names", () => {
    const result = (block: object) => [{ type: "tool_result", tool_use_id: "t", content: [block] }]
    const found = (content: object) => [{ type: "web_fetch_tool_result", content: { type: "found", content } }]
    for (const wrap of [(block: object) => [block], result, found]) {
      assert.isFalse(accepts(wrap(source("file")), { inline_images: false }))
      assert.isFalse(accepts(wrap({ type: "container_upload", file_id: "f" }), { inline_images: false }))
      assert.isFalse(accepts(wrap(source("url"))))
      assert.isTrue(accepts(wrap(source("url")), { inline_images: false }))
      assert.isTrue(accepts(wrap(source("base64"))))
    }
    assert.isTrue(accepts([{ type: "tool_use", input: { source: { type: "file", file_id: "f" } } }]))
    assert.isTrue(accepts("text"))
    assert.isFalse(accepts("text", { native: false }))
  })

  it("may be any JSON: encoding never throws, and what costs extra never gets through", () => {
    const junk = fc.jsonValue()
    const body = fc.record(
      Object.fromEntries(
        ["messages", "system", "tools", "tool_choice", "thinking", "context_management", "max_tokens", "speed"].map(
          (name) => [
            name,
            fc.oneof(
              junk,
              fc.array(
                fc.record({ type: fc.constantFrom("tool_use", "thinking", "mcp_toolset"), content: junk, tool: junk })
              )
            )
          ]
        )
      ),
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(body, (given) => {
        native.accepts(given, route, decoder.of(route))
        const sent: Body = JSON.parse(JSON.stringify(encode(given)))
        assert.notProperty(sent, "speed")
        assert.notInclude(JSON.stringify(sent["tools"] ?? null), "mcp_toolset")
        assert.deepInclude(sent, { model: "claude-model-1", max_tokens: 64_000 })
      })
    )
  })
})

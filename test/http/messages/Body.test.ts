import { type ToolChoice, unsignedMark } from "../../../src/domain/Chat.ts"
import { explainReference, referenceProblems, unusableReference } from "../../../src/domain/Media.ts"
import type { ReasoningEffort } from "../../../src/domain/Model.ts"
import { decodeMessagesBody } from "../../../src/http/messages/MessagesBody.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { agreeing, judging, type Words } from "../openapi/Published.ts"

const headers = { "anthropic-beta": "one,two", "anthropic-version": "2023-06-01", "x-api-key": "secret" }
const decode = (body: unknown) => decodeMessagesBody(body, headers)
const { refusal, taken: decodeBody } = agreeing({ json: "MessagesRequest" }, decode)
const { refusal: judged } = judging(decode)

const base = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] }
const user = (...content: ReadonlyArray<unknown>) => ({ ...base, messages: [{ role: "user", content }] })
const call = { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" } }
const turns = (...messages: ReadonlyArray<unknown>) => ({ ...base, messages: [...base.messages, ...messages] })
const withTurn = (role: string, content: unknown) => turns({ role, content })
/** The path of a message's first block. */
const first = (message: number) => `messages.${message}.content.0`
const withToolResult = (result: object) =>
  turns(
    { role: "assistant", content: [call] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", ...result }] }
  )
const png = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } }
const pngPart = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } } as const
const schema = { type: "object", properties: { path: { type: "string" } } }
const read = { name: "read", input_schema: schema }
const cached = { cache_control: { type: "ephemeral", ttl: "1h" } } as const

describe("a body of the Messages API", () => {
  it("is kept whole beside its translation, with what the host has to know", () => {
    const body = { ...base, top_k: 5, context_management: { edits: [] } }
    const { native } = decodeBody(body)
    assert.deepStrictEqual(native, {
      dialect: "messages",
      body,
      headers: { "anthropic-beta": "one,two", "anthropic-version": "2023-06-01" },
      extraTokens: 0,
      effort: undefined,
      nativeOnly: undefined
    })
  })

  it("has a cap that is lowered and never refused, and none where it names none", () => {
    const { max_tokens: _, ...uncapped } = base
    assert.deepInclude(decodeBody(base), { maxTokens: 100, hasDefaultMaxTokens: true })
    assert.deepInclude(decodeBody(uncapped), { maxTokens: Number.MAX_SAFE_INTEGER, hasDefaultMaxTokens: true })
  })

  it("may say its system prompt in a text, in blocks, and in the middle of the conversation", () => {
    assert.deepStrictEqual(decodeBody({ ...base, system: "Be brief." }).messages[0], {
      role: "system",
      content: "Be brief."
    })
    const blocks = { ...base, system: [{ type: "text", text: "Be brief.", ...cached }] }
    assert.deepStrictEqual(decodeBody(blocks).messages[0], {
      role: "system",
      content: [{ type: "text", text: "Be brief.", ...cached }]
    })
    const { messages } = decodeBody(withTurn("system", "Now be long."))
    assert.deepStrictEqual(messages.at(-1), { role: "system", content: "Now be long." })
  })

  it("hands over pictures, marks, search results and documents of text", () => {
    const { messages, native } = decodeBody(
      user(
        { type: "text", text: "a", ...cached },
        png,
        { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
        { type: "document", title: "T", source: { type: "text", media_type: "text/plain", data: "b" } },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "c" }, png] } },
        { type: "search_result", source: "https://x.test", title: "S", content: [{ type: "text", text: "d" }] }
      )
    )
    assert.deepStrictEqual(messages, [
      {
        role: "user",
        content: [
          { type: "text", text: "a", ...cached },
          pngPart,
          { type: "image_url", image_url: { url: "https://x.test/a.png" } },
          { type: "text", text: "T\nb" },
          { type: "text", text: "c" },
          pngPart,
          { type: "text", text: "S\nhttps://x.test\n" },
          { type: "text", text: "d" }
        ]
      }
    ])
    assert.deepInclude(native, { extraTokens: 0, nativeOnly: undefined })
  })

  it("leaves a PDF to routes that speak the API, and holds the whole context for it", () => {
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } }
    assert.deepInclude(decodeBody(user(pdf)).native, {
      extraTokens: Number.POSITIVE_INFINITY,
      nativeOnly: { param: "messages", what: "Document input" }
    })
  })

  it("leaves unknown blocks to such routes, and counts their bytes", () => {
    const block = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "Grüß" } }
    const { messages, native } = decodeBody(withTurn("assistant", [{ type: "text", text: "x" }, block]))
    assert.deepStrictEqual(messages.at(-1), { role: "assistant", content: [{ type: "text", text: "x" }] })
    assert.deepInclude(native, { extraTokens: Buffer.byteLength(JSON.stringify(block)), nativeOnly: undefined })
  })

  it.each<[what: string, body: object]>([
    ["in a user's turn", user({ type: "text", text: "x" }, { type: "hologram", data: "y" })],
    ["in a tool's result", withToolResult({ content: [{ type: "hologram", data: "y" }] })],
    [
      "in a document",
      user({ type: "document", source: { type: "content", content: [{ type: "hologram", data: "y" }] } })
    ],
    ["in an assistant's turn", withTurn("assistant", [{ type: "hologram", data: "y" }])]
  ])("leaves a block of an unknown type %s to routes that speak the API", (_, body) => {
    const { native } = decodeBody(body)
    assert.deepStrictEqual(native?.nativeOnly, { param: "messages", what: "The content block `hologram`" })
    assert.isAbove(native?.extraTokens ?? 0, 0)
  })

  it("has texts under the names of other dialects, and tools that a search found by their names", () => {
    const inputText = { type: "input_text", text: "a", ...cached }
    const outputText = { type: "output_text", text: "b" }
    const [a, b] = [
      { type: "text", text: "a", ...cached },
      { type: "text", text: "b" }
    ]
    const { messages, native } = decodeBody(user(inputText, outputText))
    assert.deepStrictEqual<unknown>(messages, [{ role: "user", content: [a, b] }])
    assert.isUndefined(native?.nativeOnly)
    assert.deepInclude(Object(decodeBody({ ...base, system: [inputText] }).messages[0]), { content: [a] })
    assert.deepInclude(Object(decodeBody(withTurn("assistant", [outputText])).messages.at(-1)), { content: [b] })
    const conversation = decodeBody(
      withToolResult({ content: [inputText, { type: "tool_reference", tool_name: "read" }] })
    )
    assert.deepInclude(Object(conversation.messages[2]), { content: [a, { type: "text", text: "read" }] })
    assert.isUndefined(conversation.native?.nativeOnly)
  })

  it("goes on without what a host's own tools left, and with its summary", () => {
    const content = [
      { type: "compaction", content: "So far." },
      { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
      { type: "web_search_tool_result", tool_use_id: "s1", content: [{ type: "web_search_result", url: "u" }] },
      { type: "mcp_tool_use", id: "m1", name: "x", server_name: "y", input: {} },
      { type: "mcp_tool_result", tool_use_id: "m1", content: [] },
      { type: "redacted_thinking", data: "x" },
      { type: "text", text: "Yes." }
    ]
    const { messages, native } = decodeBody(withTurn("assistant", content))
    const text = (words: string) => ({ type: "text", text: words })
    assert.deepStrictEqual<unknown>(messages.at(-1), { role: "assistant", content: [text("So far."), text("Yes.")] })
    assert.isUndefined(native?.nativeOnly)
  })

  it("keeps the effort that it names beside its own body", () => {
    const effort = (output_config: object) => decodeBody({ ...base, output_config }).native?.effort
    assert.deepStrictEqual(
      [effort({ effort: "max" }), effort({ effort: "low" }), effort({})],
      ["xhigh", "low", undefined]
    )
  })

  it("turns a tool's result into a message of its own, its pictures into the user's", () => {
    const result = { content: [{ type: "text", text: "1" }, { type: "text", text: "2" }, png], ...cached }
    const { messages } = decodeBody(withToolResult(result))
    assert.deepStrictEqual(messages.slice(1), [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "toolu_1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }]
      },
      {
        role: "tool",
        tool_call_id: "toolu_1",
        content: [
          { type: "text", text: "1" },
          { type: "text", text: "2" }
        ],
        ...cached
      },
      { role: "user", content: [pngPart] }
    ])
    assert.deepInclude(decodeBody(withToolResult({ content: "fine" })).messages[2], { content: "fine" })
    assert.deepInclude(decodeBody(withToolResult({})).messages[2], { content: "" })
    assert.deepInclude(decodeBody(withToolResult({ is_error: true })).messages[2], { content: "Error:" })
    assert.deepInclude(decodeBody(withToolResult({ content: "no file", is_error: true })).messages[2], {
      content: [
        { type: "text", text: "Error:" },
        { type: "text", text: "no file" }
      ]
    })
  })

  it("hands over thinking, and counts the signatures of hosts", () => {
    const content = [
      { type: "thinking", thinking: "Hm, ", signature: "abcdef" },
      { type: "thinking", thinking: "yes.", signature: unsignedMark },
      { type: "redacted_thinking", data: "xyz" },
      { type: "text", text: "Yes." }
    ]
    const { messages, native } = decodeBody(withTurn("assistant", content))
    assert.deepInclude(messages.at(-1), { reasoning_content: "Hm, yes.", content: [{ type: "text", text: "Yes." }] })
    assert.strictEqual(native?.extraTokens, 6 + JSON.stringify(content[2]).length)
  })

  it("takes the signature of a call out of its id", () => {
    const signed = { ...call, id: "toolu_1~sig~c2ln" }
    const result = { type: "tool_result", tool_use_id: "toolu_1~sig~c2ln", content: "1" }
    const { messages } = decodeBody(
      turns({ role: "assistant", content: [signed] }, { role: "user", content: [result] })
    )
    assert.deepInclude(messages[1], {
      tool_calls: [
        { id: "toolu_1", signature: "c2ln", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }
      ]
    })
    assert.deepInclude(messages[2], { tool_call_id: "toolu_1" })
  })

  it("translates custom tools, and of the others only the search", () => {
    const { native, tools, webSearch } = decodeBody({
      ...base,
      tools: [
        { type: "custom", description: "Reads.", strict: true, ...read, ...cached },
        { type: "web_search_20250305", name: "web_search", max_uses: 5 },
        { type: "tool_search_tool_regex_20251119", name: "tool_search" }
      ]
    })
    assert.deepStrictEqual(tools, [
      {
        type: "function",
        function: { name: "read", description: "Reads.", parameters: schema, strict: true },
        ...cached
      }
    ])
    assert.isTrue(webSearch)
    assert.isUndefined(native?.nativeOnly)
    assert.isAtLeast(native?.extraTokens ?? 0, 1_000)
  })

  it.each(["bash_20250124", "text_editor_20250728", "memory_20250818", "computer_toolset_20260801"])(
    "leaves the client's tool %s to routes that speak the API",
    (type) => {
      assert.deepInclude(decodeBody({ ...base, tools: [{ type, name: "own" }] }).native, {
        nativeOnly: { param: "tools", what: `The tool \`${type}\`` }
      })
    }
  )

  it.each<[object, ToolChoice, boolean | undefined]>([
    [{ type: "auto" }, "auto", undefined],
    [{ type: "any" }, "required", undefined],
    [{ type: "none" }, "none", undefined],
    [{ type: "auto", disable_parallel_tool_use: true }, "auto", false],
    [{ type: "tool", name: "read" }, { type: "function", function: { name: "read" } }, undefined]
  ])("translates the choice %j", (tool_choice, toolChoice, parallelToolCalls) => {
    assert.deepInclude(decodeBody({ ...base, tools: [read], tool_choice }), { toolChoice, parallelToolCalls })
  })

  it.each<[object, ReasoningEffort | undefined]>([
    [{}, undefined],
    [{ thinking: { type: "disabled" }, output_config: { effort: "high" } }, undefined],
    [{ output_config: { effort: "high" } }, undefined],
    [{ thinking: { type: "adaptive" } }, "high"],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "low" } }, "low"],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "max" } }, "xhigh"],
    [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, "low"],
    [{ thinking: { type: "enabled", budget_tokens: 10_000 } }, "medium"],
    [{ thinking: { type: "enabled", budget_tokens: 32_000 } }, "high"]
  ])("reads %j as effort %s, a hint", (more, reasoningEffort) => {
    assert.deepInclude(decodeBody({ ...base, ...more }), { reasoningEffort, isEffortHint: true })
  })

  it("reads a format in its newer and its older place", () => {
    const format = { type: "json_schema", schema }
    const expected = { type: "json_schema", json_schema: { name: "response", schema, strict: true } } as const
    assert.deepStrictEqual(decodeBody({ ...base, output_config: { format } }).responseFormat, expected)
    assert.deepStrictEqual(decodeBody({ ...base, output_format: format }).responseFormat, expected)
  })

  it("marks its last block where the whole request is marked", () => {
    assert.deepStrictEqual(decodeBody({ ...base, ...cached }).messages.at(-1), {
      role: "user",
      content: "hi",
      ...cached
    })
  })

  /** A message begins with the path of what is wrong, and `param` is the path's first name. */
  it.each<[what: string, body: unknown, message: string]>([
    ["is a list", [], "The body must be a JSON object."],
    ["has no model", { messages: base.messages }, "`model` is required."],
    ["has no messages", { model: "m" }, "`messages` is required and must be a non-empty array."],
    ["has a cap of zero", { ...base, max_tokens: 0 }, "max_tokens: must be an integer of at least 1."],
    ["has a wrong role", withTurn("tool", "x"), "messages.1.role: must be one of user, assistant, system."],
    [
      "has a picture by the model",
      withTurn("assistant", [png]),
      `${first(1)}.type: must not be the type of a user's block.`
    ],
    ["has an empty turn", user(), "messages.0.content: must not be empty."],
    ["has a number for a text", user({ type: "text", text: 1 }), `${first(0)}.text: must be a string.`],
    ["has a block without a type", user({}), `${first(0)}.type: is required and must be a string.`],
    [
      "has a stored file",
      user({ type: "image", source: { type: "file", file_id: "file_1" } }),
      `${first(0)}.source.type: must be base64 or url: the gateway stores no files.`
    ],
    [
      "has a document behind a URL",
      user({ type: "document", source: { type: "url", url: "https://x.test/a.pdf" } }),
      `${first(0)}.source.type: must be base64 or text: the gateway stores no files.`
    ],
    [
      "has a tool without a schema",
      { ...base, tools: [{ name: "read" }] },
      "tools.0.input_schema: is required and must be an object."
    ],
    [
      "has a wrong choice",
      { ...base, tools: [read], tool_choice: { type: "some" } },
      "tool_choice.type: must be one of auto, any, tool, none."
    ],
    ["has a system picture", { ...base, system: [png] }, "system.0.type: must be text, not `image`."],
    ["has hot air", { ...base, temperature: 1.5 }, "temperature: must be a number from 0 to 1."]
  ])("is refused where it %s", (_, body, message) => {
    const param = /^`?(\w+)[.:`]/.exec(message)?.[1] ?? null
    assert.deepStrictEqual(refusal(body), ["InvalidRequest", param, message])
  })

  it.each<[what: string, body: unknown, words: Words]>([
    [
      "answers no call",
      withToolResult({ tool_use_id: "toolu_2" }),
      `${first(2)}.tool_use_id: must match a \`tool_use\` block in an earlier assistant message.`
    ],
    ["chooses what it does not have", { ...base, tool_choice: { type: "any" } }, "tool_choice: needs `tools`."],
    [
      "chooses an unknown tool",
      { ...base, tools: [read], tool_choice: { type: "tool", name: "write" } },
      "tool_choice.name: must name one of `tools`."
    ],
    [
      "has no picture in a picture",
      user({ ...png, source: { type: "url", url: "ftp://x" } }),
      [unusableReference, explainReference(referenceProblems.neitherUrl, "The image of `messages.0.content.0`")]
    ]
  ])("is refused where it %s, which JSON Schema cannot express", (_, body, words) => {
    assert.deepStrictEqual(judged(body).slice(2), [words].flat())
  })
})

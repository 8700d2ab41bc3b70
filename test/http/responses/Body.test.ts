import { unsignedMark } from "../../../src/domain/Chat.ts"
import { explainReference, referenceProblems } from "../../../src/domain/Media.ts"
import { decodeResponsesBody } from "../../../src/http/responses/ResponsesBody.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { agreeing } from "../openapi/Published.ts"

const { refusal, taken: decodeBody } = agreeing({ json: "ResponsesRequest" }, decodeResponsesBody)

const png = "data:image/png;base64,iVBORw0KGgo="
const body = (more: object) => ({ model: "m", input: "hi", ...more })
const items = (...input: ReadonlyArray<unknown>) => ({ model: "m", input })
const user = { role: "user", content: "hi" }
const image = (more: object = {}) => ({ type: "input_image", image_url: png, ...more })
const messagesOf = (...input: ReadonlyArray<unknown>) => decodeBody(items(...input)).messages
const call = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "f",
  arguments: "{}",
  ...more
})
const output = (call_id: string, given: unknown = "1") => ({ type: "function_call_output", call_id, output: given })
const tool = (name: string, more: object = {}) => ({ type: "function", name, ...more })

describe("a body of the Responses convention", () => {
  it("is read as a chat that is capped by the model alone", () => {
    const json = body({ instructions: "Be kind.", stream: true, temperature: 0.5, top_p: 0.9, prompt_cache_key: "k" })
    assert.deepInclude(decodeBody(json), {
      model: "m",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "hi" }
      ],
      native: { dialect: "responses", body: json, headers: {}, extraTokens: 0, nativeOnly: undefined },
      stream: true,
      maxTokens: Number.MAX_SAFE_INTEGER,
      hasDefaultMaxTokens: true,
      temperature: 0.5,
      topP: 0.9,
      promptCacheKey: "k"
    })
    assert.deepInclude(decodeBody(body({ max_output_tokens: 5 })), { maxTokens: 5, hasDefaultMaxTokens: true })
  })

  it.each([
    ["none", undefined],
    [null, undefined],
    ["minimal", "low"],
    ["xhigh", "xhigh"],
    ["max", "xhigh"]
  ] as const)("may wish for the effort %s", (effort, reasoningEffort) => {
    assert.deepInclude(decodeBody(body({ reasoning: { effort, summary: "auto" } })), {
      reasoningEffort,
      isEffortHint: true
    })
  })

  it("may ask for JSON", () => {
    const schema = { type: "object" }
    assert.isUndefined(decodeBody(body({ text: { format: { type: "text" }, verbosity: "low" } })).responseFormat)
    const format = { type: "json_schema", name: "n", schema, strict: true }
    assert.deepStrictEqual(decodeBody(body({ text: { format } })).responseFormat, {
      type: "json_schema",
      json_schema: { name: "n", schema, strict: true }
    })
    assert.deepStrictEqual(decodeBody(body({ text: { format: { type: "json_object" } } })).responseFormat, {
      type: "json_object"
    })
  })

  it.each<[object, string, string]>([
    [{ model: "m" }, "input", "`input` is required and must be a string or an array of items."],
    [items(), "input", "`input` must contain at least one message."],
    [body({ previous_response_id: "r" }), "previous_response_id", "is not supported: send the whole conversation"],
    [body({ conversation: { id: "c" } }), "conversation", "is not supported: send the whole conversation"],
    [body({ prompt: { id: "p" } }), "prompt", "is not supported: send its text in `input`."],
    [body({ background: true }), "background", "must be false: the gateway stores no responses."],
    [body({ metadata: { a: 1 } }), "metadata", "`metadata"],
    [body({ metadata: { a: "x".repeat(513) } }), "metadata", "`metadata"],
    [
      body({ metadata: Object.fromEntries(Array.from("abcdefghijklmnopq", (key) => [key, ""])) }),
      "metadata",
      "at most 16"
    ],
    [body({ max_output_tokens: 0 }), "max_output_tokens", "must be an integer of at least 1."],
    [body({ reasoning: { effort: "huge" } }), "reasoning", "must be one of none, minimal, low"],
    [body({ text: { format: { type: "xml" } } }), "text", "must be one of text, json_object, json_schema."],
    [items({ role: "critic", content: "hi" }), "input", "`input[0].role` must be one of system"],
    [items({ role: "user", content: [{ type: "input_file", file_id: "f" }] }), "input", "`input[0].content[0].type`"],
    [items({ role: "user", content: [image({ image_url: null, file_id: "f" })] }), "input", "is not supported"],
    [
      items({ role: "user", content: [image({ image_url: "ftp://x" })] }),
      "input",
      explainReference(referenceProblems.neitherUrl, "The image of `input[0].content[0]`")
    ],
    [
      items({ role: "system", content: [image()] }),
      "input",
      "`input[0].content[0].type` must be input_text, not `input_image`."
    ],
    [items(user, output("c")), "input", "`input[1].call_id` must match a tool call earlier in `input`."],
    [items(user, { type: "item_reference", id: "msg_1" }), "input", "`input[1]` refers to a stored item"],
    [items(user, 1), "input", "`input[1]` must be an object."],
    [body({ tools: [tool("a b")] }), "accepted", ""],
    [body({ tools: [{ type: "function" }] }), "tools", "`tools[0].name` is required"],
    [body({ tools: [{ name: "f" }] }), "tools", "`tools[0].type` is required"],
    [body({ tool_choice: "required" }), "tool_choice", "`tool_choice` needs `tools`."],
    [body({ tools: [tool("f")], tool_choice: { type: "custom", name: "g" } }), "tool_choice", "must name one of"]
  ])("is judged: %j", (json, param, message) => {
    const judged = refusal(json)
    if (param === "accepted") return assert.strictEqual(judged, "accepted")
    assert.strictEqual(judged[1], param)
    return assert.include([judged].flat().slice(2).join(" "), message)
  })
})

describe("the items of an input", () => {
  it("become messages: an assistant's turn is one", () => {
    const conversation = messagesOf(
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Be kind." }] },
      { role: "user", content: [{ type: "input_text", text: "Look" }, image({ detail: "original" })] },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Hm." }],
        encrypted_content: unsignedMark
      },
      { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "One moment." }] },
      call("c1~sig~secret"),
      { type: "custom_tool_call", call_id: "c2", name: "patch", input: 'say "hi"' },
      output("c1~sig~secret"),
      { type: "custom_tool_call_output", call_id: "c2", output: [{ type: "input_text", text: "done" }] },
      { role: "assistant", content: "Ready." }
    )
    assert.deepStrictEqual(conversation, [
      { role: "system", content: [{ type: "text", text: "Be kind." }] },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: png, detail: "high" } }
        ]
      },
      {
        role: "assistant",
        content: "One moment.",
        reasoning_content: "Hm.",
        tool_calls: [
          { id: "c1", signature: "secret", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "c2", type: "function", function: { name: "patch", arguments: '{"input":"say \\"hi\\""}' } }
        ]
      },
      { role: "tool", tool_call_id: "c1", content: "1" },
      { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "done" }] },
      { role: "assistant", content: "Ready." }
    ])
  })

  it("show a tool's pictures after all results, as a user's", () => {
    const parts = [{ type: "input_text", text: "here" }, image()]
    const conversation = messagesOf(
      user,
      call("c1"),
      call("c2"),
      output("c1", parts),
      output("c2", [image()]),
      call("c3")
    )
    assert.deepStrictEqual(
      conversation.map(({ content, role }) => [role, content?.length]),
      [
        ["user", 2],
        ["assistant", undefined],
        ["tool", 1],
        ["tool", 29],
        ["user", 2],
        ["assistant", undefined]
      ]
    )
  })

  it("that only a host understands are counted by their bytes and left out", () => {
    const encrypted = "x".repeat(1_000)
    const { messages, native } = decodeBody(
      items(
        user,
        { type: "reasoning", summary: [], encrypted_content: encrypted },
        { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
        { type: "item_reference", id: "rs_1" }
      )
    )
    assert.deepStrictEqual(messages, [{ role: "user", content: "hi" }])
    assert.isAtLeast(native?.extraTokens ?? 0, 1_050)
    assert.isAtMost(native?.extraTokens ?? 0, 1_150)
    const original = decodeBody(items({ role: "user", content: [image({ detail: "original" })] }))
    assert.strictEqual(original.native?.extraTokens, 16_384)
    assert.isUndefined(native?.nativeOnly)
  })

  it("of tools that run at the client become calls and results", () => {
    const { messages, native } = decodeBody(
      items(
        user,
        { type: "local_shell_call", call_id: "1", action: { type: "exec", command: ["ls"] } },
        { type: "function_call_output", call_id: "1", output: "a.txt" },
        { type: "shell_call", call_id: "2", action: { commands: ["pwd"] } },
        { type: "shell_call_output", call_id: "2", output: [{ stdout: "/" }] },
        { type: "apply_patch_call", call_id: "3", operation: { type: "delete_file", path: "a" } },
        { type: "apply_patch_call_output", call_id: "3", status: "completed" }
      )
    )
    const call = (id: string, name: string, text: string) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name, arguments: text } }]
    })
    const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content })
    assert.deepStrictEqual<unknown>(messages.slice(1), [
      call("1", "local_shell", '{"type":"exec","command":["ls"]}'),
      result("1", "a.txt"),
      call("2", "shell", '{"commands":["pwd"]}'),
      result("2", '[{"stdout":"/"}]'),
      call("3", "apply_patch", '{"type":"delete_file","path":"a"}'),
      result("3", "completed")
    ])
    assert.isUndefined(native?.nativeOnly)
  })

  it.each(["of_tomorrow", "computer_call_output", "compaction"])(
    "of the type %s are left to routes that speak the convention",
    (type) => {
      const { native } = decodeBody(items(user, { type, content: "x" }))
      assert.deepStrictEqual(native?.nativeOnly, { param: "messages", what: `The item \`${type}\`` })
    }
  )
})

describe("the tools of a body", () => {
  it("become functions, and those of a namespace get its name", () => {
    const { tools, webSearch, isWebSearchHint } = decodeBody({
      ...items(user, { type: "additional_tools", role: "developer", tools: [tool("late"), tool("f")] }),
      tools: [
        tool("f", { description: "d", parameters: { type: "object" }, strict: true }),
        {
          type: "custom",
          name: "patch",
          description: "Edits.",
          format: { type: "grammar", syntax: "lark", definition: "start: x" }
        },
        {
          type: "namespace",
          name: "agents",
          description: "n",
          tools: [tool("spawn"), { type: "custom", name: "say" }]
        },
        { type: "namespace", name: "mcp__x__", tools: [tool("y".repeat(80))] },
        { type: "tool_search", execution: "client" },
        { type: "web_search", external_web_access: false }
      ]
    })
    assert.deepStrictEqual(
      tools.map(({ function: { name } }) => name.replace(/[0-9a-f]{8}$/, "#")),
      ["f", "patch", "agents__spawn", "agents__say", `mcp__x__${"y".repeat(47)}_#`, "late"]
    )
    assert.deepStrictEqual(tools[0]?.function, {
      name: "f",
      description: "d",
      strict: true,
      parameters: { type: "object" }
    })
    assert.match(tools[1]?.function.description ?? "", /^Edits\.\n\n.* lark grammar:\nstart: x$/)
    assert.deepStrictEqual(Object.keys(Object(tools[1]?.function.parameters?.properties)), ["input"])
    assert.deepStrictEqual([webSearch, isWebSearchHint], [true, true])
  })

  it("are two where two namespaces have one flat name for them", () => {
    const namespace = (name: string, of: string) => ({ type: "namespace", name, tools: [tool(of)] })
    const { messages, tools } = decodeBody({
      ...items(
        user,
        call("c", { name: "b__c", namespace: "a" }),
        call("d", { name: "c", namespace: "a__b" }),
        output("c"),
        output("d")
      ),
      tools: [namespace("a", "b__c"), namespace("a__b", "c"), namespace("a", "b__c")]
    })
    const names = tools.map(({ function: { name } }) => name)
    assert.deepStrictEqual(
      names.map((name) => name.replace(/[0-9a-f]{8}$/, "#")),
      ["a__b__c", "a__b__c_#"]
    )
    assert.deepInclude(messages[1], {
      tool_calls: names.map((name, at) => ({
        id: at === 0 ? "c" : "d",
        type: "function" as const,
        function: { name, arguments: "{}" }
      }))
    })
  })

  it("are called in the input by the client's names", () => {
    const { messages } = decodeBody({
      ...items(user, call("c", { name: "spawn", namespace: "agents" }), output("c")),
      tools: [{ type: "namespace", name: "agents", tools: [tool("spawn")] }]
    })
    assert.deepInclude(messages[1], {
      tool_calls: [{ id: "c", type: "function", function: { name: "agents__spawn", arguments: "{}" } }]
    })
  })

  it.each<[unknown, unknown, ReadonlyArray<string>]>([
    ["none", "none", ["f", "g"]],
    [{ type: "function", name: "g" }, { type: "function", function: { name: "g" } }, ["f", "g"]],
    [{ type: "web_search" }, undefined, ["f", "g"]],
    [{ type: "allowed_tools", mode: "required", tools: [tool("g")] }, "required", ["g"]],
    [{ type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] }, undefined, []]
  ])("are chosen by %j", (tool_choice, choice, callable) => {
    const read = decodeBody(body({ tools: [tool("f"), { type: "custom", name: "g" }], tool_choice }))
    assert.deepStrictEqual(read.toolChoice, choice)
    assert.deepStrictEqual(
      read.tools.map(({ function: { name } }) => name),
      callable
    )
  })
})

import type { ChatRequest } from "../../../src/domain/Chat.ts"
import { ChatCompletionRequest } from "../../../src/http/chat/ChatBody.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { base, decodeBody, hi, refusal, tool } from "./ChatBodies.ts"

describe("the required fields of a chat", () => {
  const notObject = ["The body must be a JSON object.", null] as const
  const noModel = ["`model` is required.", "model"] as const
  const noMessages = ["`messages` is required and must be a non-empty array.", "messages"] as const

  it.each([
    [null, ...notObject],
    ["text", ...notObject],
    [7, ...notObject],
    [true, ...notObject],
    [[], ...notObject],
    [[base], ...notObject],
    [{}, ...noModel],
    [{ messages: [hi] }, ...noModel],
    [{ ...base, model: "" }, ...noModel],
    [{ ...base, model: null }, ...noModel],
    [{ ...base, model: 5 }, ...noModel],
    [{ ...base, model: ["m"] }, ...noModel],
    [{ model: "m" }, ...noMessages],
    [{ model: "m", messages: null }, ...noMessages],
    [{ model: "m", messages: [] }, ...noMessages],
    [{ model: "m", messages: "hi" }, ...noMessages],
    [{ model: "m", messages: { 0: hi, length: 1 } }, ...noMessages],
    [{ model: "m", temperature: 9 }, ...noMessages],
    [{ temperature: 9, messages: 1 }, ...noModel]
  ])("are missing from %j: %s", (body, message, param) => {
    assert.deepStrictEqual(refusal(body), ["InvalidRequest", param, message])
  })

  it("are enough", () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(decodeBody(base))), {
      model: "m",
      messages: [hi],
      stream: false,
      includeUsage: false,
      maxTokens: 4096,
      hasDefaultMaxTokens: true,
      stop: [],
      tools: [],
      webSearch: false
    })
  })
})

type Fields = { readonly [field: string]: unknown }

describe("the optional fields of a chat", () => {
  const usageStream = { stream: true, includeUsage: true }
  const unasked = { tools: [], toolChoice: undefined }
  const anyObject = { type: "json_object" } as const
  const schema = { type: "object" } as const
  const described = { name: "n", description: "d" }
  const shaped = <A>(definition: A) => ({ type: "json_schema" as const, json_schema: definition })

  it.each<[Fields, Partial<ChatRequest>]>([
    [{ stream: true }, { stream: true, includeUsage: false }],
    [{ stream: false }, { stream: false }],
    [{ stream: true, stream_options: { include_usage: true } }, usageStream],
    [{ stream: true, stream_options: { include_usage: false } }, { includeUsage: false }],
    [{ stream: true, stream_options: { include_usage: null } }, { includeUsage: false }],
    [{ stream_options: { include_usage: true } }, { stream: false, includeUsage: false }],
    [{ max_tokens: 1 }, { maxTokens: 1, hasDefaultMaxTokens: false }],
    [{ max_tokens: 4096 }, { maxTokens: 4096, hasDefaultMaxTokens: false }],
    [{ max_tokens: 1_000_000 }, { maxTokens: 1_000_000 }],
    [{ max_tokens: 1e308 }, { maxTokens: 1e308 }],
    [{ max_tokens: 8 }, { maxTokensField: undefined }],
    [
      { max_completion_tokens: 7 },
      { maxTokens: 7, hasDefaultMaxTokens: false, maxTokensField: "max_completion_tokens" }
    ],
    [{ max_tokens: 9, max_completion_tokens: 7 }, { maxTokens: 7 }],
    [{ max_tokens: 7, max_completion_tokens: null }, { maxTokens: 7 }],
    [{ temperature: 0 }, { temperature: 0 }],
    [{ temperature: 2 }, { temperature: 2 }],
    [{ top_p: 0 }, { topP: 0 }],
    [{ top_p: 1 }, { topP: 1 }],
    [{ stop: "x" }, { stop: ["x"] }],
    [{ stop: ["x", "y"] }, { stop: ["x", "y"] }],
    [{ stop: [] }, { stop: [] }],
    [{ stop: Array.from({ length: 16 }, String) }, { stop: Array.from({ length: 16 }, String) }],
    [{ seed: -3 }, { seed: -3 }],
    [{ seed: 2 ** 60 }, { seed: 2 ** 60 }],
    [{ frequency_penalty: -2 }, { frequencyPenalty: -2 }],
    [{ presence_penalty: 2 }, { presencePenalty: 2 }],
    [{ reasoning_effort: "low" }, { reasoningEffort: "low" }],
    [{ reasoning_effort: "medium" }, { reasoningEffort: "medium" }],
    [{ reasoning_effort: "high" }, { reasoningEffort: "high" }],
    [{ reasoning_effort: "xhigh" }, { reasoningEffort: "xhigh" }],
    [{ reasoning_effort: "none" }, { reasoningEffort: undefined }],
    [{ reasoning_effort: "minimal" }, { reasoningEffort: "low" }],
    [{ web_search: true }, { webSearch: true }],
    [{ web_search: false }, { webSearch: false }],
    [{ response_format: { type: "text" } }, { responseFormat: undefined }],
    [{ response_format: anyObject }, { responseFormat: anyObject }],
    [{ response_format: { ...anyObject, schema: null, json_schema: null } }, { responseFormat: anyObject }],
    [{ response_format: { ...anyObject, schema } }, { responseFormat: shaped({ name: "response", schema }) }],
    [
      { response_format: shaped({ name: "n", schema, strict: true }) },
      { responseFormat: shaped({ name: "n", schema, strict: true }) }
    ],
    [
      { response_format: { type: "json_schema", json_schema: { ...described, schema: null, strict: null } } },
      { responseFormat: shaped(described) }
    ],
    [{ n: 1 }, {}],
    [{ tools: [] }, { tools: [] }],
    [{ tools: [tool("f")] }, { tools: [{ type: "function", function: { name: "f" } }] }],
    [
      { tools: [tool("f", { description: "d", parameters: schema, strict: false, extra: 1 })] },
      { tools: [{ type: "function", function: { name: "f", description: "d", strict: false, parameters: schema } }] }
    ],
    [{ tools: [tool("f")], tool_choice: "auto" }, { toolChoice: "auto" }],
    [{ tools: [tool("f")], tool_choice: "none" }, { toolChoice: "none" }],
    [{ tools: [tool("f")], tool_choice: "required" }, { toolChoice: "required" }],
    [
      { tools: [tool("f")], tool_choice: tool("f", { more: 1 }) },
      { toolChoice: { type: "function", function: { name: "f" } } }
    ],
    [{ tools: [tool("f")], tool_choice: { type: "auto" } }, { toolChoice: "auto" }],
    [{ tools: [tool("f")], tool_choice: { type: "none" } }, { toolChoice: "none" }],
    [{ tools: [tool("f")], tool_choice: { type: "required" } }, { toolChoice: "required" }],
    [{ tool_choice: { type: "auto" } }, { toolChoice: undefined }],
    [
      {
        tools: [
          { type: "function", name: "mcp.read:all", description: "d", parameters: schema, strict: true },
          { name: "anthropic", input_schema: schema }
        ],
        tool_choice: { type: "function", name: "anthropic" }
      },
      {
        tools: [
          {
            type: "function",
            function: { name: "mcp.read:all", description: "d", strict: true, parameters: schema }
          },
          { type: "function", function: { name: "anthropic", parameters: schema } }
        ],
        toolChoice: { type: "function", function: { name: "anthropic" } },
        customTools: undefined
      }
    ],
    [{ tools: [tool("x".repeat(128))] }, { tools: [{ type: "function", function: { name: "x".repeat(128) } }] }],
    [
      {
        tools: [tool("f"), tool("g"), { type: "custom", name: "patch" }],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [tool("g"), { type: "custom", custom: { name: "patch" } }] }
        }
      },
      { toolChoice: "auto", customTools: new Set(["patch"]) }
    ],
    [
      {
        tools: [tool("f"), tool("g")],
        tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] }
      },
      { toolChoice: "required", tools: [{ type: "function", function: { name: "f" } }] }
    ],
    [{ functions: [], function_call: "" }, unasked],
    [{ functions: {}, function_call: {} }, unasked],
    [{ tool_choice: "auto" }, { toolChoice: undefined }],
    [{ tool_choice: "none" }, { toolChoice: undefined }],
    [{ tools: [tool("f")], parallel_tool_calls: false }, { parallelToolCalls: false }],
    [{ parallel_tool_calls: true }, { parallelToolCalls: undefined }]
  ])("are accepted as %j", (fields, expected) => {
    assert.deepInclude(decodeBody({ ...base, ...fields }), expected)
  })

  it("may declare tools of free text, nested or flat, with a grammar of either dialect", () => {
    const [syntax, definition] = ["lark", 'start: "x"']
    const formats = [
      { type: "grammar", grammar: { syntax, definition } },
      { type: "grammar", syntax, definition }
    ]
    for (const format of formats) {
      const fields = { name: "patch", description: "Patches.", format }
      for (const declared of [
        { type: "custom", custom: fields },
        { type: "custom", ...fields }
      ]) {
        const { customTools, tools } = decodeBody({ ...base, tools: [declared] })
        assert.deepStrictEqual(customTools, new Set(["patch"]))
        const { description, name, parameters } = tools[0]?.function ?? assert.fail("no tool")
        assert.strictEqual(name, "patch")
        assert.include(description, "Patches.")
        assert.include(description, `this lark grammar:\n${definition}`)
        assert.deepInclude(parameters, { required: ["input"] })
      }
    }
  })

  it("may declare a tool twice: the first one counts", () => {
    const { tools } = decodeBody({ ...base, tools: [tool("f", { description: "a" }), tool("g"), tool("f")] })
    assert.deepStrictEqual(
      tools.map(({ function: { description, name } }) => [name, description]),
      [
        ["f", "a"],
        ["g", undefined]
      ]
    )
  })

  it("may be null instead of absent", () => {
    const names = Object.keys(ChatCompletionRequest.fields).filter((name) => name !== "model" && name !== "messages")
    const nulls = Object.fromEntries([...names, "functions", "function_call"].map((name) => [name, null]))
    assert.isAtLeast(names.length, 17)
    assert.deepStrictEqual(decodeBody({ ...base, ...nulls }), decodeBody(base))
  })

  it("include unknown ones, which are ignored", () => {
    const unknown = { user: 1, metadata: [], logprobs: true, top_logprobs: 3, store: "yes", service_tier: {} }
    const more = { verbosity: "low", logit_bias: 7, anything: { at: ["all"] } }
    assert.deepStrictEqual(decodeBody({ ...base, ...unknown, ...more }), decodeBody(base))
  })

  const inSchema = "`response_format.json_schema"
  const noName = "is required and must be 1 to 64 letters, digits, underscores or dashes."
  const noToolName = "is required and must be 1 to 128 letters, digits, underscores, dashes, dots or colons."
  const efforts = "none, minimal, low, medium, high, xhigh"
  const calling = (definition: unknown) => ({ type: "function", function: definition })

  /** Each message begins with the field that must not be any of these. */
  const invalidValues: ReadonlyArray<readonly [message: string, values: ReadonlyArray<unknown>]> = [
    ["`stream` must be a boolean.", ["true", 1, {}]],
    ["`stream_options` must be an object.", [true, [], "x"]],
    ["`stream_options.include_usage` must be a boolean.", [{ include_usage: "yes" }, { include_usage: 1 }]],
    ["`max_tokens` must be an integer of at least 1.", [0, -1, 1.5, "10", true, Infinity, {}]],
    ["`max_completion_tokens` must be an integer of at least 1.", [0, 0.1, "10"]],
    ["`temperature` must be a number from 0 to 2.", [-0.01, 2.01, "1", Infinity, [1]]],
    ["`top_p` must be a number from 0 to 1.", [-0.01, 1.01, "1"]],
    ["`frequency_penalty` must be a number from -2 to 2.", [-2.01, 2.01, "1"]],
    ["`presence_penalty` must be a number from -2 to 2.", [-2.01, 2.01, "1"]],
    ["`seed` must be an integer.", [1.5, "1", 1e300, true]],
    ["`stop` must be a non-empty string or an array of non-empty strings.", ["", 1, {}, [""], [1], ["x", null]]],
    ["`stop` must hold at most 16 strings.", [Array.from({ length: 17 }, String)]],
    [`\`reasoning_effort\` must be one of ${efforts}.`, ["max", "", "LOW", 1, {}]],
    ["`web_search` must be a boolean.", ["true", 1, {}]],
    ["`parallel_tool_calls` must be a boolean.", ["true", 0]],
    ["`n` must be 1.", [0, 2, "1", 1.5]],
    ["`response_format` must be an object.", ["json_object", [], 1]],
    ["`response_format.type` must be one of text, json_object, json_schema.", [{}, { type: "xml" }, { type: null }]],
    [`${inSchema}\` is required and must be an object.`, [{ type: "json_schema" }, shaped([])]],
    [`${inSchema}.name\` ${noName}`, [shaped({}), shaped({ name: "a b" })]],
    [`${inSchema}.schema\` must be an object.`, [shaped({ name: "n", schema: "x" })]],
    [`${inSchema}.strict\` must be a boolean.`, [shaped({ name: "n", strict: "x" })]],
    [`${inSchema}.description\` must be a string.`, [shaped({ name: "n", description: 1 })]],
    ["`response_format.schema` must be an object.", ["x", []].map((schema) => ({ type: "json_object", schema }))],
    [`${inSchema}\` requires the type json_schema.`, [{ ...shaped({ name: "n", schema: {} }), type: "json_object" }]],
    ["`tools` must be an array.", [{}, "f", 1]],
    ["`tools[0]` must be an object.", [["f"], [null]]],
    ["`tools[0].type` must be function or custom.", [[{}], [{ type: "web_search" }], [{ function: { name: "f" } }]]],
    ["`tools[0].function` is required and must be an object.", [[{ type: "function" }], [calling("f")]]],
    [`\`tools[1].function.name\` ${noToolName}`, ["", "a b", "x".repeat(129)].map((name) => [tool("f"), tool(name)])],
    [
      "`tools[0].function.parameters` must be an object.",
      [[tool("f", { parameters: [] })], [tool("f", { parameters: "{}" })]]
    ],
    ["`tools[0].function.description` must be a string.", [[tool("f", { description: {} })]]],
    ["`tools[0].function.strict` must be a boolean.", [[tool("f", { strict: 1 })]]],
    ["`tool_choice` needs `tools`.", ["required", { type: "required" }]],
    [
      "`tool_choice` must be auto, none, required or an object that names a function.",
      ["any", 1, [], {}, { type: "any" }, { type: "function" }, { type: "tool", name: "f" }]
    ],
    [
      "`tool_choice` must have a `mode`, auto or required, and `tools`.",
      [{ type: "allowed_tools" }, { type: "allowed_tools", allowed_tools: { mode: "none", tools: [tool("f")] } }]
    ],
    ["`tool_choice` must name at least one of `tools`.", [{ type: "allowed_tools", mode: "auto", tools: [tool("f")] }]],
    ["`tool_choice` must name a function.", [calling({}), calling({ name: 1 })]],
    ["`tool_choice` must name one of `tools`.", [tool("f")]],
    ["`functions` is not supported: use `tools`.", [[{ name: "f" }], "f", 1]],
    ["`function_call` is not supported: use `tool_choice`.", ["auto", { name: "f" }, 1]]
  ]

  it.each(invalidValues)("are refused as %s where it is %j", (message, values) => {
    const [, field = ""] = /^`(\w+)/.exec(message) ?? []
    for (const value of values) {
      assert.deepStrictEqual(refusal({ ...base, [field]: value }), ["InvalidRequest", field, message])
    }
  })

  it("are refused where the tool choice names a missing tool", () => {
    const [, param, message] = refusal({ ...base, tools: [tool("f")], tool_choice: tool("g") })
    assert.deepStrictEqual([param, message], ["tool_choice", "`tool_choice` must name one of `tools`."])
  })
})

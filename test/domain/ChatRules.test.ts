import { Either } from "effect"
import type { ChatRequest } from "../../src/domain/Chat.ts"
import { applyRules, requiredCapabilities, unsupportedField } from "../../src/domain/ChatRules.ts"
import type { ChatModel } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { assert, describe, it } from "../harness/It.ts"

const model: ChatModel = {
  id: "m-1",
  surface: "chat",
  created: 0,
  routes: [],
  family: "A",
  contextLength: 100_000,
  maxOutput: 8192,
  maxOutputPolicy: "clamp",
  sampling: true,
  reasoning: ["low", "medium", "high"],
  capabilities: new Set(["tools", "vision", "response_format", "web_search"]),
  pricing: {
    prompt: NanoUsd(1n),
    completion: NanoUsd(1n),
    cachedPrompt: undefined,
    cacheWrite: undefined,
    longContext: undefined
  },
  official: undefined,
  imageTokens: 0,
  webSearchTokens: 0,
  maxWebSearches: 10
}

const request: ChatRequest = {
  model: "m-1",
  messages: [{ role: "user", content: "hi" }],
  stream: false,
  includeUsage: false,
  maxTokens: 4096,
  hasDefaultMaxTokens: true,
  stop: [],
  tools: [],
  webSearch: false
}

const asking = {
  tools: { tools: [{ type: "function", function: { name: "f" } }] },
  vision: {
    messages: [
      { role: "system", content: [{ type: "text", text: "look" }] },
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] }
    ]
  },
  response_format: { responseFormat: { type: "json_object" } },
  web_search: { webSearch: true },
  reasoning: { reasoningEffort: "low" }
} as const satisfies Record<string, Partial<ChatRequest>>

const applied = (over: Partial<ChatModel>, asked: Partial<ChatRequest>): ChatRequest =>
  Either.getOrThrowWith(
    applyRules({ ...model, ...over }, { ...request, ...asked }),
    ({ message }) => new Error(message)
  )

const refusal = (over: Partial<ChatModel>, asked: Partial<ChatRequest>) => {
  const result = applyRules({ ...model, ...over }, { ...request, ...asked })
  return Either.isLeft(result) ? [result.left.param, result.left.message] : "accepted"
}

describe("needs", () => {
  it("is empty for plain text", () => {
    assert.deepStrictEqual([...requiredCapabilities(request)], [])
  })

  it.each(Object.entries(asking))("names %s", (capability, asked) => {
    assert.deepStrictEqual([...requiredCapabilities({ ...request, ...asked })], [capability])
  })

  it("does not require capabilities for the history", () => {
    const messages: ChatRequest["messages"] = [
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }]
      },
      { role: "tool", content: "1", tool_call_id: "c" }
    ]
    assert.deepStrictEqual([...requiredCapabilities({ ...request, messages })], [])
  })
})

describe("applyRules", () => {
  const bare = { capabilities: new Set<never>(), reasoning: "none" } as const

  it.each([
    ["tools", asking.tools, "tools", "`tools` is not available for `m-1`."],
    ["images", asking.vision, "messages", "Image input is not available for `m-1`."],
    ["a response format", asking.response_format, "response_format", "`response_format` is not available for `m-1`."],
    ["web search", asking.web_search, "web_search", "`web_search` is not available for `m-1`."],
    ["an effort", asking.reasoning, "reasoning_effort", "`reasoning_effort` is not available for `m-1`."]
  ])("refuses %s where the model has none, and takes it where it has", (_, asked, param, message) => {
    assert.deepStrictEqual(refusal(bare, asked), [param, message])
    const taken = applied({}, asked)
    for (const [field, value] of Object.entries(asked)) assert.propertyVal(taken, field, value)
  })

  it("accepts plain text on a model without capabilities", () => {
    assert.strictEqual(refusal(bare, {}), "accepted")
  })

  it.each([
    [
      ["low", "high"],
      ["low", "high"]
    ],
    [
      ["low", "medium", "high"],
      ["low", "medium", "high"]
    ],
    [
      ["low", "medium", "high", "xhigh"],
      ["low", "medium", "high", "xhigh"]
    ],
    ["binary", ["low", "medium", "high", "xhigh"]],
    ["none", []]
  ] as const)("with reasoning %j takes the efforts %j only", (reasoning, taken) => {
    for (const reasoningEffort of ["low", "medium", "high", "xhigh"] as const) {
      const verdict = refusal({ reasoning }, { reasoningEffort })
      if (taken.some((effort) => effort === reasoningEffort)) assert.strictEqual(verdict, "accepted")
      else assert.strictEqual(verdict[0], "reasoning_effort")
    }
  })

  it("says which efforts a model takes", () => {
    assert.deepStrictEqual(refusal({ reasoning: ["low", "high"] }, { reasoningEffort: "medium" }), [
      "reasoning_effort",
      "`reasoning_effort` must be one of low, high for `m-1`."
    ])
  })

  it.each([
    ["xhigh", ["low", "high"], "high"],
    ["medium", ["low", "high"], "low"],
    ["low", ["medium", "high"], "medium"],
    ["high", ["low", "medium", "high"], "high"],
    ["high", "binary", "high"],
    ["high", "none", undefined]
  ] as const)("takes the hint %s with reasoning %j for %s", (reasoningEffort, reasoning, expected) => {
    const fitted = applied({ reasoning }, { reasoningEffort, isEffortHint: true })
    assert.strictEqual(fitted.reasoningEffort, expected)
  })

  it.each([
    ["xhigh", ["low", "high"], "high"],
    ["medium", ["low", "high"], "low"],
    ["high", ["low", "high"], undefined],
    ["high", "binary", undefined],
    ["high", "none", "none"],
    [undefined, ["low"], undefined]
  ] as const)("replaces the effort %s of a native body with reasoning %j by %s", (effort, reasoning, expected) => {
    const native = { dialect: "messages", body: {}, headers: {}, extraTokens: 0, effort } as const
    assert.strictEqual(applied({ reasoning }, { native }).native?.effort, expected)
  })

  it("drops a search hint if the model has no search", () => {
    const asked = { webSearch: true, isWebSearchHint: true }
    assert.isFalse(applied(bare, asked).webSearch)
    assert.isTrue(applied({}, asked).webSearch)
    assert.deepStrictEqual(
      [...requiredCapabilities({ ...request, ...asked, reasoningEffort: "low", isEffortHint: true })],
      []
    )
  })

  const sampling = { temperature: 0.5, topP: 0.9, seed: 7, frequencyPenalty: 1, presencePenalty: -1 }

  it("drops sampling if the family has none, and nothing else", () => {
    const kept = { stop: ["x"], ...asking.tools, toolChoice: "required", parallelToolCalls: false } as const
    const fitted = applied({ sampling: false }, { ...sampling, ...kept })
    for (const field of Object.keys(sampling))
      assert.isUndefined(Object.entries(fitted).find(([f]) => f === field)?.[1])
    assert.deepInclude(fitted, kept)
  })

  it("keeps sampling where the family takes it", () => {
    assert.deepInclude(applied({ sampling: true }, sampling), sampling)
  })

  it.each([
    ["clamp", 8192, { maxTokens: 8192 }, 8192],
    ["clamp", 8192, { maxTokens: 8193 }, 8192],
    ["clamp", 8192, { maxTokens: 1 }, 1],
    ["clamp", 8192, { maxTokens: 1e308 }, 8192],
    ["clamp", 1000, { maxTokens: 4096, hasDefaultMaxTokens: true }, 1000],
    ["reject", 8192, { maxTokens: 8192 }, 8192],
    ["reject", 8192, { maxTokens: 4096, hasDefaultMaxTokens: true }, 4096],
    ["reject", 1000, { maxTokens: 4096, hasDefaultMaxTokens: true }, 1000]
  ] as const)("%s at %i: %j gives %i", (maxOutputPolicy, maxOutput, asked, expected) => {
    const fitted = applied({ maxOutputPolicy, maxOutput }, { hasDefaultMaxTokens: false, ...asked })
    assert.strictEqual(fitted.maxTokens, expected)
  })

  it("lowers an agent's cap to the model's own, not to the family's", () => {
    const native = { dialect: "messages", body: {}, headers: {}, extraTokens: 0 } as const
    const capped = (maxTokens: number, own: number | undefined) =>
      applied({ maxOutput: 8192, ownMaxOutput: own }, { maxTokens, hasDefaultMaxTokens: true, native }).maxTokens
    assert.strictEqual(capped(64_000, 128_000), 64_000)
    assert.strictEqual(capped(Number.MAX_SAFE_INTEGER, 128_000), 128_000)
    assert.strictEqual(capped(64_000, undefined), 8192)
  })

  it("refuses a cap above the model's where the family says so", () => {
    const reject = { maxOutputPolicy: "reject", maxOutput: 8192 } as const
    const verdict = ["max_tokens", "`max_tokens` must be at most 8192 for `m-1`."]
    assert.deepStrictEqual(refusal(reject, { maxTokens: 8193, hasDefaultMaxTokens: false }), verdict)
    assert.deepStrictEqual(refusal(reject, { maxTokens: 8193, hasDefaultMaxTokens: undefined }), verdict)
    const other = { maxTokens: 1e308, hasDefaultMaxTokens: false, maxTokensField: "max_completion_tokens" } as const
    assert.deepStrictEqual(refusal(reject, other), [
      "max_completion_tokens",
      "`max_completion_tokens` must be at most 8192 for `m-1`."
    ])
  })
})

describe("marks for a prompt cache", () => {
  it.each([
    [{}, "all"],
    [{ cacheWrite: NanoUsd(2n) }, "hour"],
    [{ cacheWrite: NanoUsd(2n), cacheWriteHour: NanoUsd(3n) }, undefined]
  ] as const)("are unpriced by a model with the prices %o: %s", (prices, unpriced) =>
    assert.strictEqual(applied({ pricing: { ...model.pricing, ...prices } }, {}).unpricedBreakpoints, unpriced)
  )
})

it("a schema that no provider takes is refused with what would work", () => {
  const asks = (schema: Readonly<Record<string, unknown>>) => {
    const responseFormat = { type: "json_schema", json_schema: { name: "n", schema } } as const
    return unsupportedField(model, "response_format", { ...request, responseFormat })
  }
  const { hint, param } = asks({ type: "array" })
  assert.strictEqual(param, "response_format")
  assert.strictEqual(hint, "The schema of the answer must be an object: make the value one of its properties.")
  assert.isUndefined(asks({ type: "object" }).hint)
})

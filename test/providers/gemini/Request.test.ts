import type {
  Content,
  FunctionCallingConfigMode,
  GenerationConfig,
  ThinkingConfig,
  ThinkingLevel,
  Tool,
  ToolConfig
} from "@google/genai"
import { Effect } from "effect"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import {
  options as decoder,
  encodeRequest,
  encodeThinking,
  findDeclinedField,
  type Quirks,
  rulesOf
} from "../../../src/providers/gemini/GeminiRequest.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import { list, record, secret } from "../../contracts/ChatHosts.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk, gemini } from "./Wire.ts"

const { bodies, check } = scenarios(gemini)

/** The types of Google's client, with enums as strings. */
interface Official {
  contents: Array<Content>
  systemInstruction?: Content
  tools?: Array<Tool>
  toolConfig?: Omit<ToolConfig, "functionCallingConfig"> & {
    functionCallingConfig?: { mode?: `${FunctionCallingConfigMode}`; allowedFunctionNames?: Array<string> }
  }
  generationConfig?: Omit<GenerationConfig, "thinkingConfig"> & {
    thinkingConfig?: Omit<ThinkingConfig, "thinkingLevel"> & { thinkingLevel?: `${ThinkingLevel}` }
  }
}

const usual: Quirks = { signatures: "required", penalties: true, sampling: true }
const callOf = callTo(gemini, { decoder, rulesOf }, usual)
const bodyOf = (overrides: Partial<ChatRequest>, options: object = { thinking: "none" }) => {
  const body = encodeRequest(callOf(overrides, { ...options }))
  const official: Official = body
  assert.strictEqual(official.contents, body.contents)
  return body
}

const user = (content: string): Message => ({ role: "user", content })
const fine = Fake.json(200, chunk([{ text: "a" }], "STOP"))

describe("a request to a Gemini host", () => {
  it("says everything that can be asked", () => {
    const { description, name, parameters } = weatherTool.function
    const overrides: Partial<ChatRequest> = {
      messages: [{ role: "system", content: "S" }, user("U")],
      maxTokens: 9,
      stop: ["a", "b"],
      tools: [weatherTool, { type: "function", function: { name: "bare", strict: true } }],
      toolChoice: "auto",
      reasoningEffort: "low",
      responseFormat: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } },
      webSearch: true,
      temperature: 0,
      topP: 0.5,
      seed: 7,
      frequencyPenalty: 0.5,
      presencePenalty: -1
    }
    assert.deepStrictEqual<unknown>(bodyOf(overrides, {}), {
      contents: [{ role: "user", parts: [{ text: "U" }] }],
      systemInstruction: { parts: [{ text: "S" }] },
      tools: [
        { functionDeclarations: [{ name, description, parametersJsonSchema: parameters }, { name: "bare" }] },
        { googleSearch: {} }
      ],
      toolConfig: { functionCallingConfig: { mode: "AUTO" }, includeServerSideToolInvocations: true },
      generationConfig: {
        maxOutputTokens: 9,
        stopSequences: ["a", "b"],
        temperature: 0,
        topP: 0.5,
        seed: 7,
        frequencyPenalty: 0.5,
        presencePenalty: -1,
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object" },
        thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" }
      }
    })
  })

  const stop = ["1", "2", "3", "4", "5", "6"]
  const calling = (of: object) => ({ functionCallingConfig: of })
  const bare = { contents: [{ role: "user", parts: [{ text: "Say something." }] }] }
  const withTools = { tools: [weatherTool] }
  const rows: ReadonlyArray<readonly [string, Partial<ChatRequest>, object]> = [
    ["says nothing that was not asked", {}, { ...bare, generationConfig: { maxOutputTokens: 4096 } }],
    ["chooses no tool", { ...withTools, toolChoice: "none" }, { toolConfig: calling({ mode: "NONE" }) }],
    ["chooses any tool", { ...withTools, toolChoice: "required" }, { toolConfig: calling({ mode: "ANY" }) }],
    [
      "chooses one tool",
      { ...withTools, toolChoice: { type: "function", function: { name: "f" } } },
      { toolConfig: calling({ mode: "ANY", allowedFunctionNames: ["f"] }) }
    ],
    ["searches without a word on tools", { webSearch: true }, { tools: [{ googleSearch: {} }] }],
    [
      "asks for JSON without a schema",
      { responseFormat: { type: "json_object" } },
      { generationConfig: { maxOutputTokens: 4096, responseMimeType: "application/json" } }
    ],
    [
      "has a seed of 32 bits, no penalties of zero and five stop sequences",
      { seed: 2 ** 32 + 5, frequencyPenalty: 0, presencePenalty: 0, stop },
      { generationConfig: { maxOutputTokens: 4096, seed: 5, stopSequences: stop.slice(0, 5) } }
    ],
    ["keeps a negative seed", { seed: -1 }, { generationConfig: { maxOutputTokens: 4096, seed: -1 } }],
    ["folds a seed of 64 bits", { seed: 2 ** 63 }, { generationConfig: { maxOutputTokens: 4096, seed: 0 } }]
  ]
  it.each(rows)("%s", (_, chatRequest, expected) => {
    const body = bodyOf(chatRequest)
    assert.deepStrictEqual<object>({ ...body, ...expected }, body)
    assert.strictEqual("toolConfig" in body, "toolConfig" in expected)
  })

  const responseFormat = { type: "json_object" } as const
  const combinations: ReadonlyArray<readonly [string, Partial<ChatRequest>, string | undefined]> = [
    ["tools", withTools, undefined],
    ["search", { webSearch: true }, undefined],
    ["a format", { responseFormat }, undefined],
    ["tools and search", { ...withTools, webSearch: true }, "web_search"],
    ["a format and search", { responseFormat, webSearch: true }, "web_search"],
    ["tools and a format", { ...withTools, responseFormat }, "response_format"]
  ]
  it.each(combinations)(
    "with %s is taken by later models, and declined by Gemini 2.5 for %j",
    (_, chatRequest, field) => {
      assert.strictEqual(findDeclinedField({ thinking: "budget" }, request(chatRequest)), field)
      assert.isUndefined(findDeclinedField({}, request(chatRequest)))
    }
  )

  check("goes to the model's own path, with the key in its header alone", function* (adapter, fake, route) {
    yield* fake.script(fine, fine)
    yield* adapter.complete(route, request())
    yield* adapter.complete({ ...route, model: "tunedModels/mine" }, request())
    const [first, second] = [yield* fake.received, yield* fake.received]
    assert.strictEqual(first.path, "/v1beta/models/gemini-3-test:generateContent")
    assert.strictEqual(second.path, "/v1beta/tunedModels/mine:generateContent")
    assert.deepInclude(first.headers, { "x-goog-api-key": secret, "content-type": "application/json" })
    assert.isUndefined(first.headers.authorization)
  })

  const refusal = (message: string) => Fake.json(400, { error: { code: 400, status: "INVALID_ARGUMENT", message } })
  const sampled = request({ frequencyPenalty: 0.5, temperature: 1 })
  for (const [message, field] of [
    ["Penalty is not enabled for this model", "frequencyPenalty"],
    ["temperature is not supported by this model.", "temperature"]
  ] as const) {
    check(`leaves out ${field} that the model does not know, from then on`, function* (adapter, fake, route) {
      yield* fake.script(refusal(message), fine, fine)
      yield* adapter.complete(route, sampled)
      yield* adapter.complete(route, sampled)
      const values = (yield* bodies(fake, 3)).map(({ generationConfig }) => generationConfig[field])
      assert.deepStrictEqual(values, [sampled[field], undefined, undefined])
    })
  }

  check("learns nothing from a refused tool whose own field is a temperature", function* (adapter, fake, route) {
    yield* fake.script(refusal("function_declarations[0].parameters.properties[temperature]: not supported"), fine)
    assert.strictEqual((yield* Effect.flip(adapter.complete(route, sampled))).class, "request")
    yield* adapter.complete(route, sampled)
    const [, second] = yield* bodies(fake, 2)
    assert.strictEqual(second.generationConfig.temperature, 1)
  })

  check("is not sent where its images are elsewhere", function* (adapter, fake, route) {
    const part = { type: "image_url", image_url: { url: "https://x.test/a.png" } } as const
    const far = request({ messages: [{ role: "user", content: [part] }] })
    const failure = yield* Effect.flip(adapter.complete(route, far))
    assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["retry", undefined, true])
    yield* fake.script(fine)
    yield* adapter.complete(route, request({ messages: [user("only this")] }))
    const { body } = yield* fake.received
    assert.deepStrictEqual(list(record(body).contents), [{ role: "user", parts: [{ text: "only this" }] }])
    assert.isTrue(adapter.requiresInlineImages?.(route))
  })
})

describe("thinking on Gemini's wire", () => {
  const level = (thinkingLevel: string) => ({ includeThoughts: true, thinkingLevel })
  const budget = (thinkingBudget: number) => ({ includeThoughts: true, thinkingBudget })

  it.each([
    ["level", "low", 65_536, level("LOW")],
    ["level", "medium", 65_536, level("MEDIUM")],
    ["level", "high", 65_536, level("HIGH")],
    ["level", "xhigh", 65_536, level("HIGH")],
    // The model thinks anyway, and would not return its thoughts.
    ["level", undefined, 65_536, { includeThoughts: true }],
    ["budget", "low", 65_536, budget(1_024)],
    ["budget", "medium", 65_536, budget(8_192)],
    ["budget", "high", 65_536, budget(24_576)],
    ["budget", "high", 4_096, budget(2_048)],
    ["budget", "high", 1_025, budget(512)],
    ["budget", "low", 1_024, budget(512)],
    ["budget", "low", 1_023, { thinkingBudget: 0 }],
    ["budget", "high", 1, { thinkingBudget: 0 }],
    ["budget", undefined, 65_536, undefined],
    ["none", "high", 65_536, undefined]
  ] as const)("by %s with the effort %s within %i tokens is %j", (thinking, reasoningEffort, maxTokens, expected) => {
    const chatRequest = request({ reasoningEffort, maxTokens })
    assert.deepStrictEqual<unknown>(encodeThinking(chatRequest, { thinking }), expected)
    if (thinking === "level") assert.deepStrictEqual<unknown>(encodeThinking(chatRequest, {}), expected, "by default")
  })
})

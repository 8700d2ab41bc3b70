import { assert, describe, it } from "@effect/vitest"
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
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Options } from "../../../src/providers/gemini/Options.ts"
import { declinedBy, encodeRequest, type Quirks, type WireRequest } from "../../../src/providers/gemini/Request.ts"
import { request, weatherTool } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk } from "./Hosts.ts"
import { check, user } from "./support.ts"
import { list, record, routeTo, secret } from "./Wire.ts"

/** A second opinion on the body, by the types of Google's own client, whose enums are but words on the wire. */
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
const asOfficial = (body: WireRequest): Official => body

const usual: Quirks = { signatures: "required", penalties: true, sampling: true }
const said = (asked: Partial<ChatRequest>, options: Options = { thinking: "none" }) => {
  const body = encodeRequest({ route: routeTo("http://x"), request: request(asked), options, quirks: usual })
  asOfficial(body)
  return body
}

describe("a request to a Gemini host", () => {
  it("says everything that can be asked", () => {
    const body = said(
      {
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
      },
      {}
    )
    const { description = "", name, parameters = {} } = weatherTool.function
    assert.deepStrictEqual(body, {
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

  it("says nothing that was not asked", () => {
    assert.deepStrictEqual(said({ messages: [user("U")] }), {
      contents: [{ role: "user", parts: [{ text: "U" }] }],
      generationConfig: { maxOutputTokens: 4096 }
    })
  })

  const choices: ReadonlyArray<readonly [ChatRequest["toolChoice"], WireRequest["toolConfig"]]> = [
    ["none", { functionCallingConfig: { mode: "NONE" } }],
    ["required", { functionCallingConfig: { mode: "ANY" } }],
    [
      { type: "function", function: { name: "f" } },
      { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } }
    ],
    [undefined, undefined]
  ]
  for (const [toolChoice, toolConfig] of choices) {
    it(`tool_choice ${JSON.stringify(toolChoice)}`, () => {
      assert.deepStrictEqual(said({ tools: [weatherTool], toolChoice }).toolConfig, toolConfig)
    })
  }

  it("a search alone needs no word on tools, and JSON without a schema none on one", () => {
    const { generationConfig, toolConfig, tools } = said({ webSearch: true, responseFormat: { type: "json_object" } })
    assert.deepStrictEqual([tools, toolConfig], [[{ googleSearch: {} }], undefined])
    assert.deepStrictEqual(generationConfig, { maxOutputTokens: 4096, responseMimeType: "application/json" })
  })

  it("seeds have 32 bits, penalties of zero are none, and five stop sequences are told", () => {
    const stop = ["1", "2", "3", "4", "5", "6"]
    const config = said({ seed: 2 ** 32 + 5, frequencyPenalty: 0, presencePenalty: 0, stop }).generationConfig
    assert.deepStrictEqual(config, { maxOutputTokens: 4096, seed: 5, stopSequences: stop.slice(0, 5) })
    assert.strictEqual(said({ seed: -1 }).generationConfig.seed, -1)
    assert.strictEqual(said({ seed: 2 ** 63 }).generationConfig.seed, 0)
  })

  describe("tools with search", () => {
    const schema = { type: "json_object" } as const
    const rows: ReadonlyArray<readonly [Partial<ChatRequest>, string | undefined]> = [
      [{ tools: [weatherTool] }, undefined],
      [{ webSearch: true }, undefined],
      [{ responseFormat: schema }, undefined],
      [{ tools: [weatherTool], webSearch: true }, "web_search"],
      [{ responseFormat: schema, webSearch: true }, "web_search"],
      [{ tools: [weatherTool], responseFormat: schema }, "response_format"]
    ]
    for (const [asked, field] of rows) {
      it(`${Object.keys(asked).join(" and ")}: ${field ?? "taken"} by Gemini 2.5, taken by later ones`, () => {
        assert.strictEqual(declinedBy({ thinking: "budget" }, request(asked)), field)
        assert.isUndefined(declinedBy({}, request(asked)))
      })
    }
  })

  check("goes to the model's own path, with the key in its header alone", (adapter, fake, route) =>
    Effect.gen(function* () {
      const fine = chunk([{ text: "a" }], "STOP")
      yield* fake.script(Fake.json(200, fine), Fake.json(200, fine))
      yield* adapter.complete(route, request())
      yield* adapter.complete({ ...route, model: "tunedModels/mine" }, request())
      const [first, second] = [yield* fake.received, yield* fake.received]
      assert.strictEqual(first.path, "/v1beta/models/gemini-3-test:generateContent")
      assert.strictEqual(second.path, "/v1beta/tunedModels/mine:generateContent")
      assert.deepInclude(first.headers, { "x-goog-api-key": secret, "content-type": "application/json" })
      assert.isUndefined(first.headers.authorization)
    })
  )

  for (const [message, field] of [
    ["Penalty is not enabled for this model", "frequencyPenalty"],
    ["temperature is not supported by this model.", "temperature"]
  ] as const) {
    check(`${field} that the model does not know is left out, from then on`, (adapter, fake, route) =>
      Effect.gen(function* () {
        const fine = Fake.json(200, chunk([{ text: "a" }], "STOP"))
        yield* fake.script(Fake.json(400, { error: { code: 400, status: "INVALID_ARGUMENT", message } }), fine, fine)
        const asked = request({ frequencyPenalty: 0.5, temperature: 1 })
        yield* adapter.complete(route, asked)
        yield* adapter.complete(route, asked)
        const sent = [yield* fake.received, yield* fake.received, yield* fake.received]
        const values = sent.map(({ body }) => record(record(body).generationConfig)[field])
        assert.deepStrictEqual(values, [asked[field], undefined, undefined])
      })
    )
  }

  check("a tool whose own temperature is refused teaches nothing", (adapter, fake, route) =>
    Effect.gen(function* () {
      const message = "function_declarations[0].parameters.properties[temperature]: not supported"
      const fine = Fake.json(200, chunk([{ text: "a" }], "STOP"))
      yield* fake.script(Fake.json(400, { error: { code: 400, status: "INVALID_ARGUMENT", message } }), fine)
      const asked = request({ temperature: 1 })
      assert.strictEqual((yield* Effect.flip(adapter.complete(route, asked))).class, "request")
      yield* adapter.complete(route, asked)
      const [, second] = [yield* fake.received, yield* fake.received]
      assert.strictEqual(record(record(second.body).generationConfig).temperature, 1)
    })
  )

  check("is not sent where its pictures are elsewhere", (adapter, fake, route) =>
    Effect.gen(function* () {
      const part = { type: "image_url", image_url: { url: "https://x.test/a.png" } } as const
      const far = request({ messages: [{ role: "user", content: [part] }] })
      const failure = yield* Effect.flip(adapter.complete(route, far))
      assert.deepStrictEqual([failure.class, failure.status, failure.unsent], ["retry", undefined, true])
      yield* fake.script(Fake.json(200, chunk([{ text: "a" }], "STOP")))
      yield* adapter.complete(route, request({ messages: [user("only this")] }))
      const { body } = yield* fake.received
      assert.deepStrictEqual(list(record(body).contents), [{ role: "user", parts: [{ text: "only this" }] }])
      assert.isTrue(adapter.inlines?.(route))
    })
  )
})

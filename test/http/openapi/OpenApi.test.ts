import type { ChatAnswer } from "../../../src/domain/Chat.ts"
import { UpstreamFailed } from "../../../src/domain/Failure.ts"
import { zero } from "../../../src/domain/Money.ts"
import { completionJson, SseEncoder } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import { encodeBrokenStream } from "../../../src/http/errors/ErrorMessages.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { findingsIn } from "../../docs/PlainEnglish.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { modelNamed } from "./NamedModels.ts"
import { published } from "./Published.ts"

const models = [
  { id: "c-1", surface: "chat" },
  { id: "i-1", surface: "image" },
  { id: "c-2", surface: "chat" },
  { id: "v-1", surface: "video" }
] as const

const { accepts, document } = published(models)
const text = JSON.stringify(document)

const chat = { model: "c-1", messages: [{ role: "user", content: "hi" }] }
const usage = { prompt: 1, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }
const name = { id: "chatcmpl-1", created: 1, model: "c-1" }

describe("the OpenAPI document", () => {
  it("has its version and its address", () => {
    assert.strictEqual(document.info.version, "1.0.0")
    assert.strictEqual(document.openapi, "3.1.0")
    assert.deepStrictEqual(document.servers, [{ url: "https://api.test/v1" }])
  })

  it("has every endpoint with every status, relative to the version", () => {
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [`${method} ${path}`, Object.keys(operation.responses)])
    )
    const reads = ["200", "401", "403", "500"]
    const chats = ["200", "400", "401", "402", "403", "404", "413", "429", "500", "502", "503", "504"]
    const images = [...chats, "409"].toSorted()
    const counts = chats.filter((status) => !["502", "504"].includes(status))
    assert.deepStrictEqual(Object.fromEntries(operations), {
      "post /chat/completions": chats,
      "post /messages": chats,
      "post /messages/count_tokens": counts,
      "post /responses": chats,
      "post /images/generations": images,
      "post /images/edits": images,
      "post /videos": images.map((status) => (status === "200" ? "202" : status)),
      "get /videos": ["200", "400", "401", "403", "500"],
      "delete /videos/{id}": ["200", "401", "403", "404", "409", "500"],
      "get /videos/{id}": ["200", "401", "403", "404", "500"],
      "get /videos/{id}/content": ["302", "400", "401", "403", "404", "500"],
      "get /models": reads,
      "get /models/{id}": ["200", "401", "403", "404", "500"],
      "get /credits": reads,
      "get /usage": ["200", "400", "401", "403", "500", "503"],
      "get /usage/requests/{request_id}": ["200", "401", "403", "404", "500", "503"],
      "get /statement": ["200", "400", "401", "403", "500", "503"],
      "post /quote": counts
    })
  })

  it("describes every parameter", () => {
    const parameters = Object.values(document.paths).flatMap((item) =>
      Object.values(item).flatMap((operation) => operation.parameters)
    )
    assert.isNotEmpty(parameters)
    for (const { description, name } of parameters) assert.match(String(description), /^.+\.$/, name)
  })

  it("describes everything in plain English", () => {
    const described: Array<string> = []
    // JSON.parse visits every description wherever it is.
    JSON.parse(text, (key, value: unknown) => {
      if (typeof value === "string" && /^(?:description|summary)$/.test(key)) described.push(value)
      return value
    })
    assert.isAbove(described.length, 300)
    assert.deepStrictEqual(
      described.flatMap((one) => findingsIn({ file: "", text: one })),
      []
    )
  })

  it("has the envelope for every error and none of the platform's own", () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const envelope = path.startsWith("/messages") ? "MessagesError" : "Error"
      for (const operation of Object.values(item)) {
        for (const [status, response] of Object.entries(operation.responses)) {
          if (Number(status) < 400) continue
          const { schema } = response.content?.["application/json"] ?? {}
          assert.deepStrictEqual(Reflect.get(Object(schema), "allOf")[0], {
            $ref: `#/components/schemas/${envelope}`
          })
        }
      }
    }
    assert.notMatch(text, /HttpApiDecodeError|"Issue"/)
  })

  it("refers only to its own schemas", () => {
    const refs = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, ref]) => ref)
    assert.isNotEmpty(refs)
    for (const ref of refs) assert.property(document.components.schemas, ref ?? "")
  })

  it("accepts a key in either header everywhere", () => {
    const either = [{ bearer: [] }, { apiKey: [] }]
    assert.deepStrictEqual(document.security, either)
    for (const item of Object.values(document.paths)) {
      for (const operation of Object.values(item)) assert.deepStrictEqual(operation.security, either)
    }
    assert.deepInclude(document.components.securitySchemes.apiKey, { type: "apiKey", in: "header", name: "x-api-key" })
    assert.deepInclude(document.components.securitySchemes.bearer, { type: "http", scheme: "bearer" })
  })

  it("enumerates the catalog's chat ids", () => {
    assert.isTrue(accepts("ChatCompletionRequest", chat))
    assert.isTrue(accepts("ChatCompletionRequest", { ...chat, model: "c-2" }))
    assert.isFalse(accepts("ChatCompletionRequest", { ...chat, model: "i-1" }))
    assert.isTrue(accepts("ResponsesRequest", { model: "c-2", input: "hi" }))
    assert.isFalse(accepts("ResponsesRequest", { model: "v-1", input: "hi" }))
    const other = JSON.stringify(
      openApiDocument([modelNamed({ id: "c-9", surface: "chat" })], listModel, "https://api.test/v1")
    )
    assert.include(other, '"enum":["c-9"]')
    assert.notInclude(other, "c-1")
  })

  it("describes the answers", () => {
    const answer: ChatAnswer = {
      content: null,
      reasoning: "r",
      toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      finish: "tool_calls",
      usage
    }
    assert.isTrue(accepts("ChatCompletion", completionJson(name, answer, usage)))
    assert.isFalse(accepts("ChatCompletion", { ...completionJson(name, answer, usage), object: "x" }))
    const sse = new SseEncoder(name, true)
    const stream =
      sse.encode([
        { type: "content", text: "x" },
        { type: "tool_call", index: 0, id: "c", name: "f", arguments: "" },
        { type: "finish", reason: "stop" }
      ]) + sse.finish(usage, zero)
    const events = [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = ""]) => JSON.parse(data))
    assert.lengthOf(events, 5)
    for (const event of events) assert.isTrue(accepts("ChatStreamEvent", event))
    assert.isTrue(accepts("ChatStreamEvent", encodeBrokenStream(new UpstreamFailed())))
    assert.isFalse(accepts("ChatStreamEvent", { choices: [] }))
  })
})

import type { OpenApi } from "@effect/platform"
import { Either } from "effect"
import * as Failure from "../../../src/domain/Failure.ts"
import type { Capability, Model } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { decodeImageBody } from "../../../src/http/images/ImageBody.ts"
import { decodeMessagesBody } from "../../../src/http/messages/MessagesBody.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { decodeQuoteBody } from "../../../src/http/quote/QuoteEndpoint.ts"
import { decodeResponsesBody } from "../../../src/http/responses/ResponsesBody.ts"
import { responsesError } from "../../../src/http/responses/ResponsesObject.ts"
import { decodeVideoBody } from "../../../src/http/videos/VideoBody.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { chatModel } from "../../domain/PricedChats.ts"
import { builtIn, options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { modelNamed } from "./NamedModels.ts"
import { document, validate } from "./Published.ts"

const spend = { cap: NanoUsd(3n), spent: NanoUsd(4n), held: NanoUsd(0n) }

const json = "application/json"
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]: [string, OpenApi.OpenAPISpecOperation]) => ({
    name: operation.operationId,
    at: ["paths", path, method],
    operation
  }))
)
const pointer = (...steps: ReadonlyArray<string>) =>
  `/${steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`
const examplesOf = (media: object | undefined): ReadonlyArray<unknown> =>
  Object.values(Object(Reflect.get(media ?? {}, "examples"))).map((example) => Reflect.get(Object(example), "value"))

const decoders: Readonly<Record<string, (body: unknown) => Either.Either<unknown, unknown>>> = {
  createChatCompletion: decodeChatBody,
  createMessage: (body) => decodeMessagesBody(body, {}),
  countTokens: (body) => decodeMessagesBody(body, {}),
  createResponse: decodeResponsesBody,
  createImage: (body) => decodeImageBody(body, { needsReference: false }),
  createImageEdit: (body) => decodeImageBody(body, { needsReference: true }),
  createVideo: decodeVideoBody,
  createQuote: decodeQuoteBody
}

/** Whether the document has this answer for this operation. */
const isAnswer = (at: ReadonlyArray<string>, status: number, body: unknown): boolean =>
  validate(pointer(...at, "responses", String(status), "content", json, "schema"), body)

describe("the examples of the OpenAPI document", () => {
  it.each(operations)("show accepted requests of $name", ({ at, name, operation }) => {
    for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
      const examples = examplesOf(media)
      assert.isNotEmpty(examples)
      for (const example of examples) {
        assert.isTrue(validate(pointer(...at, "requestBody", "content", type, "schema"), example), type)
        if (type === json) assert.isTrue(Either.isRight(decoders[name]?.(example) ?? Either.left("no decoder")))
      }
    }
  })

  it.each(operations)("show valid answers of $name", ({ at, operation }) => {
    for (const [status, response] of Object.entries(operation.responses)) {
      const media = response.content?.[json]
      if (media === undefined) {
        assert.strictEqual(status, "302")
        continue
      }
      const examples = examplesOf(media)
      assert.isNotEmpty(examples, status)
      for (const example of examples) assert.isTrue(isAnswer(at, Number(status), example), JSON.stringify(example))
    }
  })
})

describe("the examples of a running catalog", () => {
  const answerOf = (models: ReadonlyArray<Model>, path: string): unknown =>
    examplesOf(
      openApiDocument(models, listModel, "https://api.test/v1").paths[path]?.get?.responses[200]?.content?.[json]
    )[0]

  it.effect("show its own models with their own numbers", function* () {
    const { models } = yield* Catalog.make(options({ text: builtIn, sandbox: true }))
    const first = models[0] ?? assert.fail("no model")
    assert.deepStrictEqual(answerOf(models, "/models/{id}"), listModel(first))
    const shown = Reflect.get(Object(answerOf(models, "/models")), "data")
    const ids = Array.from(shown, (one) => Reflect.get(Object(one), "id"))
    const expected = ids.map((id) => listModel(models.find((model) => model.id === id) ?? assert.fail(String(id))))
    assert.deepStrictEqual(shown, expected)
    assert.strictEqual(ids[0], first.id)
  })

  it("charge what its prices come to, and ask for nothing that its models cannot do", () => {
    const million = NanoUsd(1_000_000_000_000n)
    const dear = { prompt: million, completion: million, cachedPrompt: million, cacheWrite: undefined }
    const capabilities = new Set<Capability>()
    const chat = chatModel({ id: "bare", capabilities, pricing: { ...dear, longContext: undefined } })
    const video = { ...modelNamed({ id: "film", surface: "video" }), referenceImage: "none" } as const
    const models = [chat, video]
    assert.deepInclude(answerOf(models, "/usage/requests/{request_id}"), { model: "bare", charge_usd: 0.012 })
    const { paths } = openApiDocument(models, listModel, "https://api.test/v1")
    const asked = (path: string) => Object.keys(Object(paths[path]?.post?.requestBody?.content[json])["examples"] ?? {})
    assert.deepStrictEqual(asked("/chat/completions"), ["text", "stream"])
    assert.deepStrictEqual(asked("/videos"), ["text"])
    assert.deepStrictEqual(asked("/images/generations"), [])
  })
})

describe("the errors of the OpenAPI document", () => {
  const chat = ["paths", "/chat/completions", "post"]
  const failures: ReadonlyArray<Failure.Failure> = [
    new Failure.InvalidRequest({ message: "`n` must be 1.", param: "n" }),
    new Failure.UpstreamRejected({ param: "messages" }),
    new Failure.ContentRejected(),
    new Failure.MissingApiKey(),
    new Failure.InvalidApiKey(),
    new Failure.OrganizationSuspended(),
    new Failure.InsufficientCredits({ needed: undefined, available: -1n }),
    new Failure.InsufficientCredits({ needed: NanoUsd(5n), available: 0n, isMinimum: true }),
    new Failure.SpendLimitReached({ period: "week" }),
    new Failure.SpendLimitReached({ period: "total", spend: { ...spend, resetsAt: undefined } }),
    new Failure.SpendLimitReached({ period: "month", spend: { ...spend, held: NanoUsd(7n), resetsAt: new Date(0) } }),
    new Failure.SpendLimitReached({ owner: "organization", period: "total" }),
    new Failure.InsufficientScope({ scope: "chat" }),
    new Failure.AddressBlocked(),
    new Failure.ModelNotFound({ model: "line\nbreak `and` more", surface: "chat" }),
    new Failure.ModelNotFound({ model: "m", surface: "chat", elsewhere: { id: "a`b", surface: "video" } }),
    new Failure.ModelNotFound({ model: "m", surface: "chat", suggestions: ["a", "b/c", "d"] }),
    new Failure.BodyTooLarge({ limitBytes: 1 }),
    new Failure.RateLimited({ limit: 600 }),
    new Failure.SettleFailed(),
    new Failure.UpstreamFailed(),
    new Failure.UpstreamAuthFailed(),
    new Failure.AllProvidersFailed({ provider: "two words", status: "network" }),
    new Failure.NoHealthyProvider(),
    new Failure.Aborted(),
    new Failure.TimedOut()
  ]

  it.each(failures)("accept $_tag as it is on the wire, and no other code or type", (failure) => {
    const { body, status } = toWire(failure)
    const withError = (more: object) => ({ error: { ...body.error, ...more } })
    assert.isTrue(isAnswer(chat, status, body))
    assert.isFalse(
      isAnswer(chat, status, withError({ code: body.error.code === "timeout" ? "invalid_api_key" : "timeout" }))
    )
    assert.isFalse(isAnswer(chat, status, withError({ type: "other_error" })))
  })

  it("of responses say why a provider refuses", () => {
    const response = ["paths", "/responses", "post"]
    const reason = "This model's maximum context length is 1000 tokens."
    const tooLong = new Failure.UpstreamRejected({ param: "messages", reason, reasonCode: "context_length_exceeded" })
    const told = responsesError(toWire(tooLong))
    assert.isTrue(isAnswer(response, 400, told))
    assert.isFalse(isAnswer(chat, 400, told))
    for (const failure of failures) assert.isTrue(isAnswer(response, toWire(failure).status, toWire(failure).body))
  })

  it("differ where the endpoints do", () => {
    const render = ["paths", "/videos/{id}", "get"]
    const missing = toWire(new Failure.VideoNotFound()).body
    assert.isTrue(isAnswer(render, 404, missing))
    assert.isFalse(isAnswer(chat, 404, missing))
  })
})

describe("the OpenAPI document", () => {
  it("has no generated titles or descriptions", () => {
    const text = JSON.stringify(document)
    for (const generated of [
      /FromSelf/,
      /"_tag"/,
      /"\$id"/,
      /"title":"(?!Generation Gateway API")/,
      /character\(s\)|item\(s\)|matching the pattern/,
      /"an? (?:integer|positive|number)/
    ]) {
      assert.notMatch(text, generated)
    }
  })
})

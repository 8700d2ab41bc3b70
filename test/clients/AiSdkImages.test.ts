import { createOpenAI } from "@ai-sdk/openai"
import { generateImage } from "ai"
import { Effect, Struct } from "effect"
import OpenAI from "openai"
import { calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { gif } from "../harness/fixtures/TinyMedia.ts"
import { gateway, usualPrice } from "../harness/gateway/ImageGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { json } from "../harness/upstream/FakeUpstream.ts"
import { painting, paints } from "../harness/upstream/Replies.ts"
import { onFirst, onSecond, Upstreams } from "../harness/upstream/Upstreams.ts"
import { formIn } from "../providers/openai-images/Hosts.ts"
import { callError, customer } from "./AiSdk.ts"

const served = gateway({ art: {}, "gpt-image-9": {}, pair: { routes: [onFirst, onSecond] } })

interface Asked {
  readonly id?: string
  readonly n?: number
  /** The code that the provider refuses it with. */
  readonly fails?: string
}

const refusals: ReadonlyArray<
  readonly [
    what: string,
    account: Parameters<typeof customer>[0],
    asked: Asked,
    status: number,
    message: string,
    isRetryable: boolean
  ]
> = [
  ["no credits", { nanoUsd: 0n }, {}, 402, "Insufficient credits.", false],
  ["no scope", { scopes: ["chat"] }, {}, 403, "API key lacks scope: images", false],
  ["an unknown model", {}, { id: "nobody" }, 404, "The model `nobody` does not exist or is not an image model.", false],
  ["two images in one call", {}, { n: 2 }, 400, "`n` must be 1: send one request per image.", false],
  ["moderation", {}, { fails: "moderation_blocked" }, 400, "Content was rejected by the moderation system.", false],
  ["no provider", {}, { id: "pair" }, 503, "All providers failed (last: second 599).", true]
]

withLayer(served)("the AI SDK's images", (it) => {
  it.effect("are generated as bytes", function* () {
    const { provider, spent } = yield* customer()
    yield* (yield* Upstreams).first.script(paints())
    const { image, images, warnings } = yield* calling(() =>
      generateImage({ model: provider.imageModel("art"), prompt: "a cat", size: "1024x1024", maxRetries: 0 })
    )
    assert.deepStrictEqual(warnings, [])
    assert.lengthOf(images, 1)
    assert.strictEqual(image.mediaType, "image/png")
    assert.isTrue(painting.equals(image.uint8Array))
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("of OpenAI's own ids are read as bytes by its provider, and have a link as well", function* () {
    const { baseUrl, secret, spent } = yield* customer()
    const { first } = yield* Upstreams
    yield* first.script(paints(), paints(), paints(), paints())
    const model = createOpenAI({ baseURL: baseUrl, apiKey: secret }).imageModel("gpt-image-9")
    const made = yield* calling(() => generateImage({ model, prompt: "a cat", maxRetries: 0 }))
    assert.isTrue(painting.equals(made.image.uint8Array))
    const edited = yield* calling(() =>
      generateImage({ model, prompt: { text: "a hat", images: [painting] }, maxRetries: 0 })
    )
    assert.isTrue(painting.equals(edited.image.uint8Array))
    const client = new OpenAI({ baseURL: baseUrl, apiKey: secret, maxRetries: 0 })
    const asked = { model: "openai/gpt-image-9", prompt: "a cat" }
    const fieldsOf = (format?: "url" | "b64_json", key?: string) =>
      calling(() =>
        client.images.generate(
          { ...asked, ...(format && { response_format: format }) },
          { headers: key === undefined ? {} : { "idempotency-key": key } }
        )
      ).pipe(
        Effect.map(({ data = [] }) => data.map(({ b64_json, url }) => ({ b64_json, isLinked: url !== undefined })))
      )
    const both = [{ b64_json: painting.toString("base64"), isLinked: true }]
    assert.deepStrictEqual(yield* fieldsOf(undefined, "cat-1"), both)
    assert.deepStrictEqual(yield* fieldsOf(undefined, "cat-1"), both)
    assert.deepStrictEqual(yield* fieldsOf("url"), [{ b64_json: undefined, isLinked: true }])
    assert.strictEqual(yield* spent, 4n * usualPrice)
    const listed = yield* calling(() => client.models.retrieve("gpt-image-9"))
    assert.deepInclude(Object(listed).params, {
      key: "response_format",
      type: "select",
      options: ["url", "b64_json"]
    })
  })

  it.effect("are made one by one when several are requested", function* () {
    const { provider, spent } = yield* customer()
    yield* (yield* Upstreams).first.script(paints(), paints())
    const model = provider.imageModel("art")
    const { images } = yield* calling(() =>
      generateImage({ model, prompt: "a cat", n: 2, maxImagesPerCall: 1, maxRetries: 0 })
    )
    assert.lengthOf(images, 2)
    assert.strictEqual(yield* spent, 2n * usualPrice)
  })

  it.effect("are edited and fetched from their link", function* () {
    const { provider, spent } = yield* customer()
    const { first } = yield* Upstreams
    yield* first.script(paints(gif))
    const { image } = yield* calling(() =>
      generateImage({
        model: provider.imageModel("art"),
        prompt: { text: "blue", images: [painting, gif] },
        maxRetries: 0
      })
    )
    assert.strictEqual(image.mediaType, "image/gif")
    assert.isTrue(gif.equals(image.uint8Array))
    const call = first.calls.at(-1) ?? assert.fail("the provider was not asked")
    const form = yield* Effect.promise(() => formIn(call))
    const files = form.getAll("image[]").filter((part) => typeof part !== "string")
    assert.deepStrictEqual(files.map(Struct.get("size")), [painting.length, gif.length])
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("are replayed under their idempotency key at no charge", function* () {
    const { provider, spent } = yield* customer()
    const { first } = yield* Upstreams
    const calls = first.calls.length
    yield* first.script(json(503, {}), paints())
    const ask = calling(() =>
      generateImage({
        model: provider.imageModel("art"),
        prompt: { text: "blue", images: [painting] },
        headers: { "idempotency-key": "k" },
        maxRetries: 1
      })
    )
    const { image } = yield* ask
    assert.isTrue(painting.equals(image.uint8Array))
    const again = yield* ask
    assert.isTrue(painting.equals(again.image.uint8Array))
    assert.strictEqual(again.responses[0]?.headers?.["idempotency-replayed"], "true")
    assert.lengthOf(first.calls, calls + 2)
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect.each(refusals)(
    "are refused in the case of %s",
    function* ([, account, { fails, id = "art", n = 1 }, status, message, isRetryable]) {
      const { provider, spent } = yield* customer(account)
      const { first } = yield* Upstreams
      if (fails !== undefined) yield* first.script(json(400, { error: { message: "no", code: fails } }))
      const error = yield* thrownBy(() =>
        generateImage({ model: provider.imageModel(id), prompt: "a cat", n, maxImagesPerCall: n, maxRetries: 0 })
      )
      const { isRetryable: mayRetry, message: said, statusCode } = callError(error)
      assert.deepStrictEqual(
        { statusCode, said, mayRetry },
        { statusCode: status, said: message, mayRetry: isRetryable }
      )
      assert.strictEqual(yield* spent, 0n)
    }
  )
})

import { Effect } from "effect"
import OpenAI, { toFile } from "openai"
import { openAccount } from "../../harness/client/Account.ts"
import { rateOf } from "../../harness/client/HttpCalls.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { filePart, formOf, formType, textPart } from "../body/Forms.ts"
import { drawn, edits, generations, lastImage, layer, MediaServer, post } from "../MediaServer.ts"
import { gif, gifBytes } from "./ImageBodies.ts"

const baseBody = { model: "draw", prompt: "a cat" }

withLayer(layer)("an image", (it) => {
  it.effect("is requested with exactly what the body says", function* () {
    const account = yield* openAccount({})
    yield* post(account, generations, baseBody)
    const { params, idempotencyKey, model, record, variant } = yield* lastImage
    assert.deepStrictEqual(params, {
      ...baseBody,
      references: [],
      resolution: undefined,
      size: undefined,
      aspectRatio: undefined,
      responseFormat: "url"
    })
    assert.isUndefined(idempotencyKey)
    assert.strictEqual(model.id, "draw")
    assert.deepStrictEqual([variant.resolution, variant.price], ["1K", 40_000_000n])
    assert.deepStrictEqual(
      [record.summary.surface, record.summary.model, record.summary.caller.org, record.summary.caller.key],
      ["image", "draw", account.org, account.key]
    )
  })

  it.effect("has no lone surrogate in its prompt", function* () {
    const account = yield* openAccount({})
    for (const body of [
      String.raw`{"model":"draw","prompt":"cut \ud83d, whole \ud83d\ude00"}`,
      String.raw`{"model":"draw","prompt":"cut \ud83d, whole \ud83d\ude00"${" ".repeat(70_000)}}`
    ]) {
      yield* post(account, generations, body)
      assert.strictEqual((yield* lastImage).params.prompt, "cut \ufffd, whole 😀")
    }
  })

  it.effect("has the requested variant", function* () {
    const account = yield* openAccount({})
    yield* post(account, generations, { ...baseBody, quality: "hd", image: gif })
    const { params, variant } = yield* lastImage
    assert.deepStrictEqual(params.references, [{ _tag: "Bytes", bytes: gifBytes }])
    assert.deepStrictEqual([variant.resolution, variant.price], ["4K", 120_000_000n])
  })

  it.effect("is answered with exactly its link", function* () {
    const account = yield* openAccount({ rpm: 5 })
    const { headers, status, text } = yield* post(account, generations, baseBody)
    assert.strictEqual(status, 200)
    assert.strictEqual(text, '{"created":1700000000,"size":"1536x1024","data":[{"url":"https://media.test/a.png"}]}')
    assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
    assert.deepStrictEqual(rateOf({ headers }), { limit: 5, remaining: 4 })
    assert.isNull(headers.get("idempotency-replayed"))
    assert.isNull(headers.get("x-gateway-sandbox"))
  })

  it.effect("is answered with its bytes, marked as the sandbox's or a replay", function* () {
    const { script } = (yield* MediaServer).images
    const account = yield* openAccount({})
    const image = { bytes: gifBytes }
    script(
      Effect.succeed({ ...drawn, image, size: undefined, revisedPrompt: "a grey cat", sandbox: true, replayed: true })
    )
    const { headers, text } = yield* post(account, generations, baseBody)
    assert.strictEqual(text, `{"created":1700000000,"data":[{"b64_json":"${gif}","revised_prompt":"a grey cat"}]}`)
    assert.strictEqual(headers.get("idempotency-replayed"), "true")
    assert.strictEqual(headers.get("x-gateway-sandbox"), "true")
  })

  it.effect("is answered whole and with its length at any size", function* () {
    const { script } = (yield* MediaServer).images
    const account = yield* openAccount({})
    const bytes = Buffer.alloc(5_000_001, "a picture of some size")
    script(Effect.succeed({ ...drawn, image: { bytes }, revisedPrompt: 'a "grey" cät' }))
    const { headers, text } = yield* post(account, generations, baseBody)
    const body = {
      created: 1_700_000_000,
      size: "1536x1024",
      data: [{ b64_json: bytes.toString("base64"), revised_prompt: 'a "grey" cät' }]
    }
    assert.isTrue(text === JSON.stringify(body))
    assert.strictEqual(headers.get("content-length"), String(Buffer.byteLength(text)))
    assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
  })

  it.effect("is the same request in JSON and in a form", function* () {
    const account = yield* openAccount({})
    const parts = [textPart("model", "draw"), textPart("prompt", "a cat"), filePart("image", gifBytes)]
    yield* post(account, edits, { ...baseBody, image: [gif] })
    const { params } = yield* lastImage
    for (const boundary of ["first", "second"]) {
      const { status } = yield* post(account, edits, formOf(parts, boundary), {
        headers: { "content-type": formType(boundary) }
      })
      assert.strictEqual(status, 200)
      assert.deepStrictEqual((yield* lastImage).params, params)
    }
  })

  it.effect("is generated and edited by the official client", function* () {
    const { url } = yield* MediaServer
    const { secret } = yield* openAccount({})
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: secret, maxRetries: 0 })
    const extra = { resolution: "4K", image: ["https://a.test/a.png"] }
    const generated = yield* calling(() =>
      openai.images.generate(
        { ...baseBody, ...extra, n: 1, size: "1024x1024" },
        { headers: { "Idempotency-Key": "k" } }
      )
    )
    assert.strictEqual(generated.data?.[0]?.url, "https://media.test/a.png")
    assert.deepStrictEqual((yield* lastImage).params, {
      ...baseBody,
      references: [{ _tag: "Url", url: "https://a.test/a.png" }],
      resolution: "4K",
      size: "1024x1024",
      aspectRatio: undefined,
      responseFormat: "url"
    })
    assert.strictEqual((yield* lastImage).idempotencyKey, "k")

    const bytes = { _tag: "Bytes", bytes: gifBytes } as const
    const files = yield* Effect.promise(() => Promise.all([toFile(gifBytes, "图.gif"), toFile(gifBytes, 'a"b.gif')]))
    for (const image of [files[0], files]) {
      yield* calling(() => openai.images.edit({ ...baseBody, image, n: 1, response_format: "b64_json" }))
      assert.deepStrictEqual((yield* lastImage).params, {
        ...baseBody,
        references: Array.isArray(image) ? [bytes, bytes] : [bytes],
        resolution: undefined,
        size: undefined,
        aspectRatio: undefined,
        responseFormat: "b64_json"
      })
    }
  })
})

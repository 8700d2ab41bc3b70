import { createReadStream } from "node:fs"
import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Schema } from "effect"
import OpenAI, { toFile, type Uploadable } from "openai"
import type { ImagesResponse } from "openai/resources/images"
import { openAccount } from "../harness/client/Account.ts"
import { assertLinked } from "../harness/client/MediaClient.ts"
import { asJson, calling } from "../harness/client/OfficialClients.ts"
import { assertCharged } from "../harness/database/Money.ts"
import { gif } from "../harness/fixtures/TinyMedia.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { painting } from "../harness/upstream/Replies.ts"
import { pixelsOf } from "../providers/sandbox/PictureSamples.ts"

const gateway = Served.layer(Effect.map(freePort, (port) => ({ env: { SANDBOX: "true", PORT: String(port) } })))
const model = "gpt-image-1-mini"
const sizedModel = "gemini-3.1-flash-image"

const Listed = Schema.decodeUnknown(Schema.Struct({ pricing: Schema.Struct({ per_image_usd: Schema.Number }) }))

/** What an image costs, by the list of models, in nano-USD. */
const priceOf = Effect.fnUntraced(function* (openai: OpenAI, id: string) {
  const { data } = yield* calling(() => openai.models.list())
  const { pricing } = yield* Listed(asJson(data.find((one) => one.id === id)))
  return BigInt(Math.round(pricing.per_image_usd * 1e9))
})

const only = ({ data = [] }: ImagesResponse) => {
  assert.lengthOf(data, 1)
  return data[0] ?? assert.fail("no image")
}

const download = (url: string | undefined) =>
  Effect.promise(async () => Buffer.from(await (await fetch(url ?? "")).arrayBuffer()))

const sizeOf = (bytes: Uint8Array) => {
  const { height, width } = pixelsOf(bytes)
  return [width, height]
}

const file = Effect.map(temporaryDirectory, (directory) => path.join(directory, "referência.png")).pipe(
  Effect.tap((name) => Effect.promise(() => writeFile(name, painting)))
)

withLayer(gateway)("the official client and the sandbox's images", (it) => {
  it.effect("generates an image behind a link that needs no key", function* () {
    const { openai, spent } = yield* Served.customer()
    const prompt = "A red fox"
    const { data, response } = yield* calling(() => openai.images.generate({ model, prompt }).withResponse())
    assert.strictEqual(response.headers.get("x-gateway-sandbox"), "true")
    assert.strictEqual(response.headers.get("x-ratelimit-remaining"), "599")
    assert.isNull(response.headers.get("idempotency-replayed"))
    assert.isAtMost(Math.abs(data.created - Date.parse(response.headers.get("date") ?? "") / 1000), 5)
    // The client that knows such an id reads the bytes.
    const { b64_json = "", url = "", ...more } = only(data)
    assert.deepStrictEqual(more, {})
    const bytes = yield* download(url)
    assert.isTrue(Buffer.from(b64_json, "base64").equals(bytes))
    yield* assertLinked(url, bytes)
    assert.deepStrictEqual(sizeOf(bytes), [1_024, 1_024])
    assert.strictEqual(yield* spent, yield* priceOf(openai, model))

    const again = only(yield* calling(() => openai.images.generate({ model, prompt })))
    assert.notStrictEqual(again.url, url, "each image has a link of its own")
  })

  it.effect("generates the same image as bytes", function* () {
    const { openai } = yield* Served.customer()
    const prompt = "Grüß dich 👋"
    const linked = only(yield* calling(() => openai.images.generate({ model, prompt, response_format: "url" })))
    const { b64_json = "", ...more } = only(
      yield* calling(() => openai.images.generate({ model, prompt, response_format: "b64_json" }))
    )
    assert.deepStrictEqual(more, {})
    assert.isTrue(Buffer.from(b64_json, "base64").equals(yield* download(linked.url)))
  })

  it.effect("generates at the resolution named in our own field or by its quality", function* () {
    const { openai } = yield* Served.customer()
    const image = { model: sizedModel, prompt: "Large", response_format: "b64_json" as const, n: 1 }
    const ours = { resolution: "2K" }
    const sized = only(yield* calling(() => openai.images.generate({ ...image, ...ours, size: "1024x1024" })))
    assert.deepStrictEqual(sizeOf(Buffer.from(sized.b64_json ?? "", "base64")), [2_048, 2_048])
    const hd = only(yield* calling(() => openai.images.generate({ ...image, quality: "hd" })))
    assert.deepStrictEqual(sizeOf(Buffer.from(hd.b64_json ?? "", "base64")), [4_096, 4_096])
  })

  it.effect("generates and edits in the shape that the request names, at that shape's price", function* () {
    const { openai, spent } = yield* Served.customer()
    const bytes = { prompt: "Tall", response_format: "b64_json" as const }
    const dimensions = ({ data, size }: ImagesResponse) => {
      const sides = sizeOf(Buffer.from(data?.[0]?.b64_json ?? "", "base64"))
      assert.strictEqual(size, sides.join("x"))
      return sides
    }
    const tall = yield* calling(() => openai.images.generate({ ...bytes, model, size: "1024x1536" }))
    assert.deepStrictEqual(dimensions(tall), [1_024, 1_536])
    assert.strictEqual(yield* spent, 15_000_000n)
    const image = yield* Effect.promise(() => toFile(painting, "a.png"))
    const wide = yield* calling(() => openai.images.edit({ ...bytes, model, image, size: "1536x1024" }))
    assert.deepStrictEqual(dimensions(wide), [1_536, 1_024])
    const ours = { model: sizedModel, resolution: "2K", aspect_ratio: "16:9" }
    const ratio = yield* calling(() => openai.images.generate({ ...bytes, ...ours }))
    assert.deepStrictEqual(dimensions(ratio), [2_736, 1_536])
    const square = yield* calling(() => openai.images.generate({ ...bytes, model, size: "auto" }))
    assert.deepStrictEqual(dimensions(square), [1_024, 1_024])
    const near = yield* calling(() => openai.images.generate({ ...bytes, model, size: "1792x1024" }))
    assert.deepStrictEqual(dimensions(near), [1_536, 1_024])
  })

  it.effect("makes a landscape, a portrait and a square of every model, or names what it makes", function* () {
    const { openai } = yield* Served.customer()
    const image = yield* Effect.promise(() => toFile(painting, "a.png"))
    const sizes = [
      ["1536x1024", 1],
      ["1024x1536", -1],
      ["1024x1024", 0]
    ] as const
    for (const id of ["gpt-image-2", "recraft-v4", "qwen-image-2", "imagen-4.0-generate-001"]) {
      for (const [size, orientation] of sizes) {
        const made = yield* calling(() => openai.images.generate({ model: id, prompt: "A fox", size }))
        const [width = 0, height = 0] = (made.size ?? "").split("x").map(Number)
        assert.strictEqual(Math.sign(width - height), orientation, `${id} ${made.size}`)
        assert.deepStrictEqual(sizeOf(yield* download(only(made).url)), [width, height])
      }
    }
    const edited = yield* calling(() =>
      openai.images.edit({ model: "gpt-image-2", prompt: "A fox", image, size: "1024x1536" })
    )
    assert.strictEqual(edited.size, "1024x1536")
  })

  it.scoped("edits one image given in any form it supports", function* () {
    const { openai, spent } = yield* Served.customer()
    const name = yield* file
    const ways: ReadonlyArray<Uploadable> = [
      new File([new Uint8Array(painting)], "a.png", { type: "image/png" }),
      yield* Effect.promise(() => toFile(painting, "b.png")),
      createReadStream(name),
      new Response(new Uint8Array(painting))
    ]
    const links = yield* Effect.forEach(ways, (image) =>
      Effect.map(
        calling(() => openai.images.edit({ model, prompt: "Blue", image })),
        (answer) => only(answer).url
      )
    )
    const [first, ...others] = yield* Effect.forEach(links, download)
    assert.deepStrictEqual(sizeOf(first ?? Buffer.alloc(0)), [1_024, 1_024])
    for (const other of others) assert.isTrue(first?.equals(other))
    const plain = only(yield* calling(() => openai.images.generate({ model, prompt: "Blue" })))
    assert.isFalse(first?.equals(yield* download(plain.url)), "the reference is seen")
    assert.strictEqual(yield* spent, 5n * (yield* priceOf(openai, model)))
  })

  it.effect("edits several images given as files or in our own fields", function* () {
    const { openai } = yield* Served.customer()
    const files = yield* Effect.promise(() =>
      Promise.all([toFile(painting, "a.png"), toFile(gif, "b.gif", { type: "image/gif" })])
    )
    const asked = { model, prompt: "Both", response_format: "b64_json" as const }
    const edited = only(yield* calling(() => openai.images.edit({ ...asked, image: files })))
    const one = only(yield* calling(() => openai.images.edit({ ...asked, image: files.slice(0, 1) })))
    assert.notStrictEqual(edited.b64_json, one.b64_json)
    const ours = { image: [painting.toString("base64"), `data:image/gif;base64,${gif.toString("base64")}`] }
    const generated = only(yield* calling(() => openai.images.generate({ ...asked, ...ours })))
    assert.isTrue(generated.b64_json === edited.b64_json, "the same by either path")
  })
})

describe("a link", () => {
  deploymentTest("is good after a restart, and so is the result under its key", function* ({ gateway: start }) {
    const env = { CATALOG_FILE: "", SANDBOX: "true", PORT: String(yield* freePort) }
    const before = yield* start({ env })
    const { org, secret } = yield* openAccount({})
    const openai = new OpenAI({ baseURL: `${before.url}/v1`, apiKey: secret, maxRetries: 0 })
    const headers = { "Idempotency-Key": "k" }
    const generate = calling(() => openai.images.generate({ model, prompt: "For ever" }, { headers }))
    const made = yield* generate
    const { url = "" } = only(made)
    const bytes = yield* download(url)
    yield* assertLinked(url, bytes)
    yield* before.signal("SIGTERM")
    assert.deepStrictEqual(yield* before.ended, { code: 0, signal: null })

    const after = yield* start({ env })
    assert.strictEqual(after.url, before.url)
    yield* assertLinked(url, bytes)
    assert.deepStrictEqual(yield* generate, made)
    yield* assertCharged(org, [yield* priceOf(openai, model)])
  })
})

import { Effect } from "effect"
import type { ImageEditParams, ImageGenerateParams } from "openai/resources/images"
import type { ImageRoute } from "../../../src/domain/Model.ts"
import * as OpenAiImages from "../../../src/providers/openai-images/OpenAiImages.ts"
import {
  options as decoder,
  encodeEdit,
  encodeGeneration,
  type Options,
  type WireFields,
  type WireGeneration
} from "../../../src/providers/openai-images/OpenAiImages.ts"
import { picture, request } from "../../contracts/ImageHarness.ts"
import { secret, services } from "../../contracts/MediaHarness.ts"
import { wrongOptions } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { formIn, routeTo } from "./Hosts.ts"

/** Checks the bodies against the types of OpenAI's client. */
const asOfficial = (body: WireGeneration): ImageGenerateParams => body
const asOfficialEdit = (fields: WireFields): Omit<ImageEditParams, "image"> => fields

const all = {
  quality: "medium",
  size: "1024x1024",
  sizes: { "4K": "3840x2160" },
  background: "opaque",
  output_format: "webp",
  moderation: "low",
  response_format: "b64_json"
} satisfies Options

const drawn = Fake.json(200, { created: 1, data: [{ b64_json: "AAAA" }] })

/** Returns the request that the host receives with these options. */
const sent = (options: ImageRoute["options"], chatRequest = request()) =>
  Effect.gen(function* () {
    const fake = yield* Fake.make
    const { image } = yield* OpenAiImages.make
    if (image === undefined) return yield* Effect.dieMessage("no images")
    yield* fake.script(drawn)
    yield* image.generate(routeTo(`${fake.url}/v1`, options), chatRequest)
    return yield* fake.received
  }).pipe(Effect.provide(services))

const png = picture("image/png", 1)
const gif = picture("image/gif", 2)
const usual = { model: "vendor/draw-1", prompt: "A red bicycle", n: 1 }
const dataUrl = (bytes: Uint8Array, type: string) => `data:${type};base64,${Buffer.from(bytes).toString("base64")}`

describe("a request to an openai-images host", () => {
  it("has the size that the customer chose in the place of the route's own", () => {
    const chatRequest = request({ shape: { aspectRatio: "2:3", size: "1024x1536" } })
    for (const encode of [encodeGeneration, encodeEdit]) {
      assert.strictEqual(encode("vendor/draw-1", chatRequest, all).size, "1024x1536")
    }
  })

  it("says what the route's options say, and the size of the resolution", () => {
    const chatRequest = request({ resolution: "4K" })
    const { quality, background, output_format, response_format, moderation } = all
    const fields = { ...usual, size: "3840x2160", quality, background, output_format, response_format }
    assert.deepStrictEqual<unknown>(asOfficial(encodeGeneration("vendor/draw-1", chatRequest, all)), {
      ...fields,
      moderation
    })
    assert.deepStrictEqual<unknown>(asOfficialEdit(encodeEdit("vendor/draw-1", chatRequest, all)), fields)
  })

  const sizes = { "1K": "1024x1024", "2K": "2048x2048" }
  for (const [name, options, resolution, size] of [
    ["one size for all", { size: "1536x1024" }, "4K", "1536x1024"],
    ["a size for each resolution", { sizes }, "2K", "2048x2048"],
    ["the common size where a resolution has none of its own", { sizes, size: "auto" }, "4K", "auto"],
    ["no size at all", {}, "1K", undefined]
  ] as const) {
    it(name, () => {
      assert.strictEqual(encodeGeneration("m", request({ resolution }), options).size, size)
    })
  }

  it.scopedLive("sends nothing that neither the customer nor the route asked for", function* () {
    const { body, headers, method, path } = yield* sent({})
    assert.deepStrictEqual([method, path], ["POST", "/v1/images/generations"])
    assert.deepStrictEqual([headers.authorization, headers["content-type"]], [`Bearer ${secret}`, "application/json"])
    assert.deepStrictEqual(body, usual)
  })

  it.scopedLive("adds the route's own fields, but lets none of them replace what was asked for", function* () {
    const { body } = yield* sent({
      extra_body: { seed: 7, prompt: "theirs", n: 4 },
      extra_edit_body: { only: "edits" }
    })
    assert.deepStrictEqual(body, { ...usual, seed: 7 })
  })

  it.scopedLive("edits with files under their own names and types", function* () {
    const options = {
      quality: "low",
      moderation: "low",
      extra_body: { seed: 7 },
      extra_edit_body: { a: [1], f: "high" }
    }
    const received = yield* sent(options, request({ references: [png, gif] }))
    assert.strictEqual(received.path, "/v1/images/edits")
    assert.strictEqual(received.headers["content-length"], String(received.bytes.length))
    const form = yield* Effect.promise(() => formIn(received))
    const plain = [...form].map(([name, value]) =>
      typeof value === "string" ? [name, value] : [name, value.name, value.type, value.size]
    )
    assert.sameDeepMembers(plain, [
      ["model", "vendor/redraw-1"],
      ["prompt", "A red bicycle"],
      ["n", "1"],
      ["quality", "low"],
      ["seed", "7"],
      ["a", "[1]"],
      ["f", "high"],
      ["image[]", "image-1.png", "image/png", png.bytes.length],
      ["image[]", "image-2.gif", "image/gif", gif.bytes.length]
    ])
  })

  it.scopedLive("edits with the field's other name", function* () {
    const form = yield* Effect.flatMap(sent({ image_field: "image" }, request({ references: [png] })), (received) =>
      Effect.promise(() => formIn(received))
    )
    assert.deepStrictEqual([form.getAll("image").length, form.getAll("image[]").length], [1, 0])
  })

  it.scopedLive("no field name breaks out of its part", function* () {
    const options = { extra_body: { 'a"\r\nx-evil: 1\r\n\r\n': "v" } }
    const received = yield* sent(options, request({ references: [png] }))
    const form = yield* Effect.promise(() => formIn(received))
    assert.sameMembers([...form.keys()], ["model", "prompt", "n", 'a"\r\nx-evil: 1\r\n\r\n', "image[]"])
  })

  for (const [name, references, images] of [
    ["one", [png], { image: { type: "image_url", url: dataUrl(png.bytes, "image/png") } }],
    [
      "several",
      [png, gif],
      {
        images: [
          { type: "image_url", url: dataUrl(png.bytes, "image/png") },
          { type: "image_url", url: dataUrl(gif.bytes, "image/gif") }
        ]
      }
    ]
  ] as const) {
    it.scopedLive(`edits ${name} in JSON, where the host wants that`, function* () {
      const { body, path } = yield* sent({ edits: "json" }, request({ references }))
      assert.strictEqual(path, "/v1/images/edits")
      assert.deepStrictEqual(body, { ...usual, model: "vendor/redraw-1", ...images })
    })
  }

  for (const options of [
    { qualty: "medium" },
    { quality: "ultra" },
    { size: 1024 },
    { size: "" },
    { sizes: { "8K": "7680x4320" } },
    { response_format: "url" }
  ]) {
    it(`wrong options are an error, and not a dearer picture: ${JSON.stringify(options)}`, () => {
      const [key = ""] = Object.keys(options)
      assert.include(wrongOptions(decoder.decode(options)), key)
    })
  }
})

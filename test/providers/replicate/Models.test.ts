import { Either, Schema } from "effect"
import type { Model } from "../../../src/domain/Model.ts"
import { encodeImage, encodeVideo, type Submission } from "../../../src/providers/jobs/JobAdapter.ts"
import { format } from "../../../src/providers/replicate/Replicate.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { asSent } from "../../harness/upstream/FakeUpstream.ts"
import { tellable } from "../jobs/Hosts.ts"

const picture = { type: "image/png", bytes: Buffer.from("x") } as const
const prompt = "A red bicycle"

const Image = Schema.String.pipe(Schema.startsWith("data:image/png;base64,"))
const maybe = <A>(schema: Schema.Schema<A>) => Schema.optionalWith(schema, { exact: true })
const pictures = maybe(Schema.Array(Image))
const googleRatio = maybe(Schema.Literal("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"))
const sized = Schema.Struct({
  prompt: Schema.String,
  aspect_ratio: Schema.Literal("custom"),
  width: Schema.Int.pipe(Schema.between(256, 2048), Schema.multipleOf(32)),
  height: Schema.Int.pipe(Schema.between(256, 2048), Schema.multipleOf(32))
})
const recraftSizes =
  "1024x1024 1536x768 768x1536 1280x832 832x1280 1216x896 896x1216 1152x896 896x1152 832x1344 1280x896 896x1280 1344x768 768x1344".split(
    " "
  )
const veo = { prompt: Schema.String, image: maybe(Image), duration: Schema.Literal(4, 6, 8) }
const wan = { prompt: Schema.String, duration: Schema.Literal(5, 10, 15) }

/** The input that each model accepts, and the fields that determine its price. Source: its page at Replicate, 2026. */
const inputs: Readonly<Record<string, Schema.Schema.AnyNoContext>> = {
  "openai/gpt-image-2": Schema.Struct({
    prompt: Schema.String,
    quality: Schema.Literal("medium"),
    aspect_ratio: Schema.Literal("1:1", "3:2", "2:3"),
    number_of_images: Schema.Literal(1),
    input_images: pictures
  }),
  "google/nano-banana-pro": Schema.Struct({
    prompt: Schema.String,
    resolution: Schema.Literal("1K", "2K", "4K"),
    allow_fallback_model: Schema.Literal(false),
    aspect_ratio: googleRatio,
    image_input: pictures
  }),
  "google/nano-banana-2": Schema.Struct({
    prompt: Schema.String,
    resolution: Schema.Literal("1K", "2K", "4K"),
    google_search: Schema.Literal(false),
    image_search: Schema.Literal(false),
    aspect_ratio: googleRatio,
    image_input: pictures
  }),
  "google/nano-banana": Schema.Struct({ prompt: Schema.String, aspect_ratio: googleRatio, image_input: pictures }),
  "black-forest-labs/flux-2-pro": sized,
  "black-forest-labs/flux-2-max": sized,
  "bytedance/seedream-4.5": Schema.Struct({
    prompt: Schema.String,
    size: Schema.Literal("2K", "4K"),
    sequential_image_generation: Schema.Literal("disabled"),
    max_images: Schema.Literal(1),
    image_input: pictures
  }),
  "qwen/qwen-image-2": Schema.Struct({ prompt: Schema.String }),
  "ideogram-ai/ideogram-v3-balanced": Schema.Struct({
    prompt: Schema.String,
    aspect_ratio: maybe(Schema.Literal("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9"))
  }),
  "recraft-ai/recraft-v4": Schema.Struct({
    prompt: Schema.String,
    size: Schema.Literal(...recraftSizes)
  }),
  "google/veo-3.1-lite": Schema.Struct({ ...veo, resolution: Schema.Literal("720p") }),
  "google/veo-3.1": Schema.Struct({ ...veo, resolution: Schema.Literal("720p"), generate_audio: Schema.Boolean }),
  "google/veo-3.1-fast": Schema.Struct({ ...veo, resolution: Schema.Literal("720p"), generate_audio: Schema.Boolean }),
  "kwaivgi/kling-v2.6": Schema.Struct({
    prompt: Schema.String,
    start_image: maybe(Image),
    duration: Schema.Literal(5, 10),
    generate_audio: Schema.Literal(false)
  }),
  "bytedance/seedance-2.0": Schema.Struct({
    prompt: Schema.String,
    image: maybe(Image),
    duration: Schema.Int.pipe(Schema.between(4, 15)),
    resolution: Schema.Literal("720p")
  }),
  "minimax/hailuo-2.3": Schema.Struct({
    prompt: Schema.String,
    first_frame_image: Image,
    duration: Schema.Literal(6, 10),
    resolution: Schema.Literal("768p")
  }),
  "wan-video/wan-2.6-t2v": Schema.Struct({ ...wan, size: Schema.Literal("1280*720", "720*1280") }),
  "wan-video/wan-2.6-i2v": Schema.Struct({ ...wan, image: Image, resolution: Schema.Literal("720p") })
}

/** All requests that the model's routes at Replicate support. */
const submissions = (model: Model): ReadonlyArray<Submission> => {
  if (model.surface === "chat") return []
  if (model.surface === "video") {
    return model.routes.flatMap((route) =>
      route.seconds.flatMap((seconds) =>
        [undefined, picture]
          .filter((reference) => (reference === undefined ? route.referenceImage !== "required" : route.imageModel))
          .map((reference) => Either.getOrThrow(encodeVideo(format, route, { prompt, seconds, reference })))
      )
    )
  }
  return model.routes.flatMap((route) =>
    tellable(model, route).flatMap((told) =>
      [[], [picture, picture]]
        .filter((references) => references.length === 0 || route.editModel !== undefined)
        .map((references) => Either.getOrThrow(encodeImage(format, route, { prompt, ...told, references })))
    )
  )
}

describe("the built-in catalog's routes at Replicate", () => {
  it.effect("ask each model for what it takes, and for what bounds its price", function* () {
    const environment = { REPLICATE_API_TOKEN: "k" }
    const { models } = yield* Catalog.make(options({ text: builtIn, environment }))
    const all = models.flatMap(submissions)
    assert.sameMembers([...new Set(all.map(({ model }) => model))], Object.keys(inputs))
    for (const { input, model } of all) {
      const schema = inputs[model]
      if (schema === undefined) return assert.fail(model)
      const read = Schema.decodeUnknownEither(schema, { onExcessProperty: "error", errors: "all" })(asSent(input))
      assert.isTrue(Either.isRight(read), `${model}: ${Either.isLeft(read) ? read.left.message : ""}`)
    }
  })
})

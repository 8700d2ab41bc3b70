import { Either } from "effect"
import type { ImageRoute, Resolution, Shape, VideoRoute } from "../../../src/domain/Model.ts"
import { format as falFormat } from "../../../src/providers/fal-queue/FalQueue.ts"
import { encodeImage, encodeVideo } from "../../../src/providers/jobs/JobAdapter.ts"
import { format as replicateFormat } from "../../../src/providers/replicate/Replicate.ts"
import { wrongOptions } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { asSent } from "../../harness/upstream/FakeUpstream.ts"
import * as Fal from "../fal-queue/Hosts.ts"
import * as Replicate from "../replicate/Hosts.ts"

const picture = { type: "image/png", bytes: Buffer.from("a picture").subarray(2) } as const
const uri = `data:image/png;base64,${Buffer.from("picture").toString("base64")}`

const vendors = {
  fal: {
    format: falFormat,
    video: Fal.videoRoute("https://queue.fal.run"),
    image: Fal.imageRoute("https://queue.fal.run")
  },
  replicate: {
    format: replicateFormat,
    video: Replicate.clipRoute("https://api.replicate.com"),
    image: Replicate.drawRoute("https://api.replicate.com")
  }
}
type Vendor = keyof typeof vendors
type Options = VideoRoute["options"]

const video = (vendor: Vendor, options: Options, references: number, over: Partial<VideoRoute> = {}) =>
  encodeVideo(
    vendors[vendor].format,
    { ...vendors[vendor].video, ...over, options },
    { prompt: "p", seconds: 6, reference: references > 0 ? picture : undefined }
  )

const image = (
  vendor: Vendor,
  options: Options,
  references = 0,
  over: Partial<ImageRoute> = { resolutions: new Set<Resolution>(["2K"]) },
  shape?: Shape
) =>
  encodeImage(
    vendors[vendor].format,
    { ...vendors[vendor].image, options, ...over },
    { prompt: "p", resolution: "2K", shape, references: Array.from({ length: references }, () => picture) }
  )

const input = <E>(made: Either.Either<{ readonly input: unknown }, E>) => asSent(Either.getOrThrow(made).input)
const length = { duration: 6, prompt: "p" }
const theirs = { resolution: "720p", generate_audio: false, prompt: "theirs", duration: 99 }
const both = { with_image: { resolution: "720p" }, without_image: { size: "1280*720" } }

const videos: ReadonlyArray<[title: string, Vendor, Options, references: number, object, Partial<VideoRoute>?]> = [
  ["options that are fields, under the request's own", "fal", theirs, 0, { ...theirs, ...length }],
  ["fixed fields, under the request's own", "replicate", { input: theirs }, 0, { ...theirs, ...length }],
  [
    "the length where the route wants it",
    "fal",
    { seconds_field: "num_seconds" },
    0,
    { num_seconds: "6s", prompt: "p" },
    { secondsAs: "suffixed" }
  ],
  ["a reference in fal's usual field", "fal", {}, 1, { image_url: uri, ...length }],
  ["a reference in Replicate's usual field", "replicate", {}, 1, { image: uri, ...length }],
  ["a reference in another field", "fal", { image_field: "start_image_url" }, 1, { start_image_url: uri, ...length }],
  ["a reference in a list", "fal", { image_field: "image_urls" }, 1, { image_urls: [uri], ...length }],
  [
    "what goes with a reference",
    "fal",
    { with_image: { fidelity: "low" } },
    1,
    { image_url: uri, fidelity: "low", ...length }
  ],
  ["nothing of that without one", "fal", { with_image: { fidelity: "low" } }, 0, length],
  ["what goes without a reference", "replicate", both, 0, { size: "1280*720", ...length }],
  ["what goes with one only", "replicate", both, 1, { image: uri, resolution: "720p", ...length }]
]

const prompt = "p"
const images: ReadonlyArray<[title: string, Vendor, Options, references: number, object]> = [
  ["references in fal's list", "fal", {}, 2, { image_urls: [uri, uri], prompt }],
  ["a reference in fal's field for one", "fal", { image_field: "image_url" }, 1, { image_url: uri, prompt }],
  ["references in Replicate's list", "replicate", {}, 2, { image_input: [uri, uri], prompt }],
  ["references in another list", "replicate", { image_field: "input_images" }, 2, { input_images: [uri, uri], prompt }],
  ["a reference in Replicate's field for one", "replicate", { image_field: "image" }, 1, { image: uri, prompt }],
  [
    "a list where the route says so",
    "replicate",
    { image_field: "image", image_list: true },
    1,
    { image: [uri], prompt }
  ],
  ["no list where the route says so", "replicate", { image_list: false }, 1, { image_input: uri, prompt }],
  [
    "the size that a resolution has on the route",
    "replicate",
    { size_field: "size", sizes: { "2K": "2K" }, input: { aspect_ratio: "1:1" } },
    0,
    { aspect_ratio: "1:1", size: "2K", prompt }
  ]
]

describe("the input of a job", () => {
  for (const [title, vendor, options, references, expected, over] of videos) {
    it(`for a clip has ${title}`, () =>
      assert.deepStrictEqual<unknown>(input(video(vendor, options, references, over)), expected))
  }

  for (const [title, vendor, options, references, expected] of images) {
    it(`for a picture has ${title}`, () =>
      assert.deepStrictEqual<unknown>(input(image(vendor, options, references)), expected))
  }

  it("has the shape that the customer chose, as the model wants it", () => {
    const shape = { aspectRatio: "2:3", size: "1024x1536" }
    const route = { resolutions: new Set<Resolution>(["2K"]), aspectRatios: new Set(["1:1", "2:3"]) }
    const shaped = (vendor: "fal" | "replicate", options: Readonly<Record<string, unknown>>) =>
      input(image(vendor, options, 0, route, shape))
    const fixed = { image_size: "square_hd", shape_field: "image_size" }
    assert.deepStrictEqual(shaped("fal", {}), { aspect_ratio: "2:3", prompt })
    assert.deepStrictEqual(shaped("fal", { ...fixed, shape_as: "size" }), { image_size: "1024x1536", prompt })
    const pixels = { width: 1024, height: 1536 }
    assert.deepStrictEqual(shaped("fal", { ...fixed, shape_as: "pixels" }), { image_size: pixels, prompt })
    const sized = { size_field: "size", sizes: { "2K": "2K" }, input: { aspect_ratio: "1:1" } }
    assert.deepStrictEqual(shaped("replicate", sized), { aspect_ratio: "2:3", size: "2K", prompt })
  })

  it("has the size of one resolution among several", () => {
    const sizes = { "1K": "square", "2K": { width: 2048, height: 2048 }, "4K": "auto_4K" }
    const all = { resolutions: new Set<Resolution>(["1K", "2K", "4K"]) }
    assert.deepStrictEqual(input(image("fal", { sizes }, 0, all)), { resolution: sizes["2K"], prompt })
    const named = image("fal", { sizes, size_field: "image_size" }, 0, all)
    assert.deepStrictEqual(input(named), { image_size: sizes["2K"], prompt })
  })

  it("is none where a list of references meets a field for one", () => {
    for (const made of [image("fal", { image_field: "image_url" }, 2), image("replicate", { image_list: false }, 2)]) {
      const failure = Either.getOrThrow(Either.flip(made))
      assert.deepStrictEqual([failure.class, failure.param, failure.isUnsent], ["request", "image", true])
    }
  })

  it("is none where a large picture would be sold that the host was not asked for", () => {
    const all = { resolutions: new Set<Resolution>(["1K", "2K"]) }
    const sizes = { "1K": "1K" }
    for (const made of [image("fal", {}, 0, all), image("fal", { sizes }, 0, all), image("fal", { sizes })]) {
      const failure = Either.getOrThrow(Either.flip(made))
      assert.deepStrictEqual([failure.class, failure.isUnsent], ["retry", true])
      assert.include(failure.detail, "sizes has no 2K")
    }
  })

  const wrong: ReadonlyArray<[Vendor, Options, string]> = [
    ["fal", { image_field: 7 }, "option image_field"],
    ["fal", { image_field: "Image Url" }, "option image_field: must be the name of a field"],
    ["fal", { seconds_field: "" }, "option seconds_field"],
    ["fal", { size_field: ["a"] }, "option size_field"],
    ["fal", { sizes: "2K" }, "option sizes"],
    ["fal", { sizes: { "8K": "8K" } }, "option sizes.8K"],
    ["fal", { sizes: { "1K": 1024 } }, "option sizes.1K"],
    ["fal", { with_image: "high" }, "option with_image"],
    ["replicate", { image_feild: "image" }, "option image_feild: is unexpected"],
    ["replicate", { image_list: "yes" }, "option image_list"],
    ["replicate", { input: ["a"] }, "option input"],
    ["replicate", { input: { "no field": 1 } }, "option input.no field"],
    ["replicate", { sizes: { "8K": "8K" } }, "option sizes.8K"],
    ["replicate", { resolution: "720p" }, "option resolution: is unexpected"]
  ]
  for (const [vendor, options, message] of wrong) {
    it(`is refused with a reason for the options ${JSON.stringify(options)} of ${vendor}`, () =>
      assert.include(wrongOptions(vendors[vendor].format.optionsDecoder.decode(options)), message))
  }
})

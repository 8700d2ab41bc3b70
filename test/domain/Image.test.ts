import { Either } from "effect"
import { chooseVariant, type ImageParams } from "../../src/domain/Image.ts"
import type { ImageModel, ImageRoute, ImageVariant, Resolution, Shape } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { shapeKey, shapeOf } from "../../src/domain/Shape.ts"
import { assert, describe, it } from "../harness/It.ts"
import { base, decodeBody, gif } from "../http/images/ImageBodies.ts"
import { imageRoute } from "../providers/sandbox/SandboxMedia.ts"

type Asked = { readonly [field: string]: unknown }

describe("what a model makes of it", () => {
  const variant = (resolution: Resolution, price: bigint) => ({
    resolution,
    shape: undefined,
    price: NanoUsd(price),
    official: undefined
  })
  const model = (more: Partial<ImageModel>): ImageModel => ({
    id: "<model>",
    surface: "image",
    created: 0,
    routes: [],
    variants: [variant("1K", 1n)],
    edit: false,
    maxReferences: 8,
    ...more
  })
  const several = model({ variants: [variant("2K", 2n), variant("1K", 1n), variant("4K", 4n)], edit: true })
  const plain = model({})

  it.each<[Asked, ImageModel, Resolution]>([
    [{}, plain, "1K"],
    [{}, several, "2K"],
    [{ resolution: "1k" }, plain, "1K"],
    [{ resolution: "1K" }, several, "1K"],
    [{ quality: "hd" }, several, "4K"],
    [{ quality: "high" }, plain, "1K"],
    [{ image: gif }, several, "2K"],
    [{ image: [] }, plain, "1K"]
  ])("%j", (fields, of, resolution) => {
    const chosen = Either.getOrThrow(chooseVariant(of, decodeBody({ ...base, ...fields })))
    assert.strictEqual(chosen.variant.resolution, resolution)
  })

  it.each<[Asked, param: string, message: string]>([
    [{ image: gif }, "image", "Image editing is not available for `<model>`."],
    [{ image: gif, resolution: "4K" }, "image", "Image editing is not available for `<model>`."],
    [{ resolution: "4K" }, "resolution", "Resolution 4k is not available for `<model>`."],
    [{ resolution: "2k" }, "resolution", "Resolution 2k is not available for `<model>`."],
    [{ quality: "hd" }, "resolution", "Resolution 4k is not available for `<model>`."],
    [{ resolution: "8K" }, "resolution", "Resolution 8k is not available for `<model>`."],
    [{ resolution: " 1K" }, "resolution", "Resolution  1k is not available for `<model>`."],
    [{ resolution: "1024x1024" }, "resolution", "Resolution 1024x1024 is not available for `<model>`."]
  ])("%j is refused", (fields, param, message) => {
    const failure = Either.getOrThrow(Either.flip(chooseVariant(plain, decodeBody({ ...base, ...fields }))))
    assert.deepStrictEqual([failure.param, failure.message], [param, message])
  })

  it("is an edit only at a resolution of a route that edits", () => {
    const drawing = { ...imageRoute(), editModel: undefined, resolutions: new Set<Resolution>(["2K", "4K"]) }
    const editing = { ...imageRoute(), editModel: "m/edit", resolutions: new Set<Resolution>(["1K"]) }
    const split = { ...several, routes: [drawing, editing] }
    const chosen = (fields: Asked) =>
      Either.match(chooseVariant(split, decodeBody({ ...base, ...fields })), {
        onLeft: ({ message, param }) => [param, message],
        onRight: (choice) => choice.variant.resolution
      })
    assert.strictEqual(chosen({}), "2K")
    assert.strictEqual(chosen({ resolution: "4K" }), "4K")
    assert.strictEqual(chosen({ image: gif }), "1K")
    assert.deepStrictEqual(chosen({ image: gif, resolution: "4K" }), [
      "resolution",
      "Resolution 4k is not available for `<model>`."
    ])
  })
})

describe("the shape of a picture", () => {
  const route = (aspectRatios: ReadonlyArray<string>, more: Partial<ImageRoute> = {}): ImageRoute => ({
    ...imageRoute(),
    aspectRatios: new Set(aspectRatios),
    ...more
  })
  const variant = (resolution: Resolution, shape: Shape, price = 1n): ImageVariant => ({
    resolution,
    shape,
    price: NanoUsd(price),
    official: undefined
  })
  const model = (variants: ImageModel["variants"], ...routes: ReadonlyArray<ImageRoute>): ImageModel => ({
    id: "m",
    surface: "image",
    created: 0,
    routes,
    variants,
    edit: true,
    maxReferences: 2
  })
  const ratio = (aspectRatio: string): Shape => ({ aspectRatio, size: undefined })
  const sized = model(
    [
      variant("1K", shapeOf("1024x1024")),
      variant("1K", shapeOf("1536x1024"), 2n),
      variant("4K", shapeOf("3840x2160"), 9n)
    ],
    route(["1:1", "3:2", "16:9"])
  )
  const free = model(
    [variant("1K", ratio("1:1")), variant("1K", ratio("16:9")), variant("1K", ratio("2:3"))],
    route(["1:1", "16:9"]),
    route(["1:1", "2:3"], { editModel: undefined })
  )
  const large = model(
    [variant("2K", shapeOf("2048x2048")), variant("2K", shapeOf("2560x1440"))],
    route(["1:1", "16:9"])
  )
  const squares = model([variant("1K", shapeOf("512x512")), variant("1K", shapeOf("1024x1024"), 5n)], route(["1:1"]))
  const params: ImageParams = { ...decodeBody(base), references: [] }
  const reference = { _tag: "Url", url: "https://a.test/a.png" } as const

  it.each<[Partial<ImageParams>, ImageModel, shape: string | undefined, resolution: Resolution, price: bigint]>([
    [{}, sized, undefined, "1K", 1n],
    [{ size: "1024x1024" }, sized, "1024x1024", "1K", 1n],
    [{ size: "1536x1024" }, sized, "1536x1024", "1K", 2n],
    [{ aspectRatio: "3:2" }, sized, "1536x1024", "1K", 2n],
    [{ size: "1536x1024", aspectRatio: "3:2" }, sized, "1536x1024", "1K", 2n],
    [{ size: "3840x2160" }, sized, "3840x2160", "4K", 9n],
    [{ size: "1024x1024" }, large, "2048x2048", "2K", 1n],
    [{ size: "512x512" }, free, "1:1", "1K", 1n],
    [{ size: "1344x768" }, free, "16:9", "1K", 1n],
    [{ size: "1792x1024" }, free, "16:9", "1K", 1n],
    [{ size: "512x512" }, sized, "1024x1024", "1K", 1n],
    [{ size: "1792x1024" }, sized, "1536x1024", "1K", 2n],
    [{ size: "640x480" }, sized, "1536x1024", "1K", 2n],
    [{ size: "1000x1016" }, sized, "1024x1024", "1K", 1n],
    [{ size: "1100x1000" }, sized, "1536x1024", "1K", 2n],
    [{ size: "1100x1000", resolution: "4K" }, sized, "3840x2160", "4K", 9n],
    [{ size: "1500x1000" }, free, "16:9", "1K", 1n],
    [{ size: "1024x1536" }, free, "2:3", "1K", 1n],
    [{ size: "1536x1024" }, free, "16:9", "1K", 1n],
    [{ size: "1536x1024", aspectRatio: "16:9" }, free, "16:9", "1K", 1n],
    [{ size: "1536x1024" }, large, "2560x1440", "2K", 1n],
    [{ size: "900x900" }, squares, "1024x1024", "1K", 5n],
    [{ size: "600x600" }, squares, "512x512", "1K", 1n],
    [{ aspectRatio: "16:9" }, sized, "1536x1024", "1K", 2n],
    [{ aspectRatio: "9:21" }, free, "2:3", "1K", 1n],
    [{ aspectRatio: "2:3" }, free, "2:3", "1K", 1n],
    [{ aspectRatio: "16:9", references: [reference] }, free, "16:9", "1K", 1n]
  ])("asked for as %j is the model's", (asked, of, shape, resolution, price) => {
    const chosen = Either.getOrThrow(chooseVariant(of, { ...params, ...asked }))
    assert.strictEqual(chosen.shape && shapeKey(chosen.shape), shape)
    assert.deepStrictEqual([chosen.variant.resolution, chosen.variant.price], [resolution, NanoUsd(price)])
  })

  it.each<[Partial<ImageParams>, ImageModel, param: string, message: string]>([
    [{ size: "1024x1536" }, sized, "size", "`size` must be one of auto, 1024x1024, 1536x1024, 3840x2160 for `m`."],
    [{ size: "9x16", resolution: "1K" }, sized, "size", "`size` must be one of auto, 1024x1024, 1536x1024 for `m`."],
    [{ aspectRatio: "9:16" }, sized, "aspect_ratio", "`aspect_ratio` must be one of auto, 1:1, 3:2 for `m`."],
    [{ size: "1536x1024", aspectRatio: "1:1" }, sized, "aspect_ratio", "`aspect_ratio` must match `size`."],
    [
      { size: "1024x1536", references: [reference] },
      free,
      "size",
      "`size` must be auto, or have an aspect ratio of 1:1, 16:9, for `m`."
    ],
    [
      { aspectRatio: "2:3", references: [reference] },
      free,
      "aspect_ratio",
      "`aspect_ratio` must be one of auto, 1:1, 16:9 for `m`."
    ],
    [{ references: [reference, reference, reference] }, free, "image", "`image` must hold at most 2 images for `m`."]
  ])("asked for as %j is refused with what the model can do", (asked, of, param, message) => {
    const refused = Either.getOrThrow(Either.flip(chooseVariant(of, { ...params, ...asked })))
    assert.deepStrictEqual([refused.param, refused.message], [param, message])
  })

  it("is a square wherever the model's shapes are not named", () => {
    const plain = model([{ ...variant("1K", ratio("1:1")), shape: undefined }], route([]))
    for (const asked of [{ size: "1024x1024" }, { size: "256x256" }, { aspectRatio: "1:1" }]) {
      assert.isUndefined(Either.getOrThrow(chooseVariant(plain, { ...params, ...asked })).shape)
    }
    const refusal = (asked: Partial<ImageParams>) =>
      Either.getOrThrow(Either.flip(chooseVariant(plain, { ...params, ...asked }))).message
    for (const size of ["1536x1024", "1024x1536", "1792x1024", "640x480"]) {
      assert.strictEqual(refusal({ size }), "`size` must be one of auto, 1024x1024 for `m`.")
    }
    assert.strictEqual(refusal({ aspectRatio: "3:2" }), "`aspect_ratio` must be one of auto, 1:1 for `m`.")
  })
})

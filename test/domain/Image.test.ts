import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import { variantFor } from "../../src/domain/Image.ts"
import type { ImageModel, Resolution } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { base, gif, taken } from "../harness/fixtures/ImageBodies.ts"

type Asked = { readonly [field: string]: unknown }

describe("what a model makes of it", () => {
  const variant = (resolution: Resolution, price: bigint) => ({
    resolution,
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
    const chosen = Either.getOrThrow(variantFor(of, taken({ ...base, ...fields })))
    assert.strictEqual(chosen.resolution, resolution)
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
    const failure = Either.getOrThrow(Either.flip(variantFor(plain, taken({ ...base, ...fields }))))
    assert.deepStrictEqual([failure.param, failure.message], [param, message])
  })
})

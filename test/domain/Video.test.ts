import { Array as Arr, Either, FastCheck as fc } from "effect"
import type { Reference } from "../../src/domain/Media.ts"
import type { ReferenceImage, VideoModel, VideoRoute } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import type { VideoParams } from "../../src/domain/VideoRules.ts"
import { chooseSeconds, clipPrice } from "../../src/domain/VideoRules.ts"
import { assert, describe, it } from "../harness/It.ts"
import { videoRoute } from "../providers/sandbox/SandboxMedia.ts"

const model = (more: Partial<VideoModel> = {}): VideoModel => ({
  id: "<model>",
  surface: "video",
  created: 0,
  routes: [],
  pricing: { per: "second", price: NanoUsd(100_000_000n) },
  official: undefined,
  seconds: { allowed: [4, 6, 8, 12], default: 8 },
  referenceImage: "optional",
  ...more
})

const link: Reference = { _tag: "Url", url: "https://a.test" }
const ask = (more: Partial<VideoParams> = {}): VideoParams => ({
  model: "<model>",
  prompt: "p",
  seconds: undefined,
  references: [],
  webhookUrl: undefined,
  ...more
})

const secondsOf = (of: VideoModel, seconds: number | undefined) =>
  Either.getOrThrow(chooseSeconds(of, ask({ seconds })))

describe("the length of a clip", () => {
  it.each<[asked: number | undefined, got: number]>([
    [undefined, 8],
    [4, 4],
    [6, 6],
    [12, 12],
    [5, 4],
    [7, 6],
    [9, 8],
    [10, 8],
    [11, 12],
    [3, 4],
    [1, 4],
    [0, 4],
    [-1, 4],
    [Number.MIN_SAFE_INTEGER, 4],
    [13, 12],
    [3600, 12],
    [Number.MAX_SAFE_INTEGER, 12]
  ])("asked for %s is %i", (asked, got) => {
    assert.strictEqual(secondsOf(model(), asked), got)
  })

  it.each<[asked: number | undefined, hasReference: boolean, got: number]>([
    [undefined, false, 6],
    [8, false, 6],
    [12, false, 12],
    [undefined, true, 8],
    [4, true, 8]
  ])("asked for %s, with a reference: %s, is %i, which a route renders", (asked, hasReference, got) => {
    const routes: ReadonlyArray<VideoRoute> = [
      { ...videoRoute(), referenceImage: "none", imageModel: undefined, seconds: [4, 6, 12] },
      { ...videoRoute(), referenceImage: "required", seconds: [8] }
    ]
    const params = ask({ seconds: asked, references: hasReference ? [link] : [] })
    assert.strictEqual(Either.getOrThrow(chooseSeconds(model({ routes }), params)), got)
  })

  it("is the only one of a model that has one", () => {
    const single = model({ seconds: { allowed: [5], default: 5 } })
    for (const asked of [undefined, 0, 5, 10]) assert.strictEqual(secondsOf(single, asked), 5)
  })

  it("is none further off than another, and the shorter of two as near", () => {
    const lengths = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(lengths, fc.integer({ min: -100, max: 200 }), (some, asked) => {
        const allowed = some.toSorted((one, other) => one - other)
        if (!Arr.isNonEmptyReadonlyArray(allowed)) return
        const got = secondsOf(model({ seconds: { allowed, default: allowed[0] } }), asked)
        assert.include(allowed, got)
        for (const other of allowed) {
          const [here, there] = [Math.abs(got - asked), Math.abs(other - asked)]
          assert.isTrue(here < there || (here === there && got <= other), `${asked}: ${got}, not ${other}`)
        }
      })
    )
  })
})

describe("a reference", () => {
  const required = [
    "InvalidRequest",
    "Text-to-video is not available for `<model>` - a reference image is required.",
    null
  ]
  const refused = ["InvalidRequest", "Image-to-video is not available for `<model>`.", "image"]

  it.each<[ReferenceImage, references: number, verdict: unknown]>([
    ["required", 0, required],
    ["required", 1, 8],
    ["required", 2, 8],
    ["optional", 0, 8],
    ["optional", 1, 8],
    ["optional", 2, 8],
    ["none", 0, 8],
    ["none", 1, refused],
    ["none", 2, refused]
  ])("%s, given %i", (referenceImage, count, verdict) => {
    const references = Array.from({ length: count }, () => link)
    const result = chooseSeconds(model({ referenceImage }), ask({ references }))
    const said = Either.isLeft(result) ? [result.left._tag, result.left.message, result.left.param] : result.right
    assert.deepStrictEqual(said, verdict)
  })
})

describe("the price of a clip", () => {
  it.each<["second" | "video", price: bigint, seconds: number, total: bigint]>([
    ["second", 100_000_000n, 8, 800_000_000n],
    ["second", 1n, 12, 12n],
    ["second", 0n, 12, 0n],
    // 0.1 + 0.2 of dollars, and more than a double holds.
    ["second", 333_333_333n, 3, 999_999_999n],
    ["second", 9_007_199_254_740_993n, 7, 63_050_394_783_186_951n],
    ["video", 400_000_000n, 4, 400_000_000n],
    ["video", 400_000_000n, 12, 400_000_000n],
    ["video", 9_007_199_254_740_993n, 12, 9_007_199_254_740_993n]
  ])("by the %s, at %i for %i s", (per, price, seconds, total) => {
    assert.strictEqual(clipPrice({ per, price: NanoUsd(price) }, seconds), NanoUsd(total))
  })
})

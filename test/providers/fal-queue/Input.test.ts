import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import type { ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import { format } from "../../../src/providers/fal-queue/FalQueue.ts"
import { encodeImage, encodeVideo } from "../../../src/providers/jobs/Input.ts"
import { asSent } from "../../harness/fixtures/Pieces.ts"
import { wrongOptions } from "../../harness/fixtures/WrongOptions.ts"
import { videoRoute } from "./Hosts.ts"
import { imageRoute } from "./ImageHosts.ts"

const picture = { type: "image/png", bytes: Buffer.from("a picture").subarray(2) } as const
const uri = `data:image/png;base64,${Buffer.from("picture").toString("base64")}`

const video = (options: VideoRoute["options"], reference = false, over: Partial<VideoRoute> = {}) =>
  encodeVideo(
    format,
    { ...videoRoute("https://queue.fal.run"), ...over, options },
    { prompt: "p", seconds: 6, reference: reference ? picture : undefined }
  )

const image = (
  options: ImageRoute["options"],
  references = 0,
  over: Partial<ImageRoute> = { resolutions: new Set(["2K"]) }
) =>
  encodeImage(
    format,
    { ...imageRoute("https://queue.fal.run"), options, ...over },
    { prompt: "p", resolution: "2K", references: Array.from({ length: references }, () => picture) }
  )

const input = <E>(made: Either.Either<{ readonly input: unknown }, E>) => asSent(Either.getOrThrow(made).input)

describe("the input of a job", () => {
  it("has the options that are fields of it; the request's own win", () => {
    assert.deepStrictEqual(
      input(video({ resolution: "720p", generate_audio: false, prompt: "theirs", duration: 99 })),
      {
        resolution: "720p",
        generate_audio: false,
        prompt: "p",
        duration: 6
      }
    )
  })

  it("has the length where the route wants it", () => {
    assert.deepStrictEqual(input(video({ seconds_field: "num_seconds" }, false, { secondsAs: "suffixed" })), {
      num_seconds: "6s",
      prompt: "p"
    })
  })

  it("has a clip's reference where the route wants it, with what goes with it", () => {
    const length = { duration: 6, prompt: "p" }
    assert.deepStrictEqual(input(video({}, true)), { image_url: uri, ...length })
    assert.deepStrictEqual(input(video({ image_field: "start_image_url" }, true)), { start_image_url: uri, ...length })
    assert.deepStrictEqual(input(video({ image_field: "image_urls" }, true)), { image_urls: [uri], ...length })
    const options = { with_image: { fidelity: "low" } }
    assert.deepStrictEqual(input(video(options, true)), { image_url: uri, fidelity: "low", ...length })
    assert.deepStrictEqual(input(video(options)), length)
  })

  it("has a picture's references as a list, or as one", () => {
    assert.deepStrictEqual(input(image({}, 2)), { image_urls: [uri, uri], prompt: "p" })
    assert.deepStrictEqual(input(image({ image_field: "image_url" }, 1)), { image_url: uri, prompt: "p" })
  })

  it("is none where a list of references meets a field for one", () => {
    const failure = Either.getOrThrow(Either.flip(image({ image_field: "image_url" }, 2)))
    assert.deepStrictEqual([failure.class, failure.param, failure.unsent], ["request", "image", true])
  })

  it("has the size that a resolution has on the route", () => {
    const sizes = { "1K": "square", "2K": { width: 2048, height: 2048 }, "4K": "auto_4K" }
    const all = { resolutions: new Set(["1K", "2K", "4K"] as const) }
    assert.deepStrictEqual(input(image({ sizes }, 0, all)), { resolution: sizes["2K"], prompt: "p" })
    assert.deepStrictEqual(input(image({ sizes, size_field: "image_size" }, 0, all)), {
      image_size: sizes["2K"],
      prompt: "p"
    })
  })

  it("is none where a large picture would be sold that the host was not asked for", () => {
    const all = { resolutions: new Set(["1K", "2K"] as const) }
    for (const made of [
      image({}, 0, all),
      image({ sizes: { "1K": "1K" } }, 0, all),
      image({ sizes: { "1K": "1K" } })
    ]) {
      const failure = Either.getOrThrow(Either.flip(made))
      assert.deepStrictEqual([failure.class, failure.unsent], ["retry", true])
      assert.include(failure.detail, "sizes has no 2K")
    }
  })

  const wrong: ReadonlyArray<[VideoRoute["options"], string]> = [
    [{ image_field: 7 }, "option image_field"],
    [{ image_field: "Image Url" }, "option image_field: must be the name of a field"],
    [{ seconds_field: "" }, "option seconds_field"],
    [{ size_field: ["a"] }, "option size_field"],
    [{ sizes: "2K" }, "option sizes"],
    [{ sizes: { "8K": "8K" } }, "option sizes.8K"],
    [{ sizes: { "1K": 1024 } }, "option sizes.1K"],
    [{ with_image: "high" }, "option with_image"]
  ]
  for (const [options, message] of wrong) {
    it(`the options ${JSON.stringify(options)} are refused, and it is said why`, () => {
      assert.include(wrongOptions(format.options.decode(options)), message)
    })
  }
})

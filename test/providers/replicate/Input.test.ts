import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import type { ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import { encodeImage, encodeVideo } from "../../../src/providers/jobs/Input.ts"
import { format } from "../../../src/providers/replicate/Replicate.ts"
import { asSent } from "../../harness/fixtures/Pieces.ts"
import { wrongOptions } from "../../harness/fixtures/WrongOptions.ts"
import { clipRoute } from "./Hosts.ts"
import { drawRoute } from "./ImageHosts.ts"

const picture = { type: "image/png", bytes: Buffer.from("a picture").subarray(2) } as const
const uri = `data:image/png;base64,${Buffer.from("picture").toString("base64")}`

const video = (options: VideoRoute["options"], reference = false) =>
  encodeVideo(format, clipRoute("https://api.replicate.com", options), {
    prompt: "p",
    seconds: 6,
    reference: reference ? picture : undefined
  })

const image = (options: ImageRoute["options"], references = 0) =>
  encodeImage(
    format,
    { ...drawRoute("https://api.replicate.com"), resolutions: new Set(["2K"] as const), options },
    { prompt: "p", resolution: "2K", references: Array.from({ length: references }, () => picture) }
  )

const input = <E>(made: Either.Either<{ readonly input: unknown }, E>) => asSent(Either.getOrThrow(made).input)

describe("the input of a prediction", () => {
  it("has the fields that the route fixes; the request's own win", () => {
    const fixed = { resolution: "720p", generate_audio: false, prompt: "theirs", duration: 99 }
    assert.deepStrictEqual(input(video({ input: fixed })), {
      resolution: "720p",
      generate_audio: false,
      prompt: "p",
      duration: 6
    })
  })

  it("has references where most models take them, as a list or as one", () => {
    assert.deepStrictEqual(input(image({}, 2)), { image_input: [uri, uri], prompt: "p" })
    assert.deepStrictEqual(input(image({ image_field: "input_images" }, 2)), { input_images: [uri, uri], prompt: "p" })
    assert.deepStrictEqual(input(image({ image_field: "image" }, 1)), { image: uri, prompt: "p" })
    assert.deepStrictEqual(input(video({}, true)), { image: uri, duration: 6, prompt: "p" })
  })

  it("has them as the route says", () => {
    assert.deepStrictEqual(input(image({ image_field: "image", image_list: true }, 1)), { image: [uri], prompt: "p" })
    assert.deepStrictEqual(input(image({ image_list: false }, 1)), { image_input: uri, prompt: "p" })
  })

  it("is none where a list of references meets a field for one", () => {
    const failure = Either.getOrThrow(Either.flip(image({ image_list: false }, 2)))
    assert.deepStrictEqual([failure.class, failure.param, failure.unsent], ["request", "image", true])
  })

  it("has what goes with a reference, and what goes without", () => {
    const options = { with_image: { resolution: "720p" }, without_image: { size: "1280*720" } }
    assert.deepStrictEqual(input(video(options)), { size: "1280*720", duration: 6, prompt: "p" })
    assert.deepStrictEqual(input(video(options, true)), { image: uri, resolution: "720p", duration: 6, prompt: "p" })
  })

  it("has the size that a resolution has on the route", () => {
    const options = { size_field: "size", sizes: { "2K": "2K" }, input: { aspect_ratio: "1:1" } }
    assert.deepStrictEqual(input(image(options)), { aspect_ratio: "1:1", size: "2K", prompt: "p" })
  })

  const wrong: ReadonlyArray<[VideoRoute["options"], string]> = [
    [{ image_feild: "image" }, "option image_feild: is unexpected"],
    [{ image_list: "yes" }, "option image_list"],
    [{ input: ["a"] }, "option input"],
    [{ input: { "no field": 1 } }, "option input.no field"],
    [{ sizes: { "8K": "8K" } }, "option sizes.8K"],
    [{ resolution: "720p" }, "option resolution: is unexpected"]
  ]
  for (const [options, message] of wrong) {
    it(`the options ${JSON.stringify(options)} are refused, and it is said why`, () => {
      assert.include(wrongOptions(format.options.decode(options)), message)
    })
  }
})

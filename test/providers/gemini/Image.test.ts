import { Either } from "effect"
import { decodeImage, encodeImage, encodePrediction } from "../../../src/providers/gemini/GeminiImages.ts"
import type { Options } from "../../../src/providers/gemini/GeminiRequest.ts"
import { picture, request } from "../../contracts/ImageHarness.ts"
import { base64 } from "../../contracts/MediaHarness.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { asSent } from "../../harness/upstream/FakeUpstream.ts"
import { routeTo } from "./ImageHosts.ts"
import { chunk } from "./Wire.ts"

const [drawn, sketched] = [picture("image/png", 1).bytes, picture("image/png", 2).bytes]
const inline = (bytes: Uint8Array, more = {}) => ({
  inlineData: { mimeType: "image/png", data: base64(bytes) },
  ...more
})

const read = (body: unknown, options: Options = {}) => {
  const found = decodeImage(routeTo("http://x", "generate"), options, body)
  return Either.match(found, { onLeft: (failure) => failure.class, onRight: ({ bytes }) => base64(bytes) })
}

describe("a picture's request", () => {
  const parts = [{ text: "A red bicycle" }]
  const bodies: ReadonlyArray<readonly [Options, object]> = [
    [{}, { responseModalities: ["IMAGE"], imageConfig: { imageSize: "4K" } }],
    [{ image_size: false }, { responseModalities: ["IMAGE"] }],
    [
      { image_size: false, aspect_ratio: "16:9" },
      { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "16:9" } }
    ]
  ]
  for (const [options, generationConfig] of bodies) {
    it(`generate, ${JSON.stringify(options)}`, () => {
      const body = asSent(encodeImage(request({ resolution: "4K" }), options))
      assert.deepStrictEqual(body, { contents: [{ role: "user", parts }], generationConfig })
    })
  }

  it("has the aspect ratio that the customer chose in the place of the route's own", () => {
    const chatRequest = request({ shape: { aspectRatio: "21:9", size: undefined } })
    const options: Options = { image_size: false, aspect_ratio: "16:9" }
    assert.deepInclude(asSent(encodeImage(chatRequest, options)), {
      generationConfig: { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "21:9" } }
    })
    assert.strictEqual(encodePrediction(chatRequest, options).parameters.aspectRatio, "21:9")
  })

  it("predict", () => {
    const chatRequest = request({ resolution: "2K" })
    const [sized, unsized]: ReadonlyArray<object> = [
      encodePrediction(chatRequest, { aspect_ratio: "1:1" }),
      encodePrediction(chatRequest, { image_size: false })
    ]
    const instances = [{ prompt: "A red bicycle" }]
    const parameters = { sampleCount: 1, includeRaiReason: true }
    assert.deepStrictEqual(sized, {
      instances,
      parameters: { ...parameters, sampleImageSize: "2K", aspectRatio: "1:1" }
    })
    assert.deepStrictEqual(unsized, { instances, parameters })
  })
})

describe("a picture's answer", () => {
  it("what was drawn on the way to it is no picture", () => {
    const parts = [{ text: "hm", thought: true }, inline(sketched, { thought: true }), { text: "Here." }, inline(drawn)]
    assert.strictEqual(read(chunk(parts, "STOP")), base64(drawn))
    assert.strictEqual(read(chunk([inline(sketched, { thought: true })], "NO_IMAGE")), "retry")
  })

  for (const reason of ["IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "PROHIBITED_CONTENT", "SAFETY"]) {
    it(`${reason}: moderation`, () => assert.strictEqual(read(chunk([], reason)), "moderation"))
  }
  for (const reason of ["NO_IMAGE", "IMAGE_OTHER", "IMAGE_RECITATION", "STOP", "MAX_TOKENS"]) {
    it(`${reason} without a picture: retry`, () => assert.strictEqual(read(chunk([], reason)), "retry"))
  }

  const others: ReadonlyArray<readonly [string, unknown, string, Options?]> = [
    ["a refused prompt", { promptFeedback: { blockReason: "OTHER" } }, "moderation"],
    ["nothing at all", {}, "retry"],
    ["no object", [], "retry"],
    ["an error inside", { error: { code: 429, status: "RESOURCE_EXHAUSTED" } }, "limit"],
    ["a prediction", { predictions: [{ bytesBase64Encoded: base64(drawn) }] }, base64(drawn), { api: "predict" }],
    ["a filtered prediction", { predictions: [{ raiFilteredReason: "no" }] }, "moderation", { api: "predict" }],
    ["no prediction", { predictions: [] }, "retry", { api: "predict" }]
  ]
  for (const [name, body, expected, options] of others) {
    it(`${name}: ${expected.slice(0, 10)}`, () => assert.strictEqual(read(body, options), expected))
  }
})

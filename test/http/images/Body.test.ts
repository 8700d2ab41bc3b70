import type { ImageParams } from "../../../src/domain/Image.ts"
import { explainReference, maxReferenceBytes, unusableReference } from "../../../src/domain/Media.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { filePart, textPart } from "../body/Forms.ts"
import type { Words } from "../openapi/Published.ts"
import { base, bodyOf, decodeBody, editRefusal, gif, gifBytes, refusal } from "./ImageBodies.ts"

const unusable = (problem: string): Words => [unusableReference, explainReference(problem)]
describe("the required fields of an image", () => {
  it("are enough", () => {
    assert.deepStrictEqual(decodeBody(base), {
      model: "m",
      prompt: "a cat",
      references: [],
      resolution: undefined,
      size: undefined,
      aspectRatio: undefined,
      responseFormat: "url"
    })
  })

  it("include a reference for an edit", () => {
    const none = ["InvalidRequest", "image", "`image` is required."]
    for (const image of [undefined, null, []]) assert.deepStrictEqual(editRefusal({ ...base, image }), none)
    assert.strictEqual(editRefusal({ ...base, image: gif }), "accepted")
  })
})

type Fields = { readonly [field: string]: unknown }

describe("the optional fields of an image", () => {
  it.each<[Fields, Partial<ImageParams>]>([
    [{ resolution: "1K" }, { resolution: "1K" }],
    [{ resolution: "2k" }, { resolution: "2K" }],
    [{ resolution: "4k" }, { resolution: "4K" }],
    [{ resolution: "1024x1024" }, { resolution: "1024X1024" }],
    [{ resolution: "x".repeat(1e6) }, { resolution: "X".repeat(32) }],
    [{ quality: "hd" }, { resolution: "4K" }],
    [{ quality: "HD", resolution: null }, { resolution: "4K" }],
    [{ quality: "hd", resolution: "1k" }, { resolution: "1K" }],
    ...["standard", "low", "medium", "high", "auto", "", "4K", 4, true, ["hd"], { hd: true }].map(
      (quality): [Fields, Partial<ImageParams>] => [{ quality }, { resolution: undefined }]
    ),
    [{ response_format: "url" }, { responseFormat: "url" }],
    [{ response_format: "b64_json" }, { responseFormat: "b64_json" }],
    [{ n: 1 }, {}],
    [{ stream: false }, {}],
    [{ images: [] }, {}],
    [{ images: "" }, {}],
    [{ mask: "" }, {}],
    [{ mask: {} }, {}]
  ])("are accepted as %j", (fields, expected) => {
    assert.deepStrictEqual(decodeBody({ ...base, ...fields }), { ...decodeBody(base), ...expected })
    assert.strictEqual(editRefusal({ ...base, image: gif, ...fields }), "accepted")
  })

  it("include unknown ones, which are ignored", () => {
    const unknown = {
      style: 5,
      background: "transparent",
      user: {},
      output_format: "webp",
      output_compression: 200,
      moderation: "low",
      partial_images: 3,
      input_fidelity: "high",
      anything: { at: ["all"] }
    }
    assert.deepStrictEqual(decodeBody({ ...base, ...unknown }), decodeBody(base))
  })

  it.each<[field: string, values: ReadonlyArray<unknown>, message: string]>([
    ["resolution", [4, true, "", [], ["1K"], {}], "`resolution` must be one of 1K, 2K, 4K."],
    [
      "size",
      [4, "", "1K", "1024", "1024X1024", "0x1", "1024x", " 1024x1024", "1x1"],
      "`size` must be auto, or a width and a height such as 1024x1536."
    ],
    ["aspect_ratio", [1, "", "16/9", "0:1", "16:9:1", "wide"], "`aspect_ratio` must be auto, or a ratio such as 16:9."],
    ["response_format", ["", "URL", "b64", "png", 1, [], {}], "`response_format` must be url or b64_json."],
    ["stream", [true, "true", 1], "`stream` must be false: images are not streamed."],
    ["mask", [gif, { file_id: "f" }, true], "`mask` is not supported: describe the edit in `prompt`."],
    ["images", [[gif], [{ image_url: gif }], gif, { 0: gif }], "`images` is not supported: use `image`."]
  ])("are refused where %s is %j: %s", (field, values, message) => {
    for (const value of values) {
      for (const one of [refusal({ ...base, [field]: value }), editRefusal({ ...base, image: gif, [field]: value })])
        assert.deepStrictEqual(one, ["InvalidRequest", field, message])
    }
  })

  it("are refused with the field to use instead before it is missed", () => {
    const images = [{ image_url: gif }]
    assert.deepStrictEqual(editRefusal({ ...base, images }), [
      "InvalidRequest",
      "images",
      "`images` is not supported: use `image`."
    ])
    assert.strictEqual(editRefusal({ ...base, image: gif, images: [] }), "accepted")
  })
})

describe("a form for an image", () => {
  const parts = [textPart("model", "m"), textPart("prompt", "a cat")]

  it("is the same request as JSON", () => {
    const more = [
      filePart("image[]", gifBytes),
      textPart("image[]", "https://b.test/b.png"),
      textPart("image", gif),
      textPart("n", "1"),
      textPart("stream", "false"),
      textPart("response_format", "b64_json"),
      textPart("resolution", "2k"),
      textPart("quality", "hd"),
      textPart("size", "1024x1024"),
      textPart("aspect_ratio", ""),
      textPart("user", "")
    ]
    const shape = { size: "1024x1024", aspect_ratio: "auto" }
    const image = [gif, "https://b.test/b.png", gif]
    const json = { ...base, ...shape, image, response_format: "b64_json", resolution: "2K" }
    assert.deepStrictEqual(decodeBody(bodyOf([...parts, ...more])), decodeBody(json))
  })

  it("is the same request with another boundary", () => {
    const all = [...parts, filePart("image", gifBytes), textPart("n", "")]
    assert.deepStrictEqual(decodeBody(bodyOf(all, "one")), decodeBody(bodyOf(all.toReversed(), "another")))
  })

  it.each<[what: string, parts: ReadonlyArray<Buffer>, param: string, words: Words]>([
    ["no image", parts, "image", "`image` is required."],
    ["an empty text for an image", [...parts, textPart("image", "")], "image", "`image` is required."],
    ["no model", parts.slice(1), "model", "`model` is required."],
    ["an empty prompt", [textPart("model", "m"), textPart("prompt", "")], "prompt", "`prompt` is required."],
    [
      "a prompt in a file",
      [textPart("model", "m"), filePart("prompt", "a cat")],
      "prompt",
      "`prompt` must be text, not a file."
    ],
    ["two prompts", [...parts, textPart("prompt", "another")], "prompt", "`prompt` must be one text, not several."],
    ["two models", [...parts, textPart("model", "m")], "model", "`model` must be one text, not several."],
    ["an empty file", [...parts, filePart("image", "")], "image", unusable("is empty or not valid base64")],
    [
      "a file too large",
      [...parts, filePart("image", Buffer.alloc(maxReferenceBytes + 1))],
      "image",
      unusable("is larger than 20 MiB")
    ],
    [
      "nine files",
      [...parts, ...Array.from({ length: 9 }, () => filePart("image[]", gifBytes))],
      "image",
      "`image` must hold at most 8 images."
    ],
    [
      "images of another name",
      [...parts, filePart("image", gifBytes), textPart("images", gif)],
      "images",
      "`images` is not supported: use `image`."
    ],
    [
      "a mask",
      [...parts, filePart("image", gifBytes), filePart("mask", gifBytes)],
      "mask",
      "`mask` is not supported: describe the edit in `prompt`."
    ],
    [
      "two",
      [...parts, filePart("image", gifBytes), textPart("n", "2")],
      "n",
      "`n` must be 1: send one request per image."
    ],
    [
      "a stream",
      [...parts, filePart("image", gifBytes), textPart("stream", "true")],
      "stream",
      "`stream` must be false: images are not streamed."
    ],
    [
      "a file for a resolution",
      [...parts, filePart("image", gifBytes), filePart("resolution", "4K")],
      "resolution",
      "`resolution` must be one of 1K, 2K, 4K."
    ]
  ])("is refused with %s", (_, sent, param, words) => {
    assert.deepStrictEqual(editRefusal(bodyOf(sent)), ["InvalidRequest", param, ...[words].flat()])
  })
})

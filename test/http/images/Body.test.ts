import { assert, describe, it } from "@effect/vitest"
import type { ImageAsk } from "../../../src/domain/Image.ts"
import { largestReference } from "../../../src/domain/Media.ts"
import { filePart, textPart } from "../../harness/client/Forms.ts"
import { base, bodyOf, editRefusal, gif, gifBytes, refusal, taken } from "../../harness/fixtures/ImageBodies.ts"

const bytes = (value: Uint8Array) => ({ _tag: "Bytes", bytes: value }) as const
const unusable = "Failed to process the reference image."
const url = (value: string) => ({ _tag: "Url", url: value }) as const

describe("what is required", () => {
  const notObject = ["The body must be a JSON object.", null] as const
  const noModel = ["`model` is required.", "model"] as const
  const noPrompt = ["`prompt` is required.", "prompt"] as const

  it.each([
    [null, ...notObject],
    ["text", ...notObject],
    [7, ...notObject],
    [[base], ...notObject],
    [{}, ...noModel],
    [{ prompt: "p" }, ...noModel],
    [{ ...base, model: "" }, ...noModel],
    [{ ...base, model: null }, ...noModel],
    [{ ...base, model: 5 }, ...noModel],
    [{ ...base, model: ["m"] }, ...noModel],
    [{ n: 2, prompt: "" }, ...noModel],
    [{ model: "m" }, ...noPrompt],
    [{ model: "m", prompt: "" }, ...noPrompt],
    [{ model: "m", prompt: null }, ...noPrompt],
    [{ model: "m", prompt: 5 }, ...noPrompt],
    [{ model: "m", prompt: ["p"] }, ...noPrompt],
    [{ model: "m", n: 2, image: 5, resolution: "8K" }, ...noPrompt]
  ])("%j: %s", (body, message, param) => {
    assert.deepStrictEqual(refusal(body), ["InvalidRequest", param, message])
    assert.deepStrictEqual(editRefusal(body), ["InvalidRequest", param, message])
  })

  it("is enough", () => {
    assert.deepStrictEqual(taken(base), {
      model: "m",
      prompt: "a cat",
      references: [],
      resolution: undefined,
      responseFormat: "url"
    })
  })

  it("is a reference too, for an edit", () => {
    const none = ["InvalidRequest", "image", "`image` is required."]
    for (const image of [undefined, null, []]) assert.deepStrictEqual(editRefusal({ ...base, image }), none)
    assert.strictEqual(editRefusal({ ...base, image: gif }), "accepted")
  })

  it("of a million characters is taken, a longer one is refused", () => {
    assert.strictEqual(taken({ ...base, prompt: "x".repeat(1_000_000) }).prompt.length, 1_000_000)
    const [, param, message] = refusal({ ...base, prompt: "x".repeat(1_000_001) })
    assert.deepStrictEqual([param, message], ["prompt", "`prompt` must have at most 1,000,000 characters."])
  })
})

type Fields = { readonly [field: string]: unknown }

describe("the optional fields", () => {
  it.each<[Fields, Partial<ImageAsk>]>([
    [{ image: "https://example.com/a.png" }, { references: [url("https://example.com/a.png")] }],
    [{ image: "HTTP://example.com/a" }, { references: [url("HTTP://example.com/a")] }],
    [{ image: gif }, { references: [bytes(gifBytes)] }],
    [{ image: gif.replace("=", "") }, { references: [bytes(gifBytes)] }],
    [{ image: `${gif.slice(0, 8)}\r\n${gif.slice(8)}\n` }, { references: [bytes(gifBytes)] }],
    [{ image: "-_-_" }, { references: [bytes(Buffer.from("+/+/", "base64"))] }],
    [{ image: `data:image/gif;base64,${gif}` }, { references: [bytes(gifBytes)] }],
    [{ image: `DATA:image/gif;name=a.gif;BASE64,${gif}` }, { references: [bytes(gifBytes)] }],
    [{ image: `data:;base64,${gif}` }, { references: [bytes(gifBytes)] }],
    [{ image: `data:text/html;base64,${gif}` }, { references: [bytes(gifBytes)] }],
    [{ image: [gif, "https://b.test"] }, { references: [bytes(gifBytes), url("https://b.test")] }],
    [{ image: Array.from({ length: 8 }, () => gif) }, { references: Array.from({ length: 8 }, () => bytes(gifBytes)) }],
    [{ image: [] }, { references: [] }],
    [{ resolution: "1K" }, { resolution: "1K" }],
    [{ resolution: "2k" }, { resolution: "2K" }],
    [{ resolution: "4k" }, { resolution: "4K" }],
    [{ resolution: "1024x1024" }, { resolution: "1024X1024" }],
    [{ resolution: "x".repeat(1e6) }, { resolution: "X".repeat(32) }],
    [{ quality: "hd" }, { resolution: "4K" }],
    [{ quality: "HD", resolution: null }, { resolution: "4K" }],
    [{ quality: "hd", resolution: "1k" }, { resolution: "1K" }],
    ...["standard", "low", "medium", "high", "auto", "", "4K", 4, true, ["hd"], { hd: true }].map(
      (quality): [Fields, Partial<ImageAsk>] => [{ quality }, { resolution: undefined }]
    ),
    [{ response_format: "url" }, { responseFormat: "url" }],
    [{ response_format: "b64_json" }, { responseFormat: "b64_json" }],
    [{ n: 1 }, {}],
    [{ stream: false }, {}],
    [{ images: [] }, {}],
    [{ images: "" }, {}],
    [{ mask: "" }, {}],
    [{ mask: {} }, {}]
  ])("%j is taken", (fields, expected) => {
    assert.deepStrictEqual(taken({ ...base, ...fields }), { ...taken(base), ...expected })
  })

  it("take null for absent", () => {
    const names = ["image", "resolution", "quality", "response_format", "n", "stream", "mask", "images"]
    assert.deepStrictEqual(taken({ ...base, ...Object.fromEntries(names.map((name) => [name, null])) }), taken(base))
  })

  it("pass over what they do not know", () => {
    const unknown = {
      size: "9x9",
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
    assert.deepStrictEqual(taken({ ...base, ...unknown }), taken(base))
  })

  const notImages = "`image` must be a string or an array of strings."

  it.each<[field: string, values: ReadonlyArray<unknown>, message: string]>([
    ["image", [5, true, {}, [5], [null], [[gif]], [gif, {}], { url: "https://a.test" }], notImages],
    ["image", [Array.from({ length: 9 }, () => gif)], "`image` must hold at most 8 images."],
    ["image", ["", " ", "A", "a b c!", "=", "AAAA=AAA", "AAAA====", "ä", "\0", ["", gif]], unusable],
    [
      "image",
      ["data:", "data:image/png", "data:image/png,abc", "data:image/png;base64,", "data:;base64,%41"],
      unusable
    ],
    ["image", ["ftp://a.test/a.png", "file:///etc/passwd", "//a.test/a.png", "javascript:0"], unusable],
    ["image", ["http://", "https://a b.test", "https://[::1", "http://a.test:99999/"], unusable],
    ["image", [`https://a.test/${"a".repeat(8192)}`], unusable],
    ["image", [Buffer.alloc(largestReference + 1).toString("base64")], unusable],
    ["resolution", [4, true, "", [], ["1K"], {}], "`resolution` must be one of 1K, 2K, 4K."],
    ["response_format", ["", "URL", "b64", "png", 1, [], {}], "`response_format` must be url or b64_json."],
    ["n", [0, 2, 10, -1, 1.5, "1", true, []], "`n` must be 1."],
    ["stream", [true, "true", 1], "`stream` must be false: images are not streamed."],
    ["mask", [gif, { file_id: "f" }, true], "`mask` is not supported: describe the edit in `prompt`."],
    ["images", [[gif], [{ image_url: gif }], gif, { 0: gif }], "`images` is not supported: use `image`."]
  ])("%s: %j is refused: %s", (field, values, message) => {
    for (const value of values) {
      assert.deepStrictEqual(refusal({ ...base, [field]: value }), ["InvalidRequest", field, message])
    }
  })

  it("name the field to use before they miss it", () => {
    const images = [{ image_url: gif }]
    assert.deepStrictEqual(editRefusal({ ...base, images }), [
      "InvalidRequest",
      "images",
      "`images` is not supported: use `image`."
    ])
    assert.strictEqual(editRefusal({ ...base, image: gif, images: [] }), "accepted")
  })

  it("may hold a reference of just 20 MiB, in base64 with and without padding", () => {
    const whole = Buffer.alloc(largestReference, 7)
    for (const image of [
      whole.toString("base64"),
      whole.toString("base64url"),
      `data:;base64,${whole.toString("base64")}`
    ]) {
      const [reference] = taken({ ...base, image }).references
      assert.isTrue(reference?._tag === "Bytes" && whole.equals(reference.bytes))
    }
  })
})

describe("a form", () => {
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
      textPart("user", "")
    ]
    const json = { ...base, image: [gif, "https://b.test/b.png", gif], response_format: "b64_json", resolution: "2K" }
    assert.deepStrictEqual(taken(bodyOf([...parts, ...more])), taken(json))
  })

  it("is the same request with another boundary", () => {
    const all = [...parts, filePart("image", gifBytes)]
    assert.deepStrictEqual(taken(bodyOf(all, "one")), taken(bodyOf(all.toReversed(), "another")))
  })

  it.each<[what: string, parts: ReadonlyArray<Buffer>, param: string, message: string]>([
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
    ["an empty file", [...parts, filePart("image", "")], "image", unusable],
    ["a file too large", [...parts, filePart("image", Buffer.alloc(largestReference + 1))], "image", unusable],
    [
      "nine files",
      [...parts, ...Array.from({ length: 9 }, () => filePart("image[]", gifBytes))],
      "image",
      "`image` must hold at most 8 images."
    ],
    [
      "a mask",
      [...parts, filePart("image", gifBytes), filePart("mask", gifBytes)],
      "mask",
      "`mask` is not supported: describe the edit in `prompt`."
    ],
    ["two", [...parts, filePart("image", gifBytes), textPart("n", "2")], "n", "`n` must be 1."],
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
  ])("of %s is refused", (_, sent, param, message) => {
    assert.deepStrictEqual(editRefusal(bodyOf(sent)), ["InvalidRequest", param, message])
  })
})

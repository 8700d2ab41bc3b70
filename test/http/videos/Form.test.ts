import { explainReference, unusableReference } from "../../../src/domain/Media.ts"
import type { VideoParams } from "../../../src/domain/VideoRules.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { encoded, filePart, textPart } from "../body/Forms.ts"
import { gif, gifBytes } from "../images/ImageBodies.ts"
import type { Words } from "../openapi/Published.ts"
import { bodyOf, bodyOfForm, decodeBody, refusal } from "./VideoBodies.ts"

const parts = [textPart("model", "m"), textPart("prompt", "a cat")]
const baseParams: VideoParams = {
  model: "m",
  prompt: "a cat",
  seconds: undefined,
  references: [],
  webhookUrl: undefined
}
const file = { _tag: "Bytes", bytes: gifBytes } as const
const link = { _tag: "Url", url: "https://a.test/a.png" } as const

describe("a form for a video", () => {
  it.each<[what: string, parts: ReadonlyArray<Buffer>, expected: Partial<VideoParams>]>([
    ["nothing else", [], {}],
    ["seconds", [textPart("seconds", "8")], { seconds: 8 }],
    ["seconds and the alias", [textPart("duration", "4"), textPart("seconds", "12")], { seconds: 12 }],
    ["the alias", [textPart("duration", "4"), textPart("seconds", "")], { seconds: 4 }],
    ["a webhook", [textPart("webhook_url", link.url)], { webhookUrl: link.url }],
    ["an empty webhook", [textPart("webhook_url", "")], {}],
    ["a file", [filePart("input_reference", gifBytes)], { references: [file] }],
    ["a file of the other name", [filePart("image", gifBytes)], { references: [file] }],
    ["repeated files", [filePart("image[]", gifBytes), textPart("image[]", link.url)], { references: [file, link] }],
    ["a link in brackets", [textPart("input_reference[image_url]", link.url)], { references: [link] }],
    ["base64 in brackets", [textPart("input_reference[image_url]", gif)], { references: [file] }],
    ["a link without", [textPart("input_reference", link.url)], { references: [link] }],
    [
      "a file and a link",
      [textPart("input_reference[image_url]", link.url), filePart("input_reference", gifBytes)],
      { references: [file, link] }
    ],
    ["both names", [filePart("input_reference", gifBytes), textPart("image", link.url)], { references: [link] }],
    [
      "empty texts",
      ["image", "image[]", "input_reference", "input_reference[image_url]", "input_reference[file_id]", "n"].map(
        (name) => textPart(name, "")
      ),
      {}
    ],
    ["one", [textPart("n", "1")], {}],
    ["what it does not know", [textPart("size", "1280x720"), textPart("resolution", "4K"), filePart("x", "y")], {}]
  ])("with %s is the same request as JSON", (_, more, expected) => {
    assert.deepStrictEqual(decodeBody(bodyOf([...parts, ...more])), { ...baseParams, ...expected })
  })

  it("is the same request with another boundary", () => {
    const all = [...parts, filePart("input_reference", gifBytes), textPart("seconds", "8")]
    assert.deepStrictEqual(decodeBody(bodyOf(all, "one")), decodeBody(bodyOf(all.toReversed(), "another")))
  })

  it("is read as JavaScript clients write it", async () => {
    const form = new FormData()
    for (const [name, value] of [
      ["model", "m"],
      ["prompt", "a cat"],
      ["seconds", "12"]
    ] as const)
      form.append(name, value)
    form.append("input_reference", new File([gifBytes], "图.gif", { type: "image/gif" }))
    const { body, type } = await encoded(form)
    assert.deepStrictEqual(decodeBody(bodyOfForm(type, body)), { ...baseParams, seconds: 12, references: [file] })
  })

  const unusable = (problem: string): Words => [unusableReference, explainReference(problem)]

  it.each<[what: string, parts: ReadonlyArray<Buffer>, param: string, words: Words]>([
    ["no model", parts.slice(1), "model", "`model` is required."],
    ["no prompt", parts.slice(0, 1), "prompt", "`prompt` is required."],
    [
      "a prompt in a file",
      [textPart("model", "m"), filePart("prompt", "p")],
      "prompt",
      "`prompt` must be text, not a file."
    ],
    ["two prompts", [...parts, textPart("prompt", "another")], "prompt", "`prompt` must be one text, not several."],
    ["two models", [...parts, textPart("model", "another")], "model", "`model` must be one text, not several."],
    ["an empty file", [...parts, filePart("input_reference", "")], "image", unusable("is empty or not valid base64")],
    [
      "a text that is no image",
      [...parts, textPart("input_reference", "a b!")],
      "image",
      unusable("is neither an http(s) URL nor base64")
    ],
    [
      "nine files",
      [...parts, ...Array.from({ length: 9 }, () => filePart("image[]", gifBytes))],
      "image",
      "`image` must hold at most 8 images."
    ],
    [
      "a file's id",
      [...parts, textPart("input_reference[file_id]", "file-1")],
      "input_reference",
      "`input_reference.file_id` is not supported: send the image itself, or its URL as `image_url`."
    ],
    [
      "a file for a link",
      [...parts, filePart("input_reference[image_url]", gifBytes)],
      "input_reference",
      "`input_reference.image_url` must be a string."
    ],
    ["seconds with a unit", [...parts, textPart("seconds", "8s")], "seconds", "`seconds` must be an integer."],
    ["seconds in a file", [...parts, filePart("seconds", "8")], "seconds", "`seconds` must be an integer."],
    [
      "seconds twice",
      [...parts, textPart("seconds", "8"), textPart("seconds", "8")],
      "seconds",
      "`seconds` must be an integer."
    ],
    ["two", [...parts, textPart("n", "2")], "n", "`n` must be 1."]
  ])("is refused with %s", (_, sent, param, words) => {
    assert.deepStrictEqual(refusal(bodyOf(sent)), ["InvalidRequest", param, ...[words].flat()])
  })
})

import { assert, describe, it } from "@effect/vitest"
import { filePart, textPart } from "../../harness/client/Forms.ts"
import { accepts, inexpressible } from "../../harness/client/Published.ts"
import * as Chat from "../../harness/fixtures/ChatBodies.ts"
import * as Image from "../../harness/fixtures/ImageBodies.ts"

// The tables of ChatBody, ChatMessages, ImageBody, VideoBody and VideoForm.test.ts are judged by the document too:
// their helpers are of `agreeing`.

const { gif, gifBytes } = Image
const parts = [textPart("model", "m"), textPart("prompt", "p"), filePart("image", gifBytes)]

describe("the published schemas and the decoders", () => {
  it.each([
    { resolution: "4k" },
    { resolution: null, quality: null, response_format: null, n: null, stream: null, mask: null, images: null },
    { image: [gif, "https://a.test/a.png"] },
    { quality: { any: ["type"] } },
    { images: [], stream: false, unknown: {} }
  ])("agree that %j is accepted of an image", (fields) => {
    Image.taken({ ...Image.base, ...fields })
    assert.strictEqual(Image.editRefusal({ ...Image.base, image: gif, ...fields }), "accepted")
  })

  it.each([{ stream: true }, { mask: gif }, { images: [gif] }, { n: 2 }, { resolution: "8K" }, { image: [gif, null] }])(
    "agree that %j is refused of an image",
    (fields) => {
      for (const name of ["ImageGenerationRequest", "ImageEditRequest"]) {
        assert.isFalse(accepts(name, { ...Image.base, image: gif, ...fields }), name)
      }
      Image.refusal({ ...Image.base, ...fields })
    }
  )

  it("agree on forms of an edit", () => {
    const form = (...more: ReadonlyArray<Buffer>) => Image.editRefusal(Image.bodyOf([...parts, ...more]))
    const [model, prompt, file] = parts
    if (model === undefined || prompt === undefined || file === undefined) throw new Error("three parts")
    assert.strictEqual(form(textPart("n", ""), textPart("resolution", "4k"), textPart("stream", "false")), "accepted")
    assert.strictEqual(Image.editRefusal(Image.bodyOf([model, prompt, filePart("image[]", gifBytes)])), "accepted")
    for (const part of [
      textPart("n", "2"),
      textPart("stream", "true"),
      filePart("mask", gifBytes),
      textPart("images", gif)
    ]) {
      assert.notStrictEqual(form(part), "accepted")
    }
    assert.notStrictEqual(Image.editRefusal(Image.bodyOf([model, prompt])), "accepted")
    assert.notStrictEqual(Image.editRefusal(Image.bodyOf([model, prompt, textPart("image", "")])), "accepted")
  })

  it("agree on a chat", () => {
    for (const fields of [{ n: 1 }, { stop: ["x"], temperature: 2, unknown: {} }, { tools: [Chat.tool("f")] }]) {
      Chat.taken({ ...Chat.base, ...fields })
      assert.isTrue(accepts("ChatCompletionRequest", { ...Chat.base, ...fields }))
    }
    for (const fields of [{ n: 2 }, { temperature: 3 }, { stop: [""] }, { messages: [] }, { functions: [{}] }]) {
      assert.notStrictEqual(Chat.refusal({ ...Chat.base, ...fields }), "accepted")
    }
  })

  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) })
  const answered = Chat.said(Chat.hi, { role: "tool", tool_call_id: "c", content: "1" })

  it.each<[what: string, name: string, instance: unknown, refusal: () => unknown]>([
    [
      "what a reference image holds",
      "ImageGenerationRequest",
      { ...Image.base, image: "no" },
      () => Image.refusal({ ...Image.base, image: "a b!" })
    ],
    [
      "a file of a form in the place of a text",
      "ImageEditForm",
      { model: "m", prompt: "bytes", image: "bytes" },
      () =>
        Image.editRefusal(Image.bodyOf([textPart("model", "m"), filePart("prompt", "p"), filePart("image", gifBytes)]))
    ],
    [
      "a tool choice and the tools beside it",
      "ChatCompletionRequest",
      { ...Chat.base, tool_choice: Chat.tool("f") },
      () => Chat.refusal({ ...Chat.base, tool_choice: Chat.tool("f") })
    ],
    ["a tool result and the call before it", "ChatCompletionRequest", answered, () => Chat.refusal(answered)],
    [
      "how deep a JSON Schema nests",
      "ChatCompletionRequest",
      { ...Chat.base, tools: [Chat.tool("f", { parameters: deep(101) })] },
      () => Chat.refusal({ ...Chat.base, tools: [Chat.tool("f", { parameters: deep(101) })] })
    ]
  ])("differ in %s, which JSON Schema cannot express", (what, name, instance, refusal) => {
    const [, where, message] = inexpressible.find(([named]) => named === what) ?? []
    assert.isTrue(where?.test(name))
    assert.isTrue(accepts(name, instance))
    assert.match(String(Object(refusal())[2]), message ?? /^$/)
  })
})

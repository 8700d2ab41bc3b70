import { assert, describe, it } from "../../harness/It.ts"
import { filePart, textPart } from "../body/Forms.ts"
import * as Chat from "../chat/ChatBodies.ts"
import * as Image from "../images/ImageBodies.ts"
import { accepts, inexpressible } from "./Published.ts"

// The tables of ChatBody, ChatMessages, ImageBody, VideoBody and VideoForm.test.ts are judged by the document too:
// their helpers are of `agreeing`.

const { gifBytes } = Image

describe("the published schemas and the decoders", () => {
  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) })
  const answered = Chat.chatBody(Chat.hi, { role: "tool", tool_call_id: "c", content: "1" })

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
    const found = inexpressible.find((one) => one.what === what) ?? assert.fail(what)
    assert.isTrue(found.schemas.test(name))
    assert.isTrue(accepts(name, instance))
    assert.notStrictEqual(refusal(), "accepted")
  })

  const calling = (id: string, name = "f") =>
    Chat.chatBody(
      Chat.hi,
      { role: "assistant", tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }] },
      { role: "tool", tool_call_id: id, content: "1" }
    )
  const id = "😀".repeat(4096)

  it("agree on how long the id and the name of a tool call may be", () => {
    for (const body of [calling(id), calling(`${id}~sig~${"s".repeat(16_384)}`), calling("c", id)])
      Chat.decodeBody(body)
    for (const body of [calling(`${id}.`), calling("c", `${id}.`)]) {
      assert.deepStrictEqual(Chat.refusal(body).slice(0, 2), ["InvalidRequest", "messages"])
    }
  })

  it("agree on how long the URL of an image may be", () => {
    const url = (length: number) => "HTTPS://x.test/".padEnd(length, "a")
    const shown = (text: string) => Chat.chatBody({ role: "user", content: [Chat.imageUrl(text)] })
    for (const [text, isAccepted] of [
      [url(8192), true],
      [url(8193), false],
      [`data:image/png;base64,${"A".repeat(9000)}`, true]
    ] as const) {
      assert.strictEqual(accepts("ChatCompletionRequest", shown(text)), isAccepted)
      assert.strictEqual(Chat.refusal(shown(text)) === "accepted", isAccepted)
      const edit = { ...Image.base, image: [text] }
      assert.strictEqual(accepts("ImageEditRequest", edit), isAccepted)
      assert.strictEqual(Image.editRefusal(edit) === "accepted", isAccepted)
    }
  })
})

import { assert, describe, it } from "@effect/vitest"
import { filePart, textPart } from "../../harness/client/Forms.ts"
import { accepts, inexpressible } from "../../harness/client/Published.ts"
import * as Chat from "../../harness/fixtures/ChatBodies.ts"
import * as Image from "../../harness/fixtures/ImageBodies.ts"

// The tables of ChatBody, ChatMessages, ImageBody, VideoBody and VideoForm.test.ts are judged by the document too:
// their helpers are of `agreeing`.

const { gifBytes } = Image

describe("the published schemas and the decoders", () => {
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

import { Struct } from "effect"
import { encodeCallId } from "../../../src/domain/Chat.ts"
import { completionJson } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { callingAnswer, encoder, name, usage } from "./ChatAnswers.ts"
import { call, chatBody, decodeBody } from "./ChatBodies.ts"

const bodyWithCall = (id: string) =>
  chatBody(
    { role: "assistant", tool_calls: [call(id), call("other")] },
    { role: "tool", content: "r", tool_call_id: id },
    { role: "tool", content: "s", tool_call_id: "other" }
  )

/** What the calls of a request's assistant are, and which of them is answered first. */
const decodeCall = (id: string) => {
  const [assistant, result] = decodeBody(bodyWithCall(id)).messages
  return {
    calls: assistant?.role === "assistant" ? assistant.tool_calls?.map(({ id, signature }) => [id, signature]) : [],
    answered: result?.role === "tool" ? result.tool_call_id : undefined
  }
}

describe("the ids of tool calls", () => {
  it("bring back the signature that went out in them", () => {
    assert.deepStrictEqual(decodeCall(encodeCallId("c", "c2ln")), {
      calls: [
        ["c", "c2ln"],
        ["other", undefined]
      ],
      answered: "c"
    })
  })

  it("stay unchanged for hosts without signatures", () => {
    for (const id of ["functions.f:0", "toolu_1", "~sig~", "x".repeat(500)]) {
      assert.deepStrictEqual(decodeCall(id).calls?.[0], [id, undefined])
      assert.strictEqual(decodeCall(id).answered, id)
    }
  })

  it("carry a signature in an answer and in a stream", () => {
    const [first] = callingAnswer.toolCalls
    if (first === undefined) return assert.fail("an answer without calls")
    const answer = { ...callingAnswer, toolCalls: [{ ...first, signature: "c2ln" }] }
    const [choice] = completionJson(name, answer, usage).choices
    const id = encodeCallId(first.id, "c2ln")
    assert.deepStrictEqual(choice?.message.tool_calls?.map(Struct.get("id")), [id])
    assert.notProperty(choice?.message.tool_calls?.[0], "signature")
    const streamed = encoder(false).encode([
      { type: "tool_call", index: 0, id: first.id, name: "f", arguments: "", signature: "c2ln" },
      { type: "tool_call", index: 0, arguments: "{}" }
    ])
    assert.include(streamed, `"id":${JSON.stringify(id)},`)
    assert.notInclude(streamed, `"signature"`)
  })
})

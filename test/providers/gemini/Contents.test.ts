import type { Message } from "../../../src/domain/Chat.ts"
import { encodeContents } from "../../../src/providers/gemini/GeminiRequest.ts"
import { called } from "../../contracts/ChatHarness.ts"
import { routeTo } from "../../contracts/ChatHosts.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { gemini } from "./Wire.ts"

const user = (content: string): Message => ({ role: "user", content })

describe("a conversation on Gemini's wire", () => {
  const route = routeTo(gemini)
  const contents = (...messages: ReadonlyArray<Message>) => encodeContents(route, messages, "optional").contents
  const calling = (...tool_calls: ReadonlyArray<ReturnType<typeof called>>): Message => {
    return { role: "assistant", content: null, tool_calls }
  }
  const result = (id: string): Message => ({ role: "tool", content: "r", tool_call_id: id })

  it("has images inline, by the type that their URL says", () => {
    const urls = ["data:image/png;base64,iVBORw0KGgo=", "data:IMAGE/JPG;charset=x;base64,AAAA"]
    const content = urls.map((url) => ({ type: "image_url", image_url: { url } }) as const)
    const [turn] = contents({ role: "user", content })
    assert.deepStrictEqual(turn?.parts, [
      { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } },
      { inlineData: { mimeType: "image/jpeg", data: "AAAA" } }
    ])
  })

  it("has one turn each for replayed calls and their results, with the name of the call", () => {
    const [, ...turns] = contents(
      user("U"),
      { role: "assistant", content: "Let me look." },
      calling(called("a", "f", '{"x":1}'), called("b", "g", "{}")),
      result("b"),
      result("a"),
      user("And?")
    )
    assert.deepStrictEqual<unknown>(turns, [
      {
        role: "model",
        parts: [
          { text: "Let me look." },
          { functionCall: { id: "a", name: "f", args: { x: 1 } } },
          { functionCall: { id: "b", name: "g", args: {} } }
        ]
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "b", name: "g", response: { output: "r" } } },
          { functionResponse: { id: "a", name: "f", response: { output: "r" } } }
        ]
      },
      { role: "user", parts: [{ text: "And?" }] }
    ])
  })

  it.each([
    ["", {}],
    ["[1]", { arguments: "[1]" }],
    ["{oops", { arguments: "{oops" }]
  ])("has the arguments %j as %j", (input, args) => {
    const [, model] = contents(user("U"), calling(called("a", "f", input)))
    assert.deepStrictEqual<unknown>(model?.parts[0]?.functionCall?.args, args)
  })

  it("has no parts for empty texts, and is its user's where there is a system alone", () => {
    const empty: Message = { role: "assistant", content: "" }
    assert.deepStrictEqual<unknown>(contents(user(""), empty, user("a")), [
      { role: "user", parts: [{ text: "" }] },
      { role: "user", parts: [{ text: "a" }] }
    ])
    assert.deepStrictEqual<unknown>(encodeContents(route, [{ role: "system", content: "S" }], "optional"), {
      system: [],
      contents: [{ role: "user", parts: [{ text: "S" }] }]
    })
  })
})

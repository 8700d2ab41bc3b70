import { assert, describe, it } from "@effect/vitest"
import type { Message } from "../../../src/domain/Chat.ts"
import { encodeContents } from "../../../src/providers/gemini/Contents.ts"
import { called, calls, result, user } from "./support.ts"
import { routeTo } from "./Wire.ts"

const route = routeTo("http://x")
const contents = (...messages: ReadonlyArray<Message>) => encodeContents(route, messages, "optional").contents
const png = "data:image/png;base64,iVBORw0KGgo="

describe("a conversation on Gemini's wire", () => {
  it("pictures are inline, by the type that their URL says", () => {
    const urls = [png, "data:IMAGE/JPG;charset=x;base64,AAAA"]
    const content = urls.map((url) => ({ type: "image_url", image_url: { url } }) as const)
    assert.deepStrictEqual(contents({ role: "user", content }), [
      {
        role: "user",
        parts: [
          { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } },
          { inlineData: { mimeType: "image/jpeg", data: "AAAA" } }
        ]
      }
    ])
  })

  it("replayed calls and their results: one turn each, with the name of the call", () => {
    const history = contents(
      user("U"),
      { role: "assistant", content: "Let me look." },
      calls({ ...called("a"), function: { name: "f", arguments: '{"x":1}' } }, called("b")),
      result("b"),
      result("a"),
      user("And?")
    )
    const [, model, results, after] = history
    assert.deepStrictEqual(model, {
      role: "model",
      parts: [
        { text: "Let me look." },
        { functionCall: { id: "a", name: "f", args: { x: 1 } } },
        { functionCall: { id: "b", name: "f_b", args: {} } }
      ]
    })
    assert.deepStrictEqual(results, {
      role: "user",
      parts: [
        { functionResponse: { id: "b", name: "f_b", response: { output: "r" } } },
        { functionResponse: { id: "a", name: "f", response: { output: "r" } } }
      ]
    })
    assert.deepStrictEqual(after, { role: "user", parts: [{ text: "And?" }] })
  })

  it("arguments that are no object are shown as they are", () => {
    for (const [given, args] of [
      ["", {}],
      ["[1]", { arguments: "[1]" }],
      ["{oops", { arguments: "{oops" }]
    ] as const) {
      const [, model] = contents(user("U"), calls({ ...called("a"), function: { name: "f", arguments: given } }))
      assert.deepStrictEqual(model?.parts[0]?.functionCall?.args, args)
    }
  })

  it("empty texts are no parts, and a conversation of a system alone is its user's", () => {
    const empty: Message = { role: "assistant", content: "" }
    assert.deepStrictEqual(contents(user(""), empty, user("a")), [
      { role: "user", parts: [{ text: "" }] },
      { role: "user", parts: [{ text: "a" }] }
    ])
    assert.deepStrictEqual(encodeContents(route, [{ role: "system", content: "S" }], "optional"), {
      system: [],
      contents: [{ role: "user", parts: [{ text: "S" }] }]
    })
  })
})

import { assert, describe, it } from "@effect/vitest"
import type { Message } from "../../../src/domain/Chat.ts"
import { bodyOf, called } from "./support.ts"

const user = (content: string): Message => ({ role: "user", content })
const turns = (...messages: ReadonlyArray<Message>) => bodyOf({ messages }).messages
const says = (text: string) => ({ type: "text", text }) as const

describe("replayed calls", () => {
  const calls = [called("call_a", "get_weather", '{"city":"Bern"}'), called("call_b", "now", "")]
  const asked: Message = { role: "assistant", content: "Let me look.", tool_calls: calls }
  const result = (id: string, content: string): Message => ({ role: "tool", content, tool_call_id: id })

  it("have an object for input, and their results open the next turn, before what the user says", () => {
    assert.deepStrictEqual(turns(user("?"), asked, result("call_a", "sunny"), user("Well?"), result("call_b", "")), [
      { role: "user", content: [says("?")] },
      {
        role: "assistant",
        content: [
          says("Let me look."),
          { type: "tool_use", id: "call_a", name: "get_weather", input: { city: "Bern" } },
          { type: "tool_use", id: "call_b", name: "now", input: {} }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_a", content: [says("sunny")] },
          { type: "tool_result", tool_use_id: "call_b" },
          says("Well?")
        ]
      }
    ])
  })

  it("keep arguments that are no object", () => {
    for (const given of ['{"city": "Be', "[1]", '"Bern"', "null"]) {
      const [, turn] = turns(user("?"), { role: "assistant", content: null, tool_calls: [called("a", "now", given)] })
      assert.deepInclude(turn?.content[0], { input: { arguments: given } })
    }
  })

  it("of other vendors get ids that this wire takes, each its own", () => {
    const ids = ["functions.now:0", "functions.now:1", "x".repeat(65), "fine-1_A"]
    const [, made, answered] = turns(
      user("?"),
      { role: "assistant", content: null, tool_calls: ids.map((id) => called(id, "now", "{}")) },
      ...ids.map((id) => result(id, id))
    )
    const sent = (made?.content ?? []).map((block) => ("id" in block ? block.id : ""))
    assert.deepStrictEqual(
      (answered?.content ?? []).map((block) => ("tool_use_id" in block ? block.tool_use_id : "")),
      sent
    )
    assert.strictEqual(new Set(sent).size, ids.length)
    for (const id of sent) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
    assert.strictEqual(sent.at(-1), "fine-1_A")
  })

  it("of hosts that count anew in every answer are told apart, each result with its own", () => {
    const turn = (content: string): ReadonlyArray<Message> => [
      { role: "assistant", content: null, tool_calls: [called("call_0", "now", "{}"), called("call_0", "now", "{}")] },
      result("call_0", content),
      result("call_0", `${content} later`)
    ]
    const blocks = turns(user("?"), ...turn("first"), ...turn("second")).flatMap(({ content }) => content)
    const sent = blocks.flatMap((block) => (block.type === "tool_use" ? [block.id] : []))
    assert.strictEqual(new Set(sent).size, 4)
    assert.deepStrictEqual(
      blocks.flatMap((block) => (block.type === "tool_result" ? [[block.tool_use_id, block.content]] : [])),
      ["first", "first later", "second", "second later"].map((text, index) => [sent[index], [says(text)]])
    )
  })

  it("have their tools defined where the client names none any more, and none of them may be called", () => {
    const sent = bodyOf({ messages: [user("?"), asked, result("call_a", "sunny"), result("call_b", "noon")] })
    const input_schema = { type: "object" } as const
    assert.deepStrictEqual(sent.tools, [
      { name: "get_weather", input_schema },
      { name: "now", input_schema }
    ])
    assert.deepStrictEqual(sent.tool_choice, { type: "none" })
  })
})

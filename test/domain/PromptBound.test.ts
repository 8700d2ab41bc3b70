import { FastCheck as fc } from "effect"
import type { Message } from "../../src/domain/Chat.ts"
import { parseExact } from "../../src/domain/JsonText.ts"
import * as Pricing from "../../src/domain/Pricing.ts"
import { missingResultText } from "../../src/providers/chat/ToolCalls.ts"
import { assert, describe, it } from "../harness/It.ts"
import { bound, user } from "./PricedChats.ts"

describe("utf8Bytes", () => {
  it("agrees with the platform's encoder", () => {
    const encoder = new TextEncoder()
    const texts = fc.oneof(fc.string(), fc.fullUnicodeString(), fc.string16bits())
    fc.assert(
      fc.property(texts, (text) => {
        assert.strictEqual(Pricing.utf8Bytes(text), encoder.encode(text).length)
      })
    )
    assert.strictEqual(Pricing.utf8Bytes("aé漢😀\ud800"), 1 + 2 + 3 + 4 + 3)
  })

  it("stops soon after the limit", () => {
    const bytes = Pricing.utf8Bytes("漢".repeat(1_000_000), 10)
    assert.isAbove(bytes, 10)
    assert.isAtMost(bytes, 13)
  })

  it("is exact up to the limit, also where only the bytes come near it", () => {
    const text = "漢".repeat(1_000)
    assert.isAbove(Pricing.utf8Bytes(text, 1_000), 1_000)
    assert.strictEqual(Pricing.utf8Bytes(text, 3_000), 3_000)
  })
})

const calling = (calls: number): Message => ({
  role: "assistant",
  content: null,
  tool_calls: Array.from({ length: calls }, () => ({
    id: "c",
    type: "function",
    function: { name: "f", arguments: "" }
  }))
})

describe("promptBound", () => {
  it("counts bytes of text, not characters", () => {
    assert.strictEqual(bound([user("漢漢")]) - bound([user("")]), 6)
  })

  it("counts tools as they are sent, with each digit of their numbers", () => {
    const tool = (digits: number) => {
      const parameters = Object(parseExact(`{"maximum":1.${"0".repeat(digits)}}`, 10))
      return [{ type: "function" as const, function: { name: "f", parameters } }]
    }
    for (const isLarge of [false, true]) {
      assert.strictEqual(
        bound([user("")], { tools: tool(501), isLarge }) - bound([user("")], { tools: tool(1), isLarge }),
        500
      )
    }
    assert.strictEqual(Pricing.jsonTokens(tool(501)) - Pricing.jsonTokens(tool(1)), 500)
  })

  it("counts every text that becomes prompt", () => {
    const empty = bound([{ role: "assistant", content: null }])
    const full = bound([
      {
        role: "assistant",
        content: [{ type: "text", text: "abc" }],
        name: "de",
        reasoning_content: "fghi",
        tool_calls: [{ id: "call1", type: "function", function: { name: "sum", arguments: "{}" } }]
      }
    ])
    const missing = bound([calling(1)]) - bound([{ role: "assistant", content: null }]) - 2
    assert.strictEqual(full - empty, 3 + 2 + 4 + 5 + 3 + 2 + missing)
    const answer = bound([{ role: "tool", content: "42", tool_call_id: "call1" }])
    assert.strictEqual(answer - empty, 2 + 5)
  })

  it("counts the results that calls lack, which are sent in their place", () => {
    const answer: Message = { role: "tool", content: "", tool_call_id: "c" }
    const none = bound([calling(0)])
    const perCall = bound([calling(1)]) - none
    assert.isAbove(perCall, 16 + Buffer.byteLength(missingResultText))
    assert.strictEqual(bound([calling(500)]) - none, 500 * perCall)
    assert.strictEqual(bound([calling(2), answer]) - bound([calling(1), answer, answer]), perCall - 16 - 1)
    assert.strictEqual(bound([calling(1), answer]) - bound([calling(0), answer]), 2)
  })

  it("counts tools, schemas and searches", () => {
    const plain = bound([user("x")])
    const tools = [{ type: "function" as const, function: { name: "f", description: "d".repeat(500) } }]
    assert.isAtLeast(bound([user("x")], { tools }) - plain, JSON.stringify(tools).length)
    const schema = { properties: { a: { type: "string", description: "e".repeat(300) } } }
    const responseFormat = { type: "json_schema" as const, json_schema: { name: "s", schema } }
    assert.isAtLeast(bound([user("x")], { responseFormat }) - plain, JSON.stringify(responseFormat).length)
    assert.strictEqual(bound([user("x")], { webSearch: true }) - plain, 10_000)
  })

  it("counts what only a native body holds, up to the context", () => {
    const native = (extraTokens: number) =>
      ({ native: { dialect: "messages", body: {}, headers: {}, extraTokens } }) as const
    assert.strictEqual(bound([user("x")], native(500)) - bound([user("x")]), 500)
    for (const endless of [Number.MAX_SAFE_INTEGER, Infinity]) {
      assert.strictEqual(bound([user("x")], native(endless)), 1_048_576)
    }
  })

  it("counts an image at its worst case whatever its address or bytes weigh", () => {
    const image = (url: string): Message => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] })
    const short = bound([image("https://a.test/b.png")])
    const long = bound([image(`data:image/png;base64,${"A".repeat(500_000)}`)])
    assert.strictEqual(short, long)
    assert.strictEqual(short - bound([{ role: "user", content: [] }]), 2500)
  })

  it("never passes the context", () => {
    assert.strictEqual(bound([user("x".repeat(3_000_000))]), 1_048_576)
    assert.strictEqual(bound(Array.from({ length: 40 }, () => user("y".repeat(50_000)))), 1_048_576)
  })
})

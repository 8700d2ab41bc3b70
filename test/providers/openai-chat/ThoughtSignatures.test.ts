import { assert, describe, it } from "@effect/vitest"
import type { Message, ToolCall } from "../../../src/domain/Chat.ts"
import { options as decoder } from "../../../src/providers/openai-chat/Options.ts"
import { encodeRequest } from "../../../src/providers/openai-chat/Request.ts"
import { request } from "../../contracts/ChatHarness.ts"
import { routeTo } from "./Hosts.ts"

const call = (id: string): ToolCall => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
const calls = (...ids: ReadonlyArray<string>): Message => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map(call)
})
const result = (id: string): Message => ({ role: "tool", content: "r", tool_call_id: id })

const messages: ReadonlyArray<Message> = [
  { role: "user", content: "before" },
  calls("a"),
  result("a"),
  { role: "user", content: "now" },
  calls("b", "c"),
  result("b"),
  result("c"),
  calls("d"),
  result("d")
]

/** Which calls say that nobody has their signature. */
const unsigned = (options: Record<string, unknown>) =>
  encodeRequest({
    route: routeTo("http://x", options),
    request: request({ messages }),
    options: decoder.of(routeTo("http://x", options)),
    isStream: false,
    quirks: { maxTokensField: "max_tokens", streamOptions: true }
  }).messages.flatMap((message) =>
    message.role === "assistant"
      ? (message.tool_calls ?? []).flatMap(({ extra_content: extra, id }) =>
          extra?.google.thought_signature === "skip_thought_signature_validator" ? [id] : []
        )
      : []
  )

describe("Gemini behind an openai-chat host", () => {
  it("gets a placeholder with the first call of each step of the current turn", () => {
    assert.deepStrictEqual(unsigned({ thought_signatures: true }), ["b", "d"])
  })

  it("gets none unless told", () => {
    assert.deepStrictEqual(unsigned({}), [])
    assert.deepStrictEqual(unsigned({ thought_signatures: false }), [])
  })
})

import { Either } from "effect"
import { promptBound } from "../../../src/domain/Pricing.ts"
import { decodeMessagesBody } from "../../../src/http/messages/MessagesBody.ts"
import { chatModel } from "../../domain/PricedChats.ts"
import { assert, describe, it } from "../../harness/It.ts"

const model = chatModel()
const base = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] }
const bound = (body: object) => promptBound(model, Either.getOrThrow(decodeMessagesBody({ ...base, ...body }, {})))
const saying = (role: "assistant" | "user", block: object) =>
  bound({ messages: [...base.messages, { role, content: [{ type: "text", text: "x" }, block] }] })

const long = "x".repeat(100_000)
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } }
const picture = { type: "image", source: { type: "url", url: "https://a.test/a.png" } }
const format = { type: "json_schema", schema: {} }

describe("the hold of a body of the Messages API", () => {
  it("is the whole context where pictures and files are in what no translation holds", () => {
    const fetched = (content: object) => ({ type: "web_fetch_tool_result", tool_use_id: "a", content })
    assert.strictEqual(saying("assistant", fetched({ type: "web_fetch_result", content: pdf })), model.contextLength)
    assert.strictEqual(saying("user", { type: "of_tomorrow", content: [picture] }), model.contextLength)
    assert.isBelow(saying("assistant", fetched({ type: "web_fetch_tool_result_error" })), 1_000)
  })

  it("covers fields that a host may read and the gateway does not know", () => {
    assert.isAtLeast(bound({ of_tomorrow: long }), long.length)
    assert.isAtLeast(bound({ output_config: { format }, output_format: { ...format, more: long } }), long.length)
    const schema = { name: "f", input_schema: {}, input_examples: [{ type: "url" }] }
    assert.isBelow(bound({ tools: [schema], context_management: { edits: [] } }), 1_000)
  })

  it("takes only words for an effort", () => {
    for (const effort of ["constructor", "__proto__", "toString"]) {
      const body = { ...base, thinking: { type: "adaptive" }, output_config: { effort } }
      assert.strictEqual(Either.getOrThrow(decodeMessagesBody(body, {})).reasoningEffort, "high")
    }
  })
})

import { Either } from "effect"
import { decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { assert, describe, it } from "../../harness/It.ts"

const decodeBody = (body: object) => Either.getOrThrow(decodeChatBody({ model: "m", ...body }))
const refusal = (body: object) => {
  const { message, param } = Either.getOrThrow(Either.flip(decodeChatBody({ model: "m", ...body })))
  return [param, message]
}

const user = { role: "user", content: "hi" }
const tools = [
  { type: "custom", name: "patch" },
  { type: "function", name: `mcp.${"x".repeat(100)}`, parameters: { type: "object" } }
]

describe("a chat with Responses items for its messages", () => {
  it("may be one text", () => {
    assert.deepStrictEqual<unknown>(decodeBody({ input: "hi" }).messages, [user])
  })

  it("is the conversation of its items, with calls of custom tools and under long names", () => {
    const { customTools, messages } = decodeBody({
      tools,
      instructions: "Be kind.",
      input: [
        { role: "user", content: [{ type: "input_text", text: "hi" }] },
        { type: "custom_tool_call", call_id: "1", name: "patch", input: "*** Begin" },
        { type: "custom_tool_call_output", call_id: "1", output: "done" },
        { type: "function_call", call_id: "2", name: tools[1]?.name, arguments: "{}" },
        { type: "function_call_output", call_id: "2", output: "read" }
      ]
    })
    const call = (id: string, name: string | undefined, text: string) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name, arguments: text } }]
    })
    assert.deepStrictEqual<unknown>(messages, [
      { role: "system", content: "Be kind." },
      { role: "user", content: [{ type: "text", text: "hi" }] },
      call("1", "patch", '{"input":"*** Begin"}'),
      { role: "tool", tool_call_id: "1", content: "done" },
      call("2", tools[1]?.name, "{}"),
      { role: "tool", tool_call_id: "2", content: "read" }
    ])
    assert.deepStrictEqual(customTools, new Set(["patch"]))
  })

  it("has the other fields of Responses, and those of chats before them", () => {
    const format = { type: "json_schema", name: "n", schema: { type: "object" } }
    const fields = { input: "hi", max_output_tokens: 9, reasoning: { effort: "max" }, text: { format } }
    assert.deepInclude(decodeBody(fields), {
      maxTokens: 9,
      reasoningEffort: "xhigh",
      responseFormat: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } }
    })
    assert.deepInclude(decodeBody({ ...fields, max_completion_tokens: 7 }), { maxTokens: 7 })
    assert.isUndefined(decodeBody(fields).native)
  })

  it("names what is wrong with its items", () => {
    assert.deepStrictEqual(refusal({ input: [] }), ["input", "`input` must contain at least one message."])
    assert.deepStrictEqual(refusal({ input: [user, { type: "of_tomorrow" }] }), [
      "input",
      "The item `of_tomorrow` is not supported in chat completions."
    ])
    assert.deepStrictEqual(refusal({ input: null })[0], "messages")
  })

  it("reads items beside an empty list of messages", () => {
    assert.deepInclude(Object(decodeBody({ messages: [], input: [user] }).messages[0]), user)
  })

  it("leaves `messages` alone where both are sent", () => {
    assert.deepInclude(Object(decodeBody({ messages: [user], input: [] }).messages[0]), user)
  })
})

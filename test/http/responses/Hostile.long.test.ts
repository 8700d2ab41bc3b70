import { Either, FastCheck as fc } from "effect"
import type { ChatAnswer, ChatEvent } from "../../../src/domain/Chat.ts"
import { zero } from "../../../src/domain/Money.ts"
import { decodeResponsesBody } from "../../../src/http/responses/ResponsesBody.ts"
import { responses } from "../../../src/http/responses/ResponsesDialect.ts"
import { responseJson } from "../../../src/http/responses/ResponsesObject.ts"
import { hasAllCases, runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"

const name = { id: "resp_0a", created: 7, model: "m" }
const usage = { prompt: 1, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }

const oneOf = (...values: ReadonlyArray<unknown>) => fc.constantFrom<unknown>(...values)
const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), oneOf("x", "rs_1", "input", "f", "c", "patch"))
const type = oneOf(
  "message",
  "function_call",
  "custom_tool_call",
  "function_call_output",
  "custom_tool_call_output",
  "reasoning",
  "additional_tools",
  "tool_search_output",
  "item_reference",
  "local_shell_call",
  "input_text",
  "output_text",
  "input_image",
  "refusal",
  "function",
  "custom",
  "namespace",
  "web_search",
  "allowed_tools",
  "__proto__"
)
const fields = {
  type,
  role: oneOf("user", "assistant", "system", "tool"),
  text: junk,
  call_id: oneOf("c", "c~sig~s", 1, null),
  name: oneOf("f", "patch", "", "a b", "__proto__", "constructor", "n\u0000"),
  namespace: oneOf("n", "n__", 1, null),
  arguments: oneOf("{}", "{", 1),
  input: oneOf("x", 1),
  encrypted_content: junk,
  image_url: oneOf("data:image/png;base64,AA==", "https://x.example/", 1),
  mode: oneOf("auto", "required"),
  parameters: junk,
  format: junk
}
const part = fc.record(fields, { requiredKeys: ["type"] })
const nested = fc.oneof(junk, fc.array(part, { maxLength: 3 }))
const item = fc.record(
  { ...fields, content: nested, output: nested, summary: nested, tools: nested },
  { requiredKeys: ["type"] }
)
const declared = fc.record(
  { type: oneOf("function", "custom", "web_search"), name: oneOf("f", "patch", "__proto__", "n\u0000", "a b") },
  { requiredKeys: ["type", "name"] }
)
const namespace = fc.record({ type: fc.constant("namespace"), name: fields.name, tools: fc.array(declared) })
const opening = [
  { role: "user", content: "hi" },
  { type: "function_call", call_id: "c", name: "f", arguments: "{}" }
]
const bodies = fc.record(
  {
    model: fc.constant("m"),
    input: fc.array(item, { maxLength: 2 }).map((items) => [...opening, ...items]),
    tools: fc.array(fc.oneof({ weight: 9, arbitrary: declared }, { weight: 5, arbitrary: namespace }, item)),
    tool_choice: fc.oneof(oneOf(null, "auto", "none", "required"), item),
    text: fc.oneof(fc.constant({}), fc.record({ format: item })),
    include: fc.constantFrom(undefined, ["reasoning.encrypted_content"])
  },
  { requiredKeys: ["model", "input"] }
)

describe("any body of the Responses convention", () => {
  it("is read or refused, and what is read is answered, whatever the model calls", () => {
    let read = 0
    fc.assert(
      fc.property(bodies, fc.array(fc.string(), { maxLength: 4 }), (body, texts) => {
        const decoded = decodeResponsesBody(JSON.parse(JSON.stringify(body)))
        if (Either.isLeft(decoded)) return assert.strictEqual(decoded.left._tag, "InvalidRequest")
        read++
        const names = decoded.right.tools.map((tool) => tool.function.name)
        assert.lengthOf(new Set(names), names.length)
        for (const tool of names) assert.match(tool, /^[a-zA-Z0-9_-]{1,64}$/)
        assert.isAtLeast(decoded.right.native?.extraTokens ?? -1, 0)
        const calls = texts.map((text, index) => ({ id: `c${index}`, name: names[index] ?? "other", arguments: text }))
        const toolCalls = calls.map(({ id, ...called }) => ({ id, type: "function" as const, function: called }))
        const answer: ChatAnswer = { content: "x", reasoning: undefined, toolCalls, finish: "stop", usage }
        const response: unknown = JSON.parse(JSON.stringify(responseJson(name, decoded.right, answer, usage)))
        const encoder = responses.encoder(name, decoded.right)
        const events: ReadonlyArray<ChatEvent> = [
          { type: "content", text: "x" },
          ...calls.map((called, index): ChatEvent => ({ type: "tool_call", index, ...called })),
          { type: "finish", reason: "stop" }
        ]
        const text = encoder.encode(events) + encoder.finish(usage, zero)
        const sent: ReadonlyArray<unknown> = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) =>
          JSON.parse(data)
        )
        return assert.deepStrictEqual(Reflect.get(Object(sent.at(-1)), "response"), response)
      }),
      { numRuns: runs(1_000) }
    )
    if (hasAllCases) assert.isAbove(read, 50)
  })
})

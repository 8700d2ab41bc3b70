import { Either } from "effect"
import { promptBound } from "../../../src/domain/Pricing.ts"
import { decodeResponsesBody } from "../../../src/http/responses/ResponsesBody.ts"
import { chatModel } from "../../domain/PricedChats.ts"
import { assert, describe, it } from "../../harness/It.ts"

const model = chatModel()
const bound = (body: object) =>
  promptBound(model, Either.getOrThrow(decodeResponsesBody({ model: "m", input: "hi", ...body })))
const items = (...input: ReadonlyArray<unknown>) => bound({ input: [{ role: "user", content: "hi" }, ...input] })

const long = "x".repeat(100_000)
const tool = (name: string, more: object = {}) => ({ type: "function", name, ...more })

describe("the hold of a body of the Responses convention", () => {
  it.each([
    ["a tool that is there already", { tools: [tool("f"), tool("f", { description: long })] }],
    [
      "what describes a namespace",
      { tools: [{ type: "namespace", name: "n", description: long, tools: [tool("f")] }] }
    ],
    ["a field of a tool that is not translated", { tools: [tool("f", { output_schema: { description: long } })] }],
    ["a field that the gateway does not know", { of_tomorrow: long }],
    ["a part of `text` beside the format", { text: { of_tomorrow: long } }]
  ])("covers %s", (_, body) => {
    assert.isAtLeast(bound(body), long.length)
    assert.isBelow(bound(body), long.length + 1_500)
  })

  it("covers reasoning without a turn, and what an item says beside its tools", () => {
    const reasoning = { type: "reasoning", encrypted_content: "e", summary: [], content: [{ text: long }] }
    assert.isAtLeast(items(reasoning, { role: "user", content: "x" }), long.length)
    assert.isAtLeast(items({ type: "additional_tools", tools: [tool("f")], instructions: long }), long.length)
  })

  it("is the whole context where pictures and files are in what no translation holds", () => {
    const screenshot = { type: "computer_screenshot", image_url: "https://a.test/a.png" }
    assert.strictEqual(items({ type: "computer_call_output", call_id: "c", output: screenshot }), model.contextLength)
    const estimated = Either.getOrThrow(
      decodeResponsesBody({
        model: "m",
        input: [
          { type: "message", role: "user", content: "hi" },
          { type: "computer_call_output", output: screenshot }
        ]
      })
    )
    // An estimate leaves out what has no bound.
    assert.strictEqual(estimated.native?.extraTokens, Number.POSITIVE_INFINITY)
    const file = { type: "input_file", file_data: "data:application/pdf;base64,JVBERi0=" }
    assert.strictEqual(items({ type: "of_tomorrow", content: [file] }), model.contextLength)
    assert.isBelow(items({ type: "local_shell_call", call_id: "c", action: { command: ["ls"] } }), 1_000)
  })
})

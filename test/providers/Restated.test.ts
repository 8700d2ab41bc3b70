import { hear, joined, request } from "../contracts/ChatHarness.ts"
import type { ChatWire } from "../contracts/ChatHosts.ts"
import { scenarios } from "../contracts/ChatScenarios.ts"
import { assert, describe } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "./anthropic/Wire.ts"
import * as Responses from "./openai-responses/Wire.ts"

const oslo = '{"city":"Oslo"}'

/** Arguments as a host sends them: in pieces, sometimes followed by the complete text. */
interface Sent {
  readonly pieces: ReadonlyArray<string>
  readonly whole?: string
}

const typed = (type: string, fields: object) => `event: ${type}\n${Fake.event({ type, ...fields })}`
const call = { type: "function_call", id: "fc_1", call_id: "call_a", name: "f" }

const responses = ({ pieces, whole }: Sent) => {
  const item = { ...call, arguments: whole ?? "" }
  const at = { item_id: "fc_1", output_index: 0 }
  return [
    typed("response.output_item.added", { output_index: 0, item: { ...call, arguments: "" } }),
    ...pieces.map((delta) => typed("response.function_call_arguments.delta", { ...at, delta })),
    typed("response.function_call_arguments.done", { ...at, arguments: whole ?? "" }),
    typed("response.output_item.done", { output_index: 0, item }),
    typed("response.completed", { response: { ...Responses.response({}), output: [item] } })
  ]
}

/** Only the response contains the complete arguments. */
const completing = ({ pieces, whole }: Sent) =>
  responses({ pieces, ...(whole && { whole }) }).filter((event) => !/\.done\n/.test(event))

const anthropic = ({ pieces, whole }: Sent) => [
  Anthropic.event({ type: "message_start", message: { usage: { input_tokens: 3 } } }),
  Anthropic.event({
    type: "content_block_start",
    index: 0,
    content_block: { type: "tool_use", id: "call_a", name: "f", input: {} }
  }),
  ...[...pieces, ...(whole === undefined ? [] : [whole])].map((partial_json) =>
    Anthropic.event({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json } })
  ),
  Anthropic.event({ type: "content_block_stop", index: 0 }),
  Anthropic.event({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } }),
  Anthropic.event({ type: "message_stop" })
]

const hosts: ReadonlyArray<readonly [string, ChatWire, (sent: Sent) => ReadonlyArray<string>]> = [
  ["openai-responses", Responses.openAiResponses, responses],
  ["openai-responses, at its end", Responses.openAiResponses, completing],
  ["anthropic", Anthropic.anthropic, anthropic]
]

const rows: ReadonlyArray<readonly [string, Sent, string | undefined]> = [
  ["in pieces", { pieces: ['{"ci', 'ty":"Oslo"}'] }, oslo],
  ["in pieces and as a whole", { pieces: ['{"ci', 'ty":"Oslo"}'], whole: oslo }, oslo],
  ["as a whole with other white space", { pieces: [oslo], whole: '{ "city": "Oslo" }' }, oslo],
  ["as a whole after their beginning", { pieces: ['{"city":"O'], whole: oslo }, oslo],
  ["as a whole alone", { pieces: [], whole: oslo }, oslo],
  ["restated with every piece", { pieces: ['{"ci', '{"city":', oslo], whole: oslo }, oslo],
  ["after an empty object", { pieces: ["{}", oslo] }, oslo],
  ["never", { pieces: [] }, "{}"],
  ["as an empty object", { pieces: ["{}"], whole: "{}" }, "{}"],
  ["with two values", { pieces: [oslo, '{"city":"Rome"}'] }, undefined]
]

describe("arguments that come", () => {
  for (const [host, wire, eventsOf] of hosts) {
    for (const [name, sent, expected] of rows) {
      scenarios(wire).check(`${name} are ${expected ?? "broken"}: ${host}`, function* (adapter, fake, route) {
        yield* fake.script(Fake.sse(...eventsOf(sent)))
        const { events, failure } = yield* hear(adapter, route, request())
        if (expected === undefined) return assert.strictEqual(failure?.class, "retry")
        assert.isUndefined(failure)
        assert.strictEqual(joined(events).toolCalls[0]?.function.arguments, expected)
      })
    }
  }

  scenarios(Responses.openAiResponses).check("as free text stay as they are", function* (adapter, fake, route) {
    const item = { type: "custom_tool_call", id: "ctc_1", call_id: "call_a", name: "patch" }
    const at = { item_id: "ctc_1", output_index: 0 }
    const text = "{}{} twice {}"
    const done = { ...item, input: text }
    yield* fake.script(
      Fake.sse(
        typed("response.output_item.added", { output_index: 0, item: { ...item, input: "" } }),
        ...["{}", "{}", " twice ", "{}"].map((delta) =>
          typed("response.custom_tool_call_input.delta", { ...at, delta })
        ),
        typed("response.custom_tool_call_input.done", { ...at, input: text }),
        typed("response.output_item.done", { output_index: 0, item: done }),
        typed("response.completed", { response: { ...Responses.response({}), output: [done] } })
      ),
      Fake.json(200, { ...Responses.response({}), output: [done] })
    )
    const { events, failure } = yield* hear(adapter, route, request())
    assert.isUndefined(failure)
    const fullAnswer = yield* adapter.complete(route, request())
    for (const { toolCalls } of [joined(events), fullAnswer]) assert.strictEqual(toolCalls[0]?.function.arguments, text)
  })
})

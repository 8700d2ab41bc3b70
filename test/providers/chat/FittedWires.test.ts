import { Effect } from "effect"
import type { ChatRequest, Message, ToolCall } from "../../../src/domain/Chat.ts"
import { called, hear, joined, request } from "../../contracts/ChatHarness.ts"
import type { ChatWire } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chatWires } from "../ChatWires.ts"
import { wireRules } from "./Wires.ts"

const user = (content: string): Message => ({ role: "user", content })
const calling = (...tool_calls: ReadonlyArray<ToolCall>): Message => ({ role: "assistant", content: null, tool_calls })
const result = (id: string, content: string): Message => ({ role: "tool", content, tool_call_id: id })
const parameters = { type: "object", properties: { city: { type: "string" } } }
const tool = (name: string): ChatRequest["tools"][number] => ({ type: "function", function: { name, parameters } })

const names = ["a".repeat(140), "2fa status", "get_weather"]

/** A host that calls each tool by its sent name. */
const callsAll =
  (wire: ChatWire, more: ReadonlyArray<string> = []): Fake.Reply =>
  (response, received) => {
    const sent = [...wire.understand(received).tools.map(({ name }) => name), ...more]
    const toolCalls = sent.map((name, at) => ({ id: `call_${at}`, name, arguments: '{"city":"Oslo"}' }))
    const { body, end, opening, output } = wire.encode({ toolCalls, finish: "tool_calls" })
    const reply = wire.wantsStream(received) ? Fake.sse(...opening, ...output, ...end) : Fake.json(200, body)
    return reply(response, received)
  }

describe.each(chatWires.map((wire) => [wire.adapter, wire] as const))("on %s", (adapterName, wire) => {
  const { check } = scenarios(wire)
  const [, rules] = wireRules.find(([name]) => name === adapterName) ?? wireRules[0]

  check("names that the host refuses come back as the client's, in one piece and streamed", (adapter, fake, route) =>
    Effect.gen(function* () {
      const input = request({ tools: names.map(tool) })
      const more = ["of_no_tool"]
      yield* fake.script(callsAll(wire, more), callsAll(wire, more))
      const fullAnswer = yield* adapter.complete(route, input)
      const { events, failure } = yield* hear(adapter, route, input)
      assert.isUndefined(failure)
      for (const answer of [fullAnswer, joined(events)]) {
        assert.deepStrictEqual(
          answer.toolCalls.map((call) => call.function.name),
          [...names, ...more]
        )
      }
      const first = wire.understand(yield* fake.received).tools
      const second = wire.understand(yield* fake.received).tools
      assert.deepStrictEqual(first, second)
      assert.strictEqual(new Set(first.map(({ name }) => name)).size, 3)
    })
  )

  check("a conversation that other vendors began arrives in the host's terms", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(200, wire.encode({ content: "ok", finish: "stop" }).body))
      const [kimi, gemini] = ["functions.get:0", `call ${"é".repeat(200)}`]
      const cut = '{"city": "Os'
      yield* adapter.complete(
        route,
        request({
          messages: [
            user("?"),
            calling(called(kimi, "default_api:get", cut), called(gemini, names[0] ?? "", "")),
            result(gemini, "1"),
            result(kimi, "2"),
            result(kimi, "3"),
            { role: "assistant", content: " " },
            calling(called(kimi, "get_weather", "null")),
            result(kimi, "4"),
            user("And?")
          ],
          tools: names.map(tool)
        })
      )
      const { tools, turns } = wire.understand(yield* fake.received)
      const calls = turns.flatMap((turn) => turn.calls)
      assert.deepStrictEqual(
        calls.map((call) => call.arguments),
        [{ arguments: cut }, {}, {}]
      )
      const [invented, long, weather] = calls.map(({ name }) => name)
      assert.match(invented ?? "", /^default_api_get_[a-zA-Z0-9]{10}$/)
      assert.deepStrictEqual([long, weather], [tools[0]?.name, "get_weather"])
      const ids = calls.map(({ id }) => id)
      assert.strictEqual(new Set(ids).size, 3)
      assert.isTrue(ids.every((id) => id.length <= rules.callId.maxLength))
      const answers = turns.flatMap(({ answers: id, text }) => (id === undefined ? [] : [[ids.indexOf(id), text]]))
      const expected = [
        [1, "1"],
        [0, "3"],
        [2, "4"]
      ]
      assert.deepStrictEqual(
        answers.map(([at]) => at),
        expected.map(([at]) => at)
      )
      assert.deepStrictEqual(
        answers.map(([, text]) => String(text).match(/\d/)?.[0]),
        expected.map(([, text]) => text)
      )
    })
  )

  check("a forced tool is named as it was sent", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(200, wire.encode({ content: "ok", finish: "stop" }).body))
      const [, name = ""] = names
      const toolChoice = { type: "function", function: { name } } as const
      yield* adapter.complete(route, request({ tools: names.map(tool), toolChoice }))
      const sent = wire.understand(yield* fake.received)
      assert.deepStrictEqual<unknown>(sent.toolChoice, { name: sent.tools[1]?.name })
    })
  )

  check("an answer's schema that can be no object is declined where the wire takes objects", (adapter, _, route) =>
    Effect.sync(() => {
      const responseFormat = { type: "json_schema", json_schema: { name: "n", schema: { type: "array" } } } as const
      const declined = adapter.findUnsupportedField?.(route, request({ responseFormat }))
      assert.strictEqual(declined, rules.answerRoot === "any" ? undefined : "response_format")
      const any = { ...route, options: { any_schema: true } }
      assert.isUndefined(adapter.findUnsupportedField?.(any, request({ responseFormat })))
    })
  )
})

it("the rules of every wire are tested", () =>
  assert.sameMembers(
    chatWires.map(({ adapter }) => adapter),
    wireRules.map(([name]) => name)
  ))

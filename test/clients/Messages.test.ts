import type Anthropic from "@anthropic-ai/sdk"
import { unsignedMark } from "../../src/domain/Chat.ts"
import type { Answer } from "../contracts/ChatHarness.ts"
import { ask, customer } from "../harness/client/MessagesClient.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"

const modelOf = ({ name }: Dialect) => `on-${name}`
const served = gateway(Object.fromEntries(dialects.map((one) => [modelOf(one), [routeTo(one)]])))

const usage = { prompt: 20, completion: 9, cached: 8, cacheWrite: 0, reasoning: 2 }
const charge = 20n * price.prompt + 9n * price.completion

const tool: Anthropic.Tool = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const cases = dialects.flatMap((dialect) =>
  [false, true].map((stream) => ({ dialect, stream, host: dialect.name, as: stream ? "a stream" : "JSON" }))
)

const asking = (dialect: Dialect, more: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) => {
  const messages: Array<Anthropic.MessageParam> = [{ role: "user", content: "hi" }]
  return { model: modelOf(dialect), max_tokens: 2_000, messages, ...more }
}

withLayer(served)("Anthropic's own client", (it) => {
  it.effect.each(cases)("gets text, thinking and usage from $host as $as", function* ({ dialect, stream }) {
    const answer: Answer = { content: "Servus, world.", reasoning: "Let me think.", finish: "stop", usage }
    const host = (yield* DialectHosts).of(dialect)
    yield* host.script(answers(dialect, answer))
    const account = yield* customer()
    const body = asking(dialect, { thinking: { type: "adaptive" } })
    const { message, requestId } = yield* calling(() => ask(account, body, stream))
    yield* host.received
    assert.match(message.id, /^msg_[0-9a-f]{32}$/)
    assert.match(requestId ?? "", /^req_[0-9a-f]{32}$/)
    const [thought, text, ...others] = message.content
    assert.lengthOf(others, 0)
    assert.deepInclude(thought, { type: "thinking", thinking: "Let me think." })
    assert.deepInclude(text, { type: "text", text: "Servus, world." })
    const { model, role, stop_reason, stop_sequence, type } = message
    assert.deepStrictEqual(
      { model, role, stop_reason, stop_sequence, type },
      { model: body.model, role: "assistant", stop_reason: "end_turn", stop_sequence: null, type: "message" }
    )
    assert.deepInclude(message.usage, { input_tokens: 12, cache_read_input_tokens: 8, output_tokens: 9 })
    assert.strictEqual(yield* account.spent, charge)
    const row = yield* Served.logged(requestId)
    assert.deepInclude(row, { status: 200, promptTokens: 20, completionTokens: 9, notes: [] })
  })

  it.effect.each(cases)(
    "calls two tools at once and hands back their results over $host as $as",
    function* ({ dialect, stream }) {
      const host = (yield* DialectHosts).of(dialect)
      const toolCalls = ["Wien", "Oslo"].map((city, at) => {
        return { id: `toolu_0${at}`, name: "get_weather", arguments: JSON.stringify({ city }) }
      })
      yield* host.script(answers(dialect, { toolCalls, reasoning: "Both.", finish: "tool_calls", usage }))
      yield* host.script(answers(dialect, { content: "Sunny.", finish: "stop", usage }))
      const account = yield* customer()
      const body = asking(dialect, { tools: [tool], thinking: { type: "enabled", budget_tokens: 1_024 } })
      const { message } = yield* calling(() => ask(account, body, stream))
      assert.strictEqual(message.stop_reason, "tool_use")
      const calls = message.content.filter((block) => block.type === "tool_use")
      assert.deepStrictEqual(
        calls.map(({ input, name }) => ({ input, name })),
        [
          { input: { city: "Wien" }, name: "get_weather" },
          { input: { city: "Oslo" }, name: "get_weather" }
        ]
      )
      const results = calls.map(({ id }) => ({ type: "tool_result" as const, tool_use_id: id, content: `for ${id}` }))
      const next: Array<Anthropic.MessageParam> = [
        ...body.messages,
        { role: "assistant", content: message.content },
        { role: "user", content: [...results, { type: "text", text: "So?" }] }
      ]
      const last = yield* calling(() => ask(account, { ...body, messages: next }, stream))
      assert.deepInclude(last.message.content[0], { type: "text", text: "Sunny." })
      yield* host.received
      const { bytes } = yield* host.received
      for (const { id } of calls) assert.include(bytes.toString(), `for ${id}`)
      assert.notInclude(bytes.toString(), unsignedMark)
    }
  )

  it.effect.each(cases)("is told why $host ended early, as $as", function* ({ dialect, stream }) {
    const host = (yield* DialectHosts).of(dialect)
    const account = yield* customer()
    for (const [finish, reason] of [
      ["length", "max_tokens"],
      ["content_filter", "refusal"]
    ] as const) {
      yield* host.script(answers(dialect, { content: "Ser", finish, usage }))
      const { message } = yield* calling(() => ask(account, asking(dialect), stream))
      assert.strictEqual(message.stop_reason, reason)
      yield* host.received
    }
  })
})

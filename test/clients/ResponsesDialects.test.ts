import { Effect } from "effect"
import type { ResponseCreateParamsNonStreaming, ResponseInput } from "openai/resources/responses/responses"
import type { Answer } from "../contracts/ChatHarness.ts"
import { calling, drained } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import {
  answers,
  breaking,
  breaks,
  type Dialect,
  DialectHosts,
  dialects,
  gateway,
  routeTo
} from "../harness/upstream/Dialects.ts"
import { json, type Received, type Reply } from "../harness/upstream/FakeUpstream.ts"
import { pixel } from "./SandboxChat.ts"

const native = "openai-responses"
const after = (dialect: Dialect): Dialect => dialects[(dialects.indexOf(dialect) + 1) % dialects.length] ?? dialect
const models = dialects.flatMap((dialect) => [
  [dialect.name, [routeTo(dialect)]] as const,
  [`${dialect.name}-pair`, [routeTo(dialect), routeTo(after(dialect), { preference: 2 })]] as const
])

const usage = { prompt: 20, completion: 9, cached: 0, cacheWrite: 0, reasoning: 2 }
const charge = 20n * price.prompt + 9n * price.completion
const plain: Answer = { content: "Servus, world.", reasoning: "Let me think.", finish: "stop", usage }
const called = (...names: ReadonlyArray<readonly [id: string, name: string, input: object]>): Answer => ({
  toolCalls: names.map(([id, name, input]) => ({ id, name, arguments: JSON.stringify(input) })),
  finish: "tool_calls",
  usage
})

const weather = {
  type: "function" as const,
  name: "weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false
}
const patch = { type: "custom" as const, name: "apply_patch" }
const image = { type: "input_image" as const, image_url: `data:image/png;base64,${pixel}`, detail: "auto" as const }

const keeping =
  (seen: Array<Received>, reply: Reply): Reply =>
  (response, received) => {
    seen.push(received)
    return reply(response, received)
  }
const sentTo = (seen: ReadonlyArray<Received>) => seen.at(-1)?.bytes.toString("utf8") ?? ""

const cases = dialects.flatMap((dialect) =>
  [false, true].map((stream) => ({ dialect, stream, name: dialect.name, as: stream ? "streamed" : "whole" }))
)

withLayer(gateway(Object.fromEntries(models)))("a response", (it) => {
  const customer = (stream: boolean) =>
    Effect.map(Served.customer(), (account) => {
      const create = (body: ResponseCreateParamsNonStreaming) =>
        calling(() =>
          stream
            ? account.openai.responses.stream({ ...body, stream: true }).finalResponse()
            : account.openai.responses.create(body)
        )
      return { ...account, create }
    })

  it.effect.each(cases)("of a host of $name says and costs what the host does, $as", function* ({ dialect, stream }) {
    yield* (yield* DialectHosts).of(dialect).script(answers(dialect, plain))
    const { create, spent } = yield* customer(stream)
    const response = yield* create({ model: dialect.name, input: "hi", reasoning: { effort: "low" } })
    assert.match(response.id, /^resp_[0-9a-f]{32}$/)
    assert.strictEqual(response.model, dialect.name)
    assert.strictEqual(response.status, "completed")
    assert.strictEqual(response.output_text, "Servus, world.")
    const [reasoning] = response.output
    assert.deepInclude(reasoning, { type: "reasoning" })
    assert.include(JSON.stringify(reasoning), "Let me think.")
    assert.deepInclude(response.usage, { input_tokens: 20, output_tokens: 9, total_tokens: 29 })
    assert.strictEqual(yield* spent, charge)
    assert.notInclude(JSON.stringify(response), "hush")
  })

  it.effect.each(cases)("of a host of $name calls tools, also custom ones, over two turns, $as", function* (one) {
    const { dialect, stream } = one
    const host = (yield* DialectHosts).of(dialect)
    const { create } = yield* customer(stream)
    const isNative = dialect.name === native
    const made = isNative
      ? called(["call_a", "weather", { city: "Wien" }], ["call_b", "weather", { city: "Graz" }])
      : called(["call_a", "weather", { city: "Wien" }], ["call_b", "apply_patch", { input: "*** Begin" }])
    yield* host.script(answers(dialect, made))
    const tools = [weather, patch]
    const asked = { role: "user" as const, content: [{ type: "input_text" as const, text: "Look" }, image] }
    const first = yield* create({ model: dialect.name, tools, input: [asked] })
    const calls = first.output.filter((item) => item.type === "function_call" || item.type === "custom_tool_call")
    assert.deepStrictEqual(
      calls.map((call) => [call.name, call.type === "function_call" ? JSON.parse(call.arguments) : call.input]),
      [["weather", { city: "Wien" }], isNative ? ["weather", { city: "Graz" }] : ["apply_patch", "*** Begin"]]
    )
    const outputs = calls.map(({ call_id, type }) => {
      return { type: `${type}_output` as const, call_id, output: `sunny for ${call_id.slice(0, 6)}` }
    })
    const seen: Array<Received> = []
    yield* host.script(keeping(seen, answers(dialect, plain)))
    const input: ResponseInput = [asked, ...calls, ...outputs]
    const second = yield* create({ model: dialect.name, tools, input })
    assert.strictEqual(second.output_text, "Servus, world.")
    const sent = sentTo(seen)
    for (const text of ["Look", pixel.slice(0, 40), "Wien", "apply_patch"]) assert.include(sent, text)
    for (const { output } of outputs) assert.include(sent, output)
  })

  it.effect.each(cases)("is cut at the cap that a host of $name reached, $as", function* ({ dialect, stream }) {
    yield* (yield* DialectHosts).of(dialect).script(answers(dialect, { ...plain, finish: "length" }))
    const { create } = yield* customer(stream)
    const response = yield* create({ model: dialect.name, input: "hi" })
    assert.deepStrictEqual(
      [response.status, response.incomplete_details],
      ["incomplete", { reason: "max_output_tokens" }]
    )
  })

  it.effect.each(cases)("moves from a host of $name that fails to the next, $as", function* ({ dialect, stream }) {
    const hosts = yield* DialectHosts
    const next = after(dialect)
    yield* hosts.of(dialect).script(json(503, dialect.error(503)))
    yield* hosts.of(next).script(answers(next, plain))
    const { create, spent } = yield* customer(stream)
    const response = yield* create({ model: `${dialect.name}-pair`, input: "hi" })
    assert.strictEqual(response.output_text, "Servus, world.")
    assert.strictEqual(response.model, `${dialect.name}-pair`)
    assert.strictEqual(yield* spent, charge)
  })

  it.effect.each(cases.filter(({ stream }) => stream))("fails and is free where $name's host breaks", function* (one) {
    const { dialect } = one
    const { funds, openai, spent } = yield* Served.customer()
    for (const { rest, what } of breaks) {
      yield* (yield* DialectHosts).of(dialect).script(breaking(dialect, plain, rest(dialect)))
      const events = yield* calling(() => openai.responses.create({ model: dialect.name, input: "hi", stream: true }))
      const { error, items } = yield* drained(events)
      assert.isUndefined(error, what)
      const last = items.at(-1)
      assert.strictEqual(last?.type, "response.failed", what)
      const failure = last?.type === "response.failed" ? last.response.error : null
      assert.strictEqual(failure?.code, "server_error", what)
      assert.notInclude(JSON.stringify(last), "hush", what)
      assert.isTrue(
        items.some(({ type }) => type === "response.output_text.delta"),
        what
      )
    }
    assert.strictEqual(yield* spent, 0n)
    assert.strictEqual((yield* funds).held, 0n)
  })
})

import { Effect } from "effect"
import { post, soon } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { json, sse } from "../../harness/upstream/FakeUpstream.ts"

const named = (name: string): Dialect => dialects.find((dialect) => dialect.name === name) ?? assert.fail(name)

const usage = { prompt: 1000, completion: 9, cached: 900, cacheWrite: 0, reasoning: 2 }
const answer = { content: "Servus.", reasoning: "Hm.", finish: "stop", usage } as const

const surfaces = [
  {
    name: "messages",
    host: named("anthropic"),
    path: "/v1/messages",
    body: { max_tokens: 100, messages: [{ role: "user", content: "hi ".repeat(1000) }] },
    dear: {
      speed: "fast",
      inference_geo: "us",
      container: { skills: [] },
      fallbacks: [{ model: "dear" }],
      tools: [{ type: "code_execution_20260521", name: "code_execution" }]
    },
    last: "event: message_stop",
    reason: (text: string): unknown => JSON.parse(text).error.message
  },
  {
    name: "responses",
    host: named("openai-responses"),
    path: "/v1/responses",
    body: { max_output_tokens: 100, input: "hi" },
    dear: {
      service_tier: "priority",
      tools: [{ type: "code_interpreter", container: { type: "auto" } }, { type: "image_generation" }]
    },
    last: "event: response.completed",
    reason: (text: string): unknown => JSON.parse(text).error.message
  }
] as const

const models = surfaces.map(({ host, name }) => [name, [routeTo(host)]] as const)

withLayer(gateway(Object.fromEntries(models)))("a body that its host knows", (it) => {
  const cases = surfaces.map((surface) => ({ surface, name: surface.name }))

  it.effect.each(cases)(
    "of $name reaches it without what costs extra",
    function* ({ surface: { body, dear, host, name, path } }) {
      const fake = (yield* DialectHosts).of(host)
      yield* fake.script(answers(host, answer))
      const customer = yield* Served.customer()
      const { status, text } = yield* post(path)(customer, { model: name, ...body, ...dear, of_tomorrow: [1] })
      assert.strictEqual(status, 200, text)
      assert.notInclude(text, "hush")
      const sent = Object((yield* fake.received).body)
      assert.deepStrictEqual(sent.of_tomorrow, [1])
      for (const field of Object.keys(dear)) assert.notProperty(sent, field)
    }
  )

  it.effect.each(cases)(
    "of $name ends its stream when it is paid",
    function* ({ surface: { body, host, last, name, path } }) {
      yield* (yield* DialectHosts).of(host).script(answers(host, answer))
      const customer = yield* Served.customer()
      const { text } = yield* post(path)(customer, { model: name, ...body, stream: true })
      assert.strictEqual(text.split(last).length, 2, text)
      assert.isTrue((yield* customer.spent) > 0n)
    }
  )

  it.effect.each(cases)(
    "of $name is refused in its host's words, cleaned",
    function* ({ surface: { body, host, name, path, reason } }) {
      const message =
        "hush-model: prompt is too long: 3 tokens > 2 maximum (request id: req_0123hush), ask https://hush.test"
      const refusal = { type: "error", error: { type: "invalid_request_error", message }, request_id: "req_hush" }
      yield* (yield* DialectHosts).of(host).script(json(400, refusal))
      const customer = yield* Served.customer()
      const { status, text } = yield* post(path)(customer, { model: name, ...body })
      const expected = `${name}: prompt is too long: 3 tokens > 2 maximum (request id: [id]), ask [url]`
      assert.deepStrictEqual([status, reason(text)], [400, expected])
      assert.notInclude(text, "hush")
      assert.strictEqual(yield* customer.spent, 0n)
    }
  )

  it.effect("of messages that its client leaves is charged for the prompt as its host counted it", function* () {
    const [{ body, host, name, path }] = surfaces
    const { opening, output } = host.wire(answer)
    yield* (yield* DialectHosts).of(host).script(sse(...opening, ...output, Effect.never))
    const customer = yield* Served.customer()
    const departure = new AbortController()
    const headers = { "x-request-id": "left-native", authorization: `Bearer ${customer.secret}` }
    const { url } = yield* Served.ServedGateway
    yield* Effect.promise(async () => {
      const sent = JSON.stringify({ model: name, ...body, stream: true })
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: sent, signal: departure.signal })
      let text = ""
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += piece
        if (text.includes("Serv")) break
      }
      departure.abort()
    })
    const row = yield* soon(Served.logged("left-native"))
    assert.deepInclude(row, { status: 499, promptTokens: 1000, notes: ["usage_estimated"] })
    assert.strictEqual(yield* customer.spentInTheEnd, row.charge)
  })
})

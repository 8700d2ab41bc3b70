import { Effect, Fiber } from "effect"
import { APIUserAbortError } from "openai"
import { refusals } from "../harness/client/HttpCalls.ts"
import { assertClientError, calling, contentOf, drained, leaving, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { costOf, gateway, model } from "./SandboxChat.ts"

const say = (content: string) => ({ model, messages: [{ role: "user" as const, content }] })

withLayer(gateway)("the official client with the sandbox", (it) => {
  it.effect("never gets a provider's 429 while another route can serve", function* () {
    const { openai, spent } = yield* Served.customer()
    const moved = "[sandbox status=429 routes=1] Hello"
    const { data, response } = yield* calling(() => openai.chat.completions.create(say(moved)).withResponse())
    assert.strictEqual(data.choices[0]?.finish_reason, "stop")
    const { attempts } = yield* Served.logged(response.headers.get("x-request-id"))
    assert.deepStrictEqual(
      attempts.map(({ outcome, provider, status }) => [provider, outcome, status]),
      [
        ["sandbox", "limit", 429],
        ["sandbox-b", "ok", 200]
      ]
    )
    assert.strictEqual(yield* spent, costOf(data.usage?.prompt_tokens, data.usage?.completion_tokens))
    const error = yield* thrownBy(() => openai.chat.completions.create(say("[sandbox status=503]")))
    assertClientError(error, refusals.allFailed("sandbox-b", 503))
    assert.strictEqual(yield* spent, costOf(data.usage?.prompt_tokens, data.usage?.completion_tokens))
  })

  it.effect("pays nothing for a stream that breaks", function* () {
    const { openai, spent } = yield* Served.customer()
    const stream = yield* calling(() => openai.chat.completions.create({ ...say("[sandbox cut=3]"), stream: true }))
    const { error, items } = yield* drained(stream)
    assert.strictEqual(contentOf(items), "This is a")
    assertClientError(error, { ...refusals.upstream, status: undefined })
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("pays by the gateway's count for what it received when it leaves a stream", function* () {
    const { funds, openai, spentInTheEnd } = yield* Served.customer()
    const slow = say("[sandbox gap=100] Hello")
    const whole = yield* calling(() => openai.chat.completions.create(slow))
    const before = yield* spentInTheEnd
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...slow, stream: true }).withResponse()
    )
    yield* calling(async () => {
      for await (const chunk of data) if (chunk.choices[0]?.delta.content === " a") return
    })
    const { code, completionTokens, notes, promptTokens, status } = yield* Served.logged(
      response.headers.get("x-request-id")
    )
    assert.deepStrictEqual([status, code, notes], [499, "client_closed", ["usage_estimated"]])
    assert.strictEqual(promptTokens, whole.usage?.prompt_tokens)
    assert.isAtLeast(completionTokens ?? 0, 3)
    assert.isBelow(completionTokens ?? 0, whole.usage?.completion_tokens ?? 0)
    const paid = costOf(promptTokens, completionTokens)
    assert.strictEqual((yield* spentInTheEnd) - before, paid)
    assert.strictEqual((yield* funds).held, 0n)
  })

  const holding = Effect.fnUntraced(function* ({
    funds
  }: {
    readonly funds: Effect.Effect<{ readonly held: bigint }>
  }) {
    yield* Effect.repeat(Effect.delay(funds, "10 millis"), { until: ({ held }) => held > 0n, times: 500 })
  })

  for (const stream of [true, false]) {
    const outcome = stream
      ? "pays nothing when it leaves a stream before its first output"
      : "pays for a JSON call that it leaves, which is finished"
    it.effect(outcome, () =>
      Effect.gen(function* () {
        const one = yield* Served.customer()
        const headers = { "x-request-id": `leaving-${stream}` }
        const body = { ...say("[sandbox delay=2000] Hello"), stream }
        const { leave, thrown } = leaving((signal) => one.openai.chat.completions.create(body, { signal, headers }))
        const call = yield* Effect.fork(thrown)
        yield* holding(one)
        const { available, balance, held } = yield* one.funds
        assert.strictEqual(available, balance - held)
        yield* leave
        assert.instanceOf(yield* Fiber.join(call), APIUserAbortError)
        const row = yield* Served.logged(headers["x-request-id"])
        assert.deepStrictEqual([row.status, row.code, row.notes], [499, "client_closed", []])
        const paid = yield* one.spentInTheEnd
        assert.strictEqual(paid, row.charge)
        const whole = yield* calling(() => one.openai.chat.completions.create(say("[sandbox delay=2000] Hello")))
        assert.strictEqual(paid, stream ? 0n : costOf(whole.usage?.prompt_tokens, whole.usage?.completion_tokens))
      })
    )
  }
})

import { zero } from "../../src/domain/Money.ts"
import { refusals } from "../harness/client/HttpCalls.ts"
import { assertClientError, calling, contentOf, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { cost, layer, Mocks, usage } from "../harness/upstream/Aimock.ts"

/** The routes of a model that is asked of the first mock, then of the second. */
const pair = (model: string) => [
  { provider: "first", model: `${model}-one` },
  { provider: "second", model: `${model}-two`, preference: 2 }
]

const gateway = layer({
  "busy-json": pair("busy-json"),
  "busy-stream": pair("busy-stream"),
  "busy-alone": [{ provider: "first", model: "busy-alone-one" }],
  shut: [
    { provider: "locked", model: "shut-one" },
    { provider: "second", model: "shut-two", preference: 2 }
  ],
  "shut-alone": [{ provider: "locked", model: "shut-alone-one" }],
  broken: pair("broken"),
  slow: pair("slow"),
  strange: [{ provider: "first", model: "strange-one" }]
})

const broke = { ...refusals.upstream, status: undefined }

const ask = (model: string, content: string) => ({ model, messages: [{ role: "user" as const, content }] })

/** What became of each try, without times. */
const tries = (row: {
  readonly attempts: ReadonlyArray<{
    readonly route: string
    readonly outcome: string
    readonly status?: number | undefined
  }>
}) => row.attempts.map(({ outcome, route, status }) => [route, outcome, status])

const busy = {
  error: { message: "first-secret is over its limit", type: "rate_limit_error", code: "rate_limit_exceeded" },
  status: 429,
  retryAfter: 7
}

withLayer(gateway)("a chat routed to a failing aimock", (it) => {
  it.effect.each(["busy-json", "busy-stream"])("fails over after a 429 unseen by the client: %s", function* (model) {
    const { first, second } = yield* Mocks
    first.on({ model: `${model}-one` }, busy)
    second.on({ model: `${model}-two` }, { content: "second", usage })
    const { openai, spent } = yield* Served.customer()
    const stream = model === "busy-stream"
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...ask(model, "hi"), stream }).withResponse()
    )
    if ("choices" in data) {
      assert.strictEqual(data.choices[0]?.message.content, "second")
      assert.strictEqual(data.model, model)
    } else {
      const { error, items } = yield* drained(data)
      assert.isUndefined(error)
      assert.strictEqual(contentOf(items), "second")
    }
    assert.isNull(response.headers.get("retry-after"))
    assert.strictEqual(yield* spent, cost)
    assert.deepStrictEqual(tries(yield* Served.logged(response.headers.get("x-request-id"))), [
      [`${model}@first`, "limit", 429],
      [`${model}@second`, "ok", 200]
    ])
  })

  it.effect("answers 503 without the provider's message after a 429 of the only route", function* () {
    const { first } = yield* Mocks
    first.on({ model: "busy-alone-one" }, busy)
    const { openai, spent } = yield* Served.customer()
    const error = yield* thrownBy(() => openai.chat.completions.create(ask("busy-alone", "hi")))
    assertClientError(error, refusals.allFailed("first", 429))
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("fails over from a route whose account is refused", function* () {
    const { second } = yield* Mocks
    second.on({ model: "shut-two" }, { content: "second", usage })
    const { openai, spent } = yield* Served.customer()
    const { data, response } = yield* calling(() => openai.chat.completions.create(ask("shut", "hi")).withResponse())
    assert.strictEqual(data.choices[0]?.message.content, "second")
    assert.deepStrictEqual(tries(yield* Served.logged(response.headers.get("x-request-id"))), [
      ["shut@locked", "account", 401],
      ["shut@second", "ok", 200]
    ])
    assert.strictEqual(yield* spent, cost)
  })

  it.effect("answers 502 when the account of the only route is refused", function* () {
    const { openai, spent } = yield* Served.customer()
    const error = yield* thrownBy(() => openai.chat.completions.create(ask("shut-alone", "hi")))
    assertClientError(error, refusals.upstreamAuth)
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("ends a stream cut after output in an error chunk without [DONE], at no charge", function* () {
    const { first, second } = yield* Mocks
    first.on(
      { model: "broken-one" },
      { content: "This will not be whole.", usage },
      { latency: 20, truncateAfterChunks: 4 }
    )
    second.on({ model: "broken-two" }, { content: "never" })
    const { baseUrl, openai, secret, spent } = yield* Served.customer()
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...ask("broken", "hi"), stream: true }).withResponse()
    )
    const { error, items } = yield* drained(data)
    assert.strictEqual(response.status, 200)
    const text = contentOf(items)
    assert.isAbove(text.length, 0)
    assert.isTrue("This will not be whole.".startsWith(text))
    assertClientError(error, broke)
    assert.strictEqual(yield* spent, 0n)
    const row = yield* Served.logged(response.headers.get("x-request-id"))
    assert.deepInclude(row, { status: 200, code: "stream_error", charge: zero })
    assert.deepStrictEqual(tries(row), [["broken@first", "network", 200]])

    const raw = yield* calling(() =>
      fetch(`${baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}` },
        body: JSON.stringify({ ...ask("broken", "hi"), stream: true })
      }).then((answer) => answer.text())
    )
    const { message, type, code } = broke
    assert.notInclude(raw, "[DONE]")
    assert.strictEqual(
      raw.trimEnd().split("\n\n").at(-1),
      `data: ${JSON.stringify({ error: { message, type, param: null, code } })}`
    )
  })

  it.effect("fails over when a stream's first output takes too long", function* () {
    const { first, second } = yield* Mocks
    first.on({ model: "slow-one" }, { content: "late", usage }, { streamingProfile: { ttft: 30_000 } })
    second.on({ model: "slow-two" }, { content: "in time", usage })
    const { openai, spent } = yield* Served.customer()
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...ask("slow", "hi"), stream: true }).withResponse()
    )
    const { items } = yield* drained(data)
    assert.strictEqual(contentOf(items), "in time")
    assert.strictEqual(yield* spent, cost)
    assert.deepStrictEqual(tries(yield* Served.logged(response.headers.get("x-request-id"))), [
      ["slow@first", "timeout", undefined],
      ["slow@second", "ok", 200]
    ])
  })

  it.effect("counts a missing mock answer as a failure of the route", function* () {
    const { openai, spent } = yield* Served.customer()
    const error = yield* thrownBy(() => openai.chat.completions.create(ask("strange", "hi")))
    assertClientError(error, refusals.upstream)
    assert.strictEqual(yield* spent, 0n)
  })
})

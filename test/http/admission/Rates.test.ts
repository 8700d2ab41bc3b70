import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { openAccount } from "../../harness/client/Account.ts"
import {
  type Answer,
  assertRefused,
  bearer,
  call,
  chat,
  rateOf,
  refusals,
  soon,
  talk
} from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply, silent } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const served = gateway(
  { talk: {}, weak: {}, down: { routes: [{ provider: "refusing", model: "x" }] } },
  { DEFAULT_RPM: "25", REQUEST_TIMEOUT: "1", MAX_BODY_BYTES: "10000" }
)

/** What a rich, poor, capped or scoped customer with five requests a minute hears, and after what of the provider's. */
const outcomes: ReadonlyArray<{
  readonly status: number
  readonly account?: Parameters<typeof openAccount>[0]
  readonly body?: unknown
  readonly reply?: Reply
  readonly breaks?: string
}> = [
  { status: 200, reply: answers() },
  { status: 200, body: { ...talk("talk"), stream: true }, reply: streams("fine") },
  { status: 400, body: "{" },
  { status: 400, reply: json(400, { error: { message: "no" } }) },
  { status: 402, account: { nanoUsd: 0n } },
  { status: 402, account: { cap: { amount: 0n, period: "month" } } },
  { status: 403, account: { scopes: ["images"] } },
  { status: 404, body: talk("nobody") },
  { status: 413, body: " ".repeat(10_001) },
  { status: 500, breaks: "holds" },
  { status: 502, body: talk("weak"), reply: json(500, {}) },
  { status: 502, body: { ...talk("weak"), stream: true }, reply: json(500, {}) },
  { status: 503, body: talk("down") },
  { status: 503, body: { ...talk("down"), stream: true } },
  { status: 504, reply: silent },
  { status: 504, body: { ...talk("talk"), stream: true }, reply: silent }
]

const isUnrated = (answer: Answer, status: number) => {
  assert.strictEqual(answer.status, status)
  assert.isUndefined(rateOf(answer))
}

withLayer(served)("the rate of requests", (it) => {
  it.effect.each(outcomes)("is in both headers of a $status, which counts", function* (outcome) {
    const { body = talk("talk"), breaks, reply, status } = outcome
    const sql = yield* SqlClient.SqlClient
    const { first } = yield* Upstreams
    const account = yield* openAccount({ rpm: 5, ...outcome.account })
    if (reply !== undefined) yield* first.script(reply)
    const asked = chat(account, body)
    const answer = yield* breaks === undefined
      ? asked
      : Effect.acquireUseRelease(
          sql`ALTER TABLE ${sql(breaks)} RENAME TO hush`,
          () => asked,
          () => Effect.orDie(sql`ALTER TABLE hush RENAME TO ${sql(breaks)}`)
        )
    assert.strictEqual(answer.status, status, answer.text)
    assert.deepStrictEqual(rateOf(answer), { limit: 5, remaining: 4 })
    assert.deepStrictEqual(rateOf(yield* chat(account, "{")), { limit: 5, remaining: 3 })
  })

  it.effect("is neither shown nor used by reads and unauthenticated requests", function* () {
    const account = yield* openAccount({ rpm: 1 })
    const headers = bearer(account.secret)
    const reads = Effect.gen(function* () {
      isUnrated(yield* call("/v1/models", { headers }), 200)
      isUnrated(yield* call("/v1/credits", { headers }), 200)
      isUnrated(yield* call("/v1/nowhere", { headers, body: {} }), 404)
      isUnrated(yield* call("/v1/chat/completions", { headers }), 404)
      isUnrated(yield* call("/v1/openapi.json", { headers }), 200)
    })
    yield* reads
    isUnrated(yield* chat({ secret: "ggw_nobody" }, talk("talk")), 401)
    isUnrated(yield* call("/v1/chat/completions", { body: talk("talk") }), 401)
    const last = yield* chat(account, "{")
    assert.strictEqual(last.status, 400)
    assert.deepStrictEqual(rateOf(last), { limit: 1, remaining: 0 })
    for (const body of ["{", talk("talk"), { ...talk("talk"), stream: true }]) {
      const over = yield* chat(account, body)
      assertRefused(over, refusals.limited)
      assert.deepStrictEqual(rateOf(over), { limit: 1, remaining: 0 })
    }
    yield* reads
  })

  it.effect("is counted in a window per key, with a default limit", function* () {
    const keys = yield* ApiKeys
    const account = yield* openAccount({ rpm: 2 })
    const { secret } = yield* openAccount({})
    assert.deepStrictEqual(rateOf(yield* chat({ secret }, "{")), { limit: 25, remaining: 24 })
    yield* chat(account, "{")
    yield* chat(account, "{")
    assertRefused(yield* chat(account, "{"), refusals.limited)
    assert.deepStrictEqual(rateOf(yield* chat({ secret }, "{")), { limit: 25, remaining: 23 })
    yield* keys.update(OrganizationScope.all, account.key, { rpm: 100_000 })
    yield* soon(
      Effect.map(chat(account, "{"), (answer) => {
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(rateOf(answer)?.limit, 100_000)
      })
    )
  })

  it.effect("is counted exactly in a burst", function* () {
    const account = yield* openAccount({ rpm: 10 })
    const all = yield* Effect.all(
      Array.from({ length: 30 }, () => chat(account, "{")),
      { concurrency: "unbounded" }
    )
    const left = all.flatMap((answer) => (answer.status === 400 ? [rateOf(answer)?.remaining] : []))
    assert.sameMembers(left, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    for (const answer of all) {
      if (answer.status === 400) continue
      assertRefused(answer, refusals.limited)
      assert.deepStrictEqual(rateOf(answer), { limit: 10, remaining: 0 })
    }
  })

  it.effect("starts anew 60 seconds after the window's first request", function* () {
    const sql = yield* SqlClient.SqlClient
    const account = yield* openAccount({ rpm: 1 })
    const age = (seconds: number) =>
      sql`UPDATE rate_windows SET started_at = now() - ${seconds} * interval '1 second' WHERE key_id = ${account.key}`
    yield* chat(account, "{")
    yield* age(50)
    assertRefused(yield* chat(account, "{"), refusals.limited)
    yield* age(60)
    const fresh = yield* chat(account, "{")
    assert.strictEqual(fresh.status, 400)
    assert.deepStrictEqual(rateOf(fresh), { limit: 1, remaining: 0 })
    assertRefused(yield* chat(account, "{"), refusals.limited)
  })
})

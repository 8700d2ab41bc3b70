import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { exposedHeaders } from "../../../src/http/server/Dispatch.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import {
  type Answer,
  assertRefused,
  chat,
  post,
  type Refusal,
  rateOf,
  refusals,
  soon,
  talk
} from "../../harness/client/HttpCalls.ts"
import { waitUntil } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { after } from "../../harness/upstream/Replies.ts"
import { answers, gateway, streams, Upstreams, usual } from "../../harness/upstream/Upstreams.ts"

const served = gateway({ talk: {}, weak: {} })

/** Held as 50 tokens of prompt and its cap. */
const hundred = { ...talk("talk"), max_tokens: 100 }
const held = 150

/** To be repeated when the window ends, which the answer's own header tells. */
const tokensLimited = (limit: number, { headers }: Answer): Refusal => ({
  status: 429,
  type: "rate_limit_error",
  code: "tokens_limit_exceeded",
  message: `Rate limit exceeded: ${limit} tokens per minute for this key.`,
  retryAfter: headers.get("x-ratelimit-reset-tokens")?.replace(/s$/, "") ?? "missing"
})
const concurrencyLimited = (limit: number): Refusal => ({
  status: 429,
  type: "rate_limit_error",
  code: "concurrency_limit_exceeded",
  message: `Too many requests at once for this key; the limit is ${limit}.`,
  retryAfter: "1"
})

const tokensOf = ({ headers }: Answer) => {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    headers.get(`x-ratelimit-${name}-tokens`)
  )
  if (limit === null && remaining === null && reset === null) return undefined
  assert.match(reset ?? "", /^\d{1,2}s$/)
  return { limit: Number(limit), remaining: Number(remaining) }
}

const draw = post("/v1/images/generations")
const picture = { model: "picture", prompt: "a cat" }

const usedBy = ({ key }: Account) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(sql<{ readonly used: string }>`SELECT used FROM token_windows WHERE key_id = ${key}`, ([window]) =>
      Number(window?.used ?? -1)
    )
  )

/** A chat that its provider keeps waiting until `end`. */
const running = Effect.fnUntraced(function* (account: Account) {
  const { first } = yield* Upstreams
  const gate = yield* Deferred.make<void>()
  const before = first.calls.length
  yield* first.script(after(Deferred.await(gate), answers()))
  const asked = yield* Effect.fork(chat(account, hundred))
  yield* waitUntil(() => first.calls.length > before)
  return { end: Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(asked)) }
})

withLayer(served)("the limits of a key", (it) => {
  it.effect("are told in headers: what is left of the tokens, once they are used", function* () {
    const { first } = yield* Upstreams
    const account = yield* openAccount({ tpm: 10_000, nanoUsd: 45_000_000n })
    yield* first.script(answers())
    const whole = yield* chat(account, hundred)
    assert.strictEqual(whole.status, 200, whole.text)
    assert.deepStrictEqual(tokensOf(whole), { limit: 10_000, remaining: 10_000 - usual.total_tokens })
    assert.isDefined(rateOf(whole))
    yield* first.script(streams("fine"))
    const stream = yield* chat(account, { ...hundred, stream: true })
    assert.deepStrictEqual(tokensOf(stream), { limit: 10_000, remaining: 10_000 - usual.total_tokens - held })
    const left = { limit: 10_000, remaining: 10_000 - 2 * usual.total_tokens }
    const image = yield* draw(account, picture)
    assert.strictEqual(image.status, 200, image.text)
    assert.deepStrictEqual(tokensOf(image), left)
    for (const [status, body] of [
      [400, "{"],
      [404, talk("nobody")],
      [402, { ...hundred, max_tokens: 4_000 }]
    ] as const) {
      const refused = yield* chat(account, body)
      assert.strictEqual(refused.status, status, refused.text)
      assert.deepStrictEqual(tokensOf(refused), left)
    }
    assert.strictEqual(yield* usedBy(account), 2 * usual.total_tokens)
    yield* first.script(answers())
    const unlimited = yield* chat(yield* openAccount({ concurrency: 9 }), hundred)
    assert.strictEqual(unlimited.status, 200)
    assert.isUndefined(tokensOf(unlimited))
    for (const name of ["limit", "remaining", "reset"]) assert.include(exposedHeaders, `x-ratelimit-${name}-tokens`)
  })

  it.effect("refuse more tokens than are left, in every way of asking", function* () {
    const { first } = yield* Upstreams
    for (const way of chatApis) {
      const account = yield* openAccount({ tpm: 100 })
      yield* first.script(answers())
      // Any one request passes in a window that nothing was taken from.
      const passed = yield* way.send(account, hundred)
      assert.strictEqual(passed.status, 200, passed.text)
      for (const stream of [false, true]) {
        const refused = yield* way.send(account, { ...hundred, stream })
        way.assertRefused(refused, tokensLimited(100, refused))
        assert.deepStrictEqual(tokensOf(refused), { limit: 100, remaining: 100 - usual.total_tokens })
        assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
      }
      // Pictures neither take nor need any, not even while they run.
      assert.strictEqual((yield* draw(account, picture)).status, 200)
      assert.strictEqual(yield* usedBy(account), usual.total_tokens)
    }
  })

  it.effect("give the tokens of a failed request back before its answer", function* () {
    const { first } = yield* Upstreams
    const account = yield* openAccount({ tpm: 200 })
    yield* first.script(json(500, {}))
    const failed = yield* chat(account, { ...hundred, model: "weak" })
    assert.strictEqual(failed.status, 502, failed.text)
    assert.deepStrictEqual(tokensOf(failed), { limit: 200, remaining: 200 })
    assert.strictEqual(yield* usedBy(account), 0)
  })

  it.effect("refuse one request more than may run at once, in every way of asking and on every surface", function* () {
    const { first } = yield* Upstreams
    const account = yield* openAccount({ concurrency: 1 })
    const one = yield* running(account)
    for (const way of chatApis) {
      for (const stream of [false, true]) {
        way.assertRefused(yield* way.send(account, { ...hundred, stream }), concurrencyLimited(1))
      }
    }
    assertRefused(yield* draw(account, picture), concurrencyLimited(1))
    assert.strictEqual((yield* one.end).status, 200)
    assert.strictEqual((yield* draw(account, picture)).status, 200)
    yield* first.script(answers())
    assert.strictEqual((yield* chat(account, hundred)).status, 200)
  })

  it.effect("come after the cap, tokens before places, and both before the balance", function* () {
    const keys = yield* ApiKeys
    const account = yield* openAccount({ tpm: 100, concurrency: 1, nanoUsd: 300_000n })
    const one = yield* running(account)
    const early = yield* chat(account, hundred)
    assertRefused(early, tokensLimited(100, early))
    yield* keys.update(OrganizationScope.all, account.key, { tpm: 1_000_000 })
    yield* soon(Effect.map(chat(account, hundred), (answer) => assertRefused(answer, concurrencyLimited(1))))
    yield* keys.update(OrganizationScope.all, account.key, { concurrency: 2 })
    yield* soon(Effect.map(chat(account, hundred), (answer) => assertRefused(answer, refusals.insufficient)))
    assert.strictEqual((yield* one.end).status, 200)
  })

  it.effect("that are set while requests run count those, within a second", function* () {
    const { first } = yield* Upstreams
    const keys = yield* ApiKeys
    const account = yield* openAccount({})
    const [left, right] = [yield* running(account), yield* running(account)]
    yield* keys.update(OrganizationScope.all, account.key, { concurrency: 2 })
    yield* soon(Effect.map(chat(account, "{"), ({ status }) => assert.strictEqual(status, 400)))
    yield* soon(
      Effect.flatMap(draw(account, picture), (answer) =>
        Effect.sync(() => assertRefused(answer, concurrencyLimited(2)))
      )
    )
    yield* left.end
    assert.strictEqual((yield* draw(account, picture)).status, 200)
    yield* keys.update(OrganizationScope.all, account.key, { concurrency: null, tpm: 5_000 })
    yield* soon(Effect.map(draw(account, picture), (answer) => assert.isDefined(tokensOf(answer))))
    yield* first.script(answers())
    assert.strictEqual((yield* chat(account, hundred)).status, 200)
    yield* right.end
  })

  it.effect("take nothing of a replay", function* () {
    const account = yield* openAccount({ concurrency: 1 })
    const sent = { headers: { "idempotency-key": "again" } }
    assert.strictEqual((yield* draw(account, picture, sent)).status, 200)
    const one = yield* running(account)
    assert.strictEqual((yield* draw(account, picture, sent)).status, 200)
    assertRefused(yield* draw(account, picture), concurrencyLimited(1))
    yield* one.end
  })
})

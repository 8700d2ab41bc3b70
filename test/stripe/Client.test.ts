import { Context, Effect, Layer, Logger, Redacted } from "effect"
import { PaymentProvider } from "../../src/services/payments/PaymentProvider.ts"
import * as Stripe from "../../src/stripe/Stripe.ts"
import { assert, describe, it } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"

const connect = Effect.fnUntraced(function* (secretKey = FakeStripe.secretKey) {
  const stripe = yield* FakeStripe.make
  const options = { secretKey: Redacted.make(secretKey), apiBase: stripe.url }
  const context = yield* Layer.build(Stripe.layer(options))
  const provider = Context.get(context, PaymentProvider)
  return { provider, ...stripe }
})

describe("Stripe's API", () => {
  it.scopedLive("is asked for all pages of a list", function* () {
    const { account, calls, provider } = yield* connect()
    for (let count = 0; count < 230; count++) account.createSession({ cents: 500 + count })
    const { items: all } = yield* provider.sessionsSince(new Date(0))
    assert.strictEqual(new Set(all.map(({ id }) => id)).size, 230)
    assert.lengthOf(calls, 3)
    assert.isEmpty((yield* provider.sessionsSince(new Date())).items)
  })

  it.scopedLive("tells of a bank's debit that failed, wherever its session is asked for", function* () {
    const { account, provider } = yield* connect()
    const { id } = account.createSession({ cents: 500 })
    const seen = Effect.gen(function* () {
      const intent = account.intentOf(id)
      const all = [
        yield* provider.session(id),
        yield* provider.sessionOf(intent),
        ...(yield* provider.sessionsSince(new Date(0))).items
      ]
      return all.map((session) => [session?.hasFailed, session?.paymentIntent === intent])
    })
    account.complete(id, true)
    for (const session of yield* seen) assert.deepStrictEqual(session, [false, true])
    account.fail(id)
    for (const session of yield* seen) assert.deepStrictEqual(session, [true, true])
  })

  it.scopedLive("tells of sessions to a restricted key that may not read their intents, and warns once", () => {
    const warnings: Array<unknown> = []
    const logger = Logger.make(({ message }) => warnings.push(message))
    return Effect.gen(function* () {
      const { account, calls, provider, troubles } = yield* connect()
      const { id } = account.createSession({ cents: 500 })
      account.complete(id)
      troubles.push(403)
      const session = yield* provider.session(id)
      assert.deepStrictEqual([session?.isPaid, session?.paymentIntent], [true, account.intentOf(id)])
      troubles.push(403)
      assert.lengthOf((yield* provider.sessionsSince(new Date(0))).items, 1)
      assert.deepStrictEqual(
        calls.map(({ path }) => path.includes("expand")),
        [true, false, true, false]
      )
      assert.lengthOf(warnings, 1)
      assert.include(String(warnings[0]), "may not read payment intents")
      troubles.push(403, 403)
      const { message } = yield* Effect.flip(provider.session(id))
      assert.strictEqual(message, "Stripe could not be asked: status 403, api_error, req_1.")
      assert.lengthOf(warnings, 1)
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })

  it.scopedLive("has no session where it says that there is none", function* () {
    const { provider } = yield* connect()
    assert.isUndefined(yield* provider.session("cs_none"))
    assert.isUndefined(yield* provider.sessionOf("pi_none"))
  })

  it.scopedLive("is tried three times, and fails without a word of the key", function* () {
    const { calls, provider, troubles } = yield* connect()
    troubles.push("break", 500, 429, 400)
    const passing = yield* Effect.flip(provider.reversals("pi_1"))
    assert.strictEqual(passing.message, "Stripe could not be asked: status 429, api_error, req_1.")
    const lasting = yield* Effect.flip(provider.reversals("pi_1"))
    assert.strictEqual(lasting.message, "Stripe could not be asked: status 400, api_error, req_1.")
    assert.lengthOf(calls, 4)
  })

  it.scopedLive("refuses a wrong key once", function* () {
    const { calls, provider } = yield* connect("sk_test_wrong")
    const { message } = yield* Effect.flip(provider.session("cs_1"))
    assert.strictEqual(message, "Stripe could not be asked: status 401, invalid_request_error, req_1.")
    assert.lengthOf(calls, 1)
  })
})

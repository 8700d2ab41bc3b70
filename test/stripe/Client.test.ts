import { Context, Effect, Layer, Logger, Redacted } from "effect"
import { PaymentProvider } from "../../src/services/payments/PaymentProvider.ts"
import * as Stripe from "../../src/stripe/StripePayments.ts"
import { assert, describe, it } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import type { StripeObject } from "../harness/stripe/StripeAccount.ts"

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
      assert.include(String(warnings[0]), "may not read Payment Intents")
      troubles.push(403, 403)
      const { message } = yield* Effect.flip(provider.session(id))
      assert.strictEqual(message, "The request to Stripe failed: status 403, api_error, req_1.")
      assert.lengthOf(warnings, 1)
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })

  it.scopedLive("skips and logs objects that it cannot decode in lists, and fails their own payments", () => {
    const warnings: Array<string> = []
    const logger = Logger.make(({ message }) => warnings.push(String(message)))
    return Effect.gen(function* () {
      const { account, provider } = yield* connect()
      const spoil = (objects: Map<string, StripeObject>, id: string, fields: object) =>
        objects.set(id, { ...objects.get(id), id, created: 1, ...fields })
      for (let count = 0; count < 120; count++) account.createSession({ cents: 500 + count })
      const [first] = account.sessions.keys()
      spoil(account.sessions, first ?? "", { amount_total: 1e15, secret: "s3cret" })
      const ids = ["pi_1", "pi_2", "pi_3", "pi_4", "pi_5"].map((intent) => account.refund(intent, 500))
      const [huge = "", negative = "", late = "", text = ""] = ids
      spoil(account.refunds, huge, { amount: 922_337_203_686 })
      spoil(account.refunds, negative, { amount: -1 })
      spoil(account.refunds, late, { created: 1e15 })
      spoil(account.refunds, text, { status: "a\0" })
      const dispute = account.dispute("pi_6", 500)
      spoil(account.disputes, dispute, { balance_transactions: [{ amount: -500 }] })

      const sessions = yield* provider.sessionsSince(new Date(0))
      assert.deepStrictEqual([sessions.items.length, sessions.unreadable], [119, 1])
      const reversals = yield* provider.reversalsSince(new Date(0))
      assert.deepStrictEqual(
        reversals.items.map(({ id }) => id),
        ids.slice(4)
      )
      assert.strictEqual(reversals.unreadable, 5)
      const refunds = [text, late, negative, huge]
      const fields = ["status", "created", "amount", "amount"]
      assert.deepStrictEqual(warnings, [
        `Skipped a Stripe object that could not be decoded: ${first} at \`amount_total\`.`,
        ...refunds.map((id, at) => `Skipped a Stripe object that could not be decoded: ${id} at \`${fields[at]}\`.`),
        `Skipped a Stripe object that could not be decoded: ${dispute} at \`balance_transactions.0.currency\`.`
      ])
      const failure = yield* Effect.flip(provider.reversals("pi_1"))
      assert.strictEqual(failure.message, `Stripe objects could not be decoded: ${huge} at \`amount\`.`)
      assert.lengthOf(yield* provider.reversals("pi_5"), 1)
      const one = yield* Effect.flip(provider.session(first ?? ""))
      assert.strictEqual(one.message, "The request to Stripe failed: an unexpected answer at `amount_total`.")
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })

  it.scopedLive("reads the USD amount of a refund in another currency if the account's balance is in USD", () => {
    const warnings: Array<string> = []
    const logger = Logger.make(({ message }) => warnings.push(String(message)))
    return Effect.gen(function* () {
      const { account, calls, provider, troubles } = yield* connect()
      const took = (intent: string) =>
        Effect.map(
          provider.reversals(intent),
          ([found]): ReadonlyArray<unknown> => [found?.amount, found?.foreignAmount]
        )
      account.refund("pi_usd", 1500)
      assert.deepStrictEqual(yield* took("pi_usd"), [15_000_000_000n, undefined])
      assert.lengthOf(calls, 2)
      account.refund("pi_jpy", 1500, "succeeded", { currency: "jpy", moved: { amount: -998, currency: "usd" } })
      assert.deepStrictEqual(yield* took("pi_jpy"), [9_980_000_000n, "1500 JPY"])
      account.refund("pi_eur", 1500, "succeeded", { currency: "eur" })
      assert.deepStrictEqual(yield* took("pi_eur"), [undefined, "15.00 EUR"])
      account.refund("pi_kwd", 1500, "failed", { currency: "kwd" })
      assert.deepStrictEqual(yield* took("pi_kwd"), [0n, undefined])
      assert.isEmpty(warnings)
      const refund = yield* provider.reversalsSince(new Date(0))
      assert.deepStrictEqual(
        refund.items.map(({ foreignAmount }) => foreignAmount),
        [undefined, "15.00 EUR", "1500 JPY", undefined]
      )
      const isMoveAsked = ({ path }: { readonly path: string }) => path.includes("balance_transaction")
      assert.lengthOf(calls.filter(isMoveAsked), 2)
      // A restricted key may read refunds but not their balance transactions.
      troubles.push("none", "none", 403)
      assert.deepStrictEqual(yield* took("pi_jpy"), [undefined, "1500 JPY"])
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0], "may not read Balance Transactions")
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })

  it.scopedLive("states amounts with the decimals that Stripe gives a currency", function* () {
    const { account, provider } = yield* connect()
    const stated = [
      ["huf", "15000.00 HUF"],
      ["idr", "15000.00 IDR"],
      ["isk", "15000.00 ISK"],
      ["kwd", "1500.000 KWD"],
      ["krw", "1500000 KRW"],
      ["mga", "1500000 MGA"],
      ["ugx", "15000.00 UGX"]
    ] as const
    for (const [currency] of stated) account.refund(`pi_${currency}`, 1_500_000, "succeeded", { currency })
    const { items } = yield* provider.reversalsSince(new Date(0))
    assert.sameDeepMembers(
      items.map(({ foreignAmount, paymentIntent }) => [paymentIntent.slice(3), foreignAmount]),
      stated.map((pair) => [...pair])
    )
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
    assert.strictEqual(passing.message, "The request to Stripe failed: status 429, api_error, req_1.")
    const lasting = yield* Effect.flip(provider.reversals("pi_1"))
    assert.strictEqual(lasting.message, "The request to Stripe failed: status 400, api_error, req_1.")
    assert.lengthOf(calls, 4)
  })

  it.scopedLive("refuses a wrong key once", function* () {
    const { calls, provider } = yield* connect("sk_test_wrong")
    const { message } = yield* Effect.flip(provider.session("cs_1"))
    assert.strictEqual(message, "The request to Stripe failed: status 401, invalid_request_error, req_1.")
    assert.lengthOf(calls, 1)
  })
})

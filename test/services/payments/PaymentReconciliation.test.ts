import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { PaymentProvider } from "../../../src/services/payments/PaymentProvider.ts"
import { makePaymentReconciliation } from "../../../src/services/payments/PaymentReconciliation.ts"
import { times, violatedBy } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { database, dollar, payer } from "./PaymentBench.ts"

withLayer(database)("payments", (it) => {
  it.effect("are credited once they are paid, and not before", function* () {
    const { account, begin, deliver, payments, state } = yield* payer()
    const { id, session } = yield* begin(25)
    const completed = account.complete(session, true)
    yield* deliver(completed)
    assert.strictEqual((yield* state).balance, 0n)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
    const succeeded = account.succeed(session)
    yield* Effect.all([deliver(succeeded), deliver(succeeded), deliver(succeeded)], { concurrency: 3 })
    yield* deliver(completed)
    assert.strictEqual((yield* state).balance, 25n * dollar)
    const { events, status } = yield* payments.find(OrganizationScope.all, id)
    assert.strictEqual(status, "paid")
    assert.lengthOf(events, 2)
  })

  it.effect("are open, expired or failed without money", function* () {
    const { account, begin, deliver, payments, state } = yield* payer()
    const expired = yield* begin(5)
    yield* deliver(account.expire(expired.session))
    const failed = yield* begin(5)
    const completed = account.complete(failed.session, true)
    yield* deliver(account.fail(failed.session))
    yield* deliver(completed)
    const open = yield* begin(5)
    for (const [{ id }, status] of [
      [expired, "expired"],
      [failed, "failed"],
      [open, "open"]
    ] as const) {
      assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, status)
    }
    assert.strictEqual((yield* state).balance, 0n)
    assert.strictEqual((yield* Effect.flip(payments.checkout(OrganizationScope.all, expired.id)))._tag, "PaymentClosed")
  })

  it.effect(
    "of another amount, in another currency or by a foreign session are written down, not credited",
    function* () {
      const { account, deliver, org, payments, state } = yield* payer()
      const given = { org, amount: NanoUsd(20n * dollar) }
      const asked = { less: yield* payments.begin(given), euros: yield* payments.begin(given) }
      const less = account.createSession({ payment: asked.less.id, cents: 1999 })
      const euros = account.createSession({ payment: asked.euros.id, cents: 2000, currency: "eur" })
      const foreign = account.createSession({ cents: 700 })
      for (const { id } of [less, euros, foreign]) yield* deliver(account.complete(id))
      assert.strictEqual((yield* state).balance, 0n)
      assert.deepInclude(yield* payments.find(OrganizationScope.all, asked.less.id), {
        amount_usd: 19_990_000_000n,
        problem: "The amount due was 20 USD, but 19.99 USD were paid."
      })
      assert.deepInclude(yield* payments.find(OrganizationScope.all, asked.euros.id), {
        amount_usd: null,
        problem: "It was paid in EUR, not in USD."
      })
      const refused = yield* payments.page(OrganizationScope.all, { status: "refused", limit: 100 })
      const unknown = refused.find(({ session }) => session === foreign.id)
      assert.deepInclude(unknown, { org: null, amount_usd: 7n * dollar, entry: null })
    }
  )

  it.effect("that are open are ten at most, for a day, however many are begun at once", function* () {
    const { account, begin, deliver, org, payments } = yield* payer()
    const sql = yield* SqlClient.SqlClient
    const first = yield* begin(5)
    const another = sql.withTransaction(payments.begin({ org, amount: NanoUsd(5n * dollar) }))
    const begun = yield* Effect.forEach(times(12), () => Effect.either(another), { concurrency: 6 })
    assert.lengthOf(
      begun.filter((one) => one._tag === "Left" && one.left._tag === "TooManyOpenPayments"),
      3
    )
    yield* deliver(account.complete(first.session))
    yield* another
    assert.strictEqual((yield* Effect.flip(another))._tag, "TooManyOpenPayments")
    yield* sql`UPDATE payments SET created_at = now() - interval '25 hours' WHERE org_id = ${org}`
    yield* another
  })

  it.effect("of one session are not credited to a second payment that it names", function* () {
    const { account, begin, deliver, org, payments, state } = yield* payer()
    const { id } = yield* begin(5)
    const copy = account.createSession({ payment: id, cents: 500 })
    yield* deliver(account.complete(copy.id))
    assert.strictEqual((yield* state).balance, 0n)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
    assert.isEmpty(yield* payments.page(OrganizationScope.all, { org, status: "refused", limit: 10 }))
  })

  it.effect("take no more back than they were, and give back what a failed refund took", function* () {
    const { account, begin, deliver, payments, state } = yield* payer()
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session))
    const intent = account.intentOf(session)
    const refund = account.refund(intent, 600, "pending")
    const dispute = account.dispute(intent, 1000)
    account.withdraw(dispute)
    yield* Effect.forEach(account.events, deliver)
    assert.deepInclude(yield* state, { balance: 0n, isDisputed: true })
    yield* deliver(account.updateRefund(refund, "failed"))
    assert.strictEqual((yield* state).balance, 0n)
    account.close(dispute, "won")
    yield* deliver(account.reinstate(dispute))
    assert.deepInclude(yield* state, { balance: 10n * dollar, isDisputed: false })
    assert.deepInclude(yield* payments.find(OrganizationScope.all, id), { reversed_usd: 0n, disputed: false })
  })

  it.effect("are as they were told last, whichever of two deliveries is written last", function* () {
    const { account, begin, deliver, state, withProvider } = yield* payer()
    const { session } = yield* begin(10)
    yield* deliver(account.complete(session))
    const intent = account.intentOf(session)
    const refund = account.refund(intent, 600)
    const asked = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const waitOnce = Effect.zipRight(Deferred.succeed(asked, undefined), Deferred.await(goOn))
    const slow = {
      ...account.provider,
      reversals: (paymentIntent: string) => Effect.zipLeft(account.provider.reversals(paymentIntent), waitOnce)
    }
    const { reconcile } = yield* withProvider(Effect.provideService(makePaymentReconciliation, PaymentProvider, slow))
    const first = yield* Effect.fork(reconcile({ paymentIntent: intent }))
    yield* Deferred.await(asked)
    yield* deliver(account.updateRefund(refund, "failed"))
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.join(first)
    assert.strictEqual((yield* state).balance, 10n * dollar)
  })

  it.effect("are not taken back twice where the provider no longer lists what took them", function* () {
    const { account, begin, deliver, payments, state } = yield* payer()
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session))
    const intent = account.intentOf(session)
    const first = account.refund(intent, 700)
    yield* Effect.forEach(account.events, deliver)
    account.refunds.delete(first)
    account.refund(intent, 600)
    yield* Effect.forEach(account.events, deliver)
    assert.strictEqual((yield* state).balance, 0n)
    const { reversals } = yield* payments.find(OrganizationScope.all, id)
    assert.deepStrictEqual(
      reversals.map(({ taken_usd }) => taken_usd),
      [7n * dollar, 3n * dollar]
    )
  })

  it.effect(
    "that were refused are what an operator enters under their reference, and are taken back of that",
    function* () {
      const { account, deliver, org, payments, state } = yield* payer()
      const { topUp } = yield* LedgerAdmin
      const { id } = yield* payments.begin({ org, amount: NanoUsd(20n * dollar) })
      const euros = account.createSession({ payment: id, cents: 2000, currency: "eur" })
      yield* deliver(account.complete(euros.id))
      const intent = account.intentOf(euros.id)
      const { entry } = yield* topUp({ org, amount: NanoUsd(21n * dollar), ref: `stripe:${intent}`, note: "in euros" })
      account.refund(intent, 500, "succeeded", { currency: "eur", moved: { amount: -540, currency: "usd" } })
      yield* Effect.forEach(account.events, deliver)
      assert.strictEqual((yield* state).balance, 15_600_000_000n)
      assert.deepInclude(yield* payments.find(OrganizationScope.all, id), {
        status: "paid",
        amount_usd: 21n * dollar,
        reversed_usd: 5_400_000_000n,
        problem: null,
        entry: entry.id
      })
    }
  )

  it.effect(
    "are taken below zero by a dispute of what was spent, and suspend nothing where that is ignored",
    function* () {
      const { account, begin, deliver, org, state } = yield* payer({ suspendsDisputed: false })
      const { adjust } = yield* LedgerAdmin
      const { session } = yield* begin(10)
      yield* deliver(account.complete(session))
      yield* adjust({ org, amount: NanoUsd(-10n * dollar), note: "spent", force: true })
      const dispute = account.dispute(account.intentOf(session), 1000)
      account.withdraw(dispute)
      yield* Effect.forEach(account.events, deliver)
      assert.deepInclude(yield* state, { balance: -10n * dollar, isDisputed: false })
    }
  )

  it.effect("agree with their entries, or the ledger is broken", function* () {
    const sql = yield* SqlClient.SqlClient
    const { account, begin, deliver } = yield* payer()
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session))
    account.refund(account.intentOf(session), 250)
    yield* Effect.forEach(account.events, deliver)
    const { verify } = yield* LedgerAdmin
    assert.deepStrictEqual((yield* verify).violations, [])
    assert.deepStrictEqual(yield* violatedBy(sql`UPDATE payments SET amount = amount + 1 WHERE id = ${id}`), [
      "a payment has exactly one entry, of its amount and organization"
    ])
    assert.deepStrictEqual(
      yield* violatedBy(sql`UPDATE payment_reversals SET taken = taken - 1 WHERE payment_id = ${id}`),
      [
        "the refunds and disputes of a payment are charged, up to its amount",
        "the amount taken by a refund or dispute is the sum of its entries"
      ]
    )
    const grown = sql`UPDATE payment_reversals SET taken = taken * 5, amount = amount * 5 WHERE payment_id = ${id}`
    assert.deepStrictEqual(yield* violatedBy(grown), [
      "reversals of a payment never exceed it",
      "the refunds and disputes of a payment are charged, up to its amount",
      "the amount taken by a refund or dispute is the sum of its entries"
    ])
  })
})

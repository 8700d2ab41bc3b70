import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { Payments } from "../../../src/services/payments/Payments.ts"
import { times, violatedBy } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { database, dollar, payer, syncOf } from "./PaymentBench.ts"

const usd = (dollars: number) => NanoUsd(BigInt(dollars) * dollar)

/** A payment of 10 USD by a foreign session, and the organization to credit. */
const foreign = Effect.fnUntraced(function* (currency = "usd") {
  const given = yield* payer()
  const { account, deliver, org, payments } = given
  const session = account.createSession({ cents: 1000, currency })
  yield* deliver(account.complete(session.id))
  const intent = account.intentOf(session.id)
  const enter = payments.enter({ org, amount: usd(10), ref: `stripe:${intent}` })
  const deliverAll = Effect.forEach(account.events, deliver)
  const refused = yield* payments.page(OrganizationScope.all, { status: "refused", limit: 100 })
  const id = refused.find((one) => one.session === session.id)?.id ?? ""
  return { ...given, deliverAll, enter, id, intent }
})

const provenBy = Effect.flatMap(LedgerAdmin, ({ verify }) => Effect.map(verify, ({ violations }) => violations))

withLayer(database)("a payment that an operator credits by its reference", (it) => {
  it.effect("and that came by a foreign session: its refunds are charged to the credited organization", function* () {
    const { account, deliver, org, payments, state } = yield* payer()
    const { topUp, verify } = yield* LedgerAdmin
    const foreign = account.createSession({ cents: 700 })
    yield* deliver(account.complete(foreign.id))
    const intent = account.intentOf(foreign.id)
    const { entry } = yield* topUp({ org, amount: NanoUsd(7n * dollar), ref: `stripe:${intent}` })
    account.refund(intent, 200)
    const dispute = account.dispute(intent, 500)
    account.withdraw(dispute)
    yield* Effect.forEach(account.events, deliver)
    assert.deepInclude(yield* state, { balance: 0n, isDisputed: true })
    const paid = yield* payments.page(OrganizationScope.all, { org, status: "paid", limit: 100 })
    assert.lengthOf(paid, 1)
    assert.deepInclude(paid[0], {
      entry: entry.id,
      amount_usd: 7n * dollar,
      reversed_usd: 7n * dollar,
      problem: null
    })
    assert.deepStrictEqual((yield* verify).violations, [])
  })

  it.effect("instead of a deleted organization: its refunds are charged to the credited one", function* () {
    const { account, begin, deliver, org, payments } = yield* payer()
    const heir = yield* payer()
    const { topUp, verify } = yield* LedgerAdmin
    const sql = yield* SqlClient.SqlClient
    const { id, session } = yield* begin(10)
    yield* sql`UPDATE organizations SET deleted_at = now() WHERE id = ${org}`
    yield* deliver(account.complete(session))
    const intent = account.intentOf(session)
    yield* topUp({ org: heir.org, amount: NanoUsd(10n * dollar), ref: `stripe:${intent}` })
    account.refund(intent, 400)
    yield* Effect.forEach(account.events, deliver)
    assert.strictEqual((yield* heir.state).balance, 6n * dollar)
    assert.deepInclude(yield* payments.find(OrganizationScope.all, id), { org: heir.org, status: "paid" })
    assert.deepStrictEqual((yield* verify).violations, [])
  })

  it.effect("and that came without a session: its refunds are charged", function* () {
    const { account, deliver, org, state } = yield* payer()
    const { topUp, verify } = yield* LedgerAdmin
    const intent = account.payByInvoice()
    account.refund(intent, 300)
    yield* Effect.forEach(account.events, deliver)
    yield* topUp({ org, amount: NanoUsd(10n * dollar), ref: `stripe:${intent}` })
    account.refund(intent, 200)
    yield* Effect.forEach(account.events, deliver)
    assert.strictEqual((yield* state).balance, 5n * dollar)
    assert.deepStrictEqual((yield* verify).violations, [])
  })

  it.effect("after its refund: the refund is charged at once", function* () {
    const { account, deliverAll, enter, intent, payments, state, id, org } = yield* foreign()
    account.refund(intent, 300)
    yield* deliverAll
    yield* enter
    assert.strictEqual((yield* state).balance, 7n * dollar)
    assert.deepInclude(yield* payments.find(OrganizationScope.all, id), { org, status: "paid", reversed_usd: usd(3) })
    assert.isTrue((yield* enter).replayed)
    assert.strictEqual((yield* state).balance, 7n * dollar)
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("is recognized if its reference was copied with spaces or capitals", function* () {
    const { account, deliverAll, intent, org, payments, state } = yield* foreign()
    account.refund(intent, 300)
    yield* deliverAll
    const refs = [` stripe:${intent} `, `Stripe: ${intent}\n`, `stripe:${intent}`]
    for (const ref of refs) {
      const { entry, replayed } = yield* payments.enter({ org, amount: usd(10), ref })
      assert.strictEqual(entry.ref, `stripe:${intent}`)
      assert.strictEqual(replayed, ref !== refs[0])
    }
    assert.strictEqual((yield* state).balance, 7n * dollar)
    const reserved = yield* Effect.flip(payments.enter({ org, amount: usd(10), ref: "STRIPE:re_1 " }))
    assert.strictEqual(reserved._tag, "RefReserved")
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("before its event came is not credited twice, whatever the amount", function* () {
    const { account, begin, deliver, payments, org, state } = yield* payer()
    const { id, session } = yield* begin(10)
    const completed = account.complete(session)
    const { entry } = yield* payments.enter({ org, amount: usd(12), ref: `stripe:${account.intentOf(session)}` })
    yield* deliver(completed)
    assert.strictEqual((yield* state).balance, 12n * dollar)
    const shown = yield* payments.find(OrganizationScope.all, id)
    assert.deepInclude(shown, { status: "paid", amount_usd: usd(12), entry: entry.id })
    account.refund(account.intentOf(session), 1000)
    yield* Effect.forEach(account.events, deliver)
    assert.strictEqual((yield* state).balance, 2n * dollar)
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("and whose dispute is open suspends the credited organization", function* () {
    const { account, begin, deliver, org, state } = yield* payer()
    const heir = yield* payer()
    const sql = yield* SqlClient.SqlClient
    const { session } = yield* begin(10)
    yield* sql`UPDATE organizations SET deleted_at = now() WHERE id = ${org}`
    yield* deliver(account.complete(session))
    const dispute = account.dispute(account.intentOf(session), 1000)
    yield* Effect.forEach(account.events, deliver)
    assert.deepInclude(yield* state, { balance: 0n, isDisputed: true })
    yield* heir.payments.enter({ org: heir.org, amount: usd(10), ref: `stripe:${account.intentOf(session)}` })
    yield* deliver(account.withdraw(dispute))
    assert.deepInclude(yield* heir.state, { balance: 0n, isDisputed: true })
    yield* deliver(account.close(dispute, "lost"))
    assert.isFalse((yield* heir.state).isDisputed)
  })

  for (const [time, isFormer] of [
    ["at once", false],
    ["by a sync, if an earlier version entered it", true]
  ] as const) {
    it.effect(
      `if disputed, suspends the organization that has the entry, and not the one before, ${time}`,
      function* () {
        const given = yield* payer()
        const { account, begin, deliver, state } = given
        const heir = yield* payer()
        const { topUp } = yield* LedgerAdmin
        const { session } = yield* begin(10)
        account.changeAmount(session, 1100)
        yield* deliver(account.complete(session))
        const intent = account.intentOf(session)
        account.withdraw(account.dispute(intent, 1100))
        yield* Effect.forEach(account.events, deliver)
        assert.deepInclude(yield* state, { balance: 0n, isDisputed: true })
        yield* (isFormer ? topUp : heir.payments.enter)({ org: heir.org, amount: usd(11), ref: `stripe:${intent}` })
        if (isFormer) yield* Effect.flatMap(syncOf(given), ({ run }) => run(new Date(8e12)))
        assert.deepInclude(yield* heir.state, { balance: 0n, isDisputed: true })
        assert.isFalse((yield* state).isDisputed)
        assert.deepStrictEqual(yield* provenBy, [])
      }
    )
  }

  it.effect("if disputed, suspends nobody with DISPUTE_POLICY=ignore", function* () {
    const { account, deliverAll, intent, org, state, withProvider } = yield* foreign()
    account.withdraw(account.dispute(intent, 1000))
    yield* deliverAll
    const { enter } = yield* withProvider(Effect.provide(Payments, Layer.fresh(Payments.layer)), {
      suspendsDisputed: false
    })
    yield* enter({ org, amount: usd(10), ref: `stripe:${intent}` })
    assert.deepInclude(yield* state, { balance: 0n, isDisputed: false })
  })

  it.effect("at the same time as its refund is charged once", function* () {
    const all = yield* Effect.forEach(times(12), () => foreign())
    for (const { account, intent } of all) account.refund(intent, 400)
    yield* Effect.forEach(
      all,
      ({ deliverAll, enter }) => Effect.all([deliverAll, enter, deliverAll], { concurrency: 3 }),
      { concurrency: 4 }
    )
    for (const { state } of all) assert.strictEqual((yield* state).balance, 6n * dollar)
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("in an older version is found by ledger verify, and charged by a sync", function* () {
    const given = yield* foreign()
    const { account, deliverAll, intent, state } = given
    const { topUp } = yield* LedgerAdmin
    account.refund(intent, 300)
    yield* deliverAll
    const former = topUp({ org: given.org, amount: usd(10), ref: `stripe:${intent}` })
    assert.deepStrictEqual(yield* violatedBy(former), [
      "the refunds and disputes of a payment are charged, up to its amount"
    ])
    yield* former
    yield* Effect.flatMap(syncOf(given), ({ run }) => run(new Date(8e12)))
    assert.strictEqual((yield* state).balance, 7n * dollar)
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("and that came without a session: a sync charges refunds without an event", function* () {
    const given = yield* payer()
    const { account, org, payments, state } = given
    const intent = account.payByInvoice()
    account.refund(intent, 400)
    yield* payments.enter({ org, amount: usd(10), ref: `stripe:${intent}` })
    const { run } = yield* syncOf(given)
    yield* run(new Date(8e12))
    assert.strictEqual((yield* state).balance, 6n * dollar)
    account.refund(intent, 100)
    yield* run(new Date(0))
    assert.strictEqual((yield* state).balance, 5n * dollar)
    assert.deepStrictEqual(yield* provenBy, [])
  })

  it.effect("is not charged for a refund in another currency until its USD amount is entered", function* () {
    const { account, deliver, deliverAll, enter, id, intent, payments, state } = yield* foreign("jpy")
    yield* enter
    const refund = account.refund(intent, 1500, "succeeded", {
      currency: "jpy",
      moved: { amount: -900, currency: "eur" }
    })
    const settled = account.refund(intent, 150, "succeeded", {
      currency: "jpy",
      moved: { amount: -98, currency: "usd" }
    })
    yield* deliverAll
    assert.strictEqual((yield* state).balance, 9_020_000_000n)
    const shown = Effect.map(payments.find(OrganizationScope.all, id), ({ reversals }) =>
      reversals.map(({ amount_usd, foreign_amount, id }) => [id, amount_usd, foreign_amount])
    )
    assert.deepStrictEqual(yield* shown, [
      [refund, null, "1500 JPY"],
      [settled, 980_000_000n, "150 JPY"]
    ])
    yield* payments.enterReversal(id, refund, NanoUsd(9_990_000_000n))
    assert.strictEqual((yield* state).balance, 0n)
    yield* deliver(account.updateRefund(refund, "succeeded"))
    assert.strictEqual((yield* state).balance, 0n)
    yield* deliver(account.updateRefund(refund, "failed"))
    assert.strictEqual((yield* state).balance, 9_020_000_000n)
    const other = yield* Effect.flip(payments.enterReversal(id, refund, usd(1)))
    assert.strictEqual(other._tag, "ForeignReversalNotFound")
    assert.deepStrictEqual(yield* provenBy, [])
  })

  for (const [settled, withdrawn, left] of [
    ["usd", 1080, 0n],
    ["eur", 920, 10n * dollar]
  ] as const) {
    it.effect(`are taken back by a dispute in another currency, settled in ${settled}`, function* () {
      const { account, deliverAll, enter, id, intent, payments, state } = yield* foreign("eur")
      yield* enter
      const dispute = account.dispute(intent, 1000, { currency: "eur", settled })
      account.withdraw(dispute, withdrawn)
      yield* deliverAll
      assert.deepInclude(yield* state, { balance: left, isDisputed: true })
      account.close(dispute, "won")
      account.reinstate(dispute, withdrawn)
      yield* deliverAll
      assert.deepInclude(yield* state, { balance: 10n * dollar, isDisputed: false })
      const { reversals } = yield* payments.find(OrganizationScope.all, id)
      assert.deepInclude(reversals[0], { amount_usd: 0n, foreign_amount: null })
      assert.deepStrictEqual(yield* provenBy, [])
    })
  }
})

import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { database, dollar, payer, syncOf } from "./PaymentBench.ts"

const everything = new Date(0)
/** After all that the account has made. */
const nothing = new Date(8e12)

const paid = Effect.fnUntraced(function* () {
  const given = yield* payer()
  const { id, session } = yield* given.begin(10)
  yield* given.deliver(given.account.complete(session))
  return { ...given, id, session, intent: given.account.intentOf(session) }
})

withLayer(database)("a sync of payments", (it) => {
  it.effect("enters what no event told of, once", function* () {
    const given = yield* payer()
    const { account, begin, state } = given
    const { session } = yield* begin(10)
    account.complete(session)
    account.refund(account.intentOf(session), 250)
    const { run } = yield* syncOf(given)
    assert.isAtLeast((yield* run(everything)).reconciled, 1)
    assert.strictEqual((yield* state).balance, 7_500_000_000n)
    yield* run(everything)
    assert.strictEqual((yield* state).balance, 7_500_000_000n)
  })

  it.effect("goes on with the others after a payment that cannot be entered", function* () {
    const given = yield* payer()
    const { account, begin, org, payments, state } = given
    const { begin: beginOther, payments: others } = yield* payer()
    const sql = yield* SqlClient.SqlClient
    const gone = yield* beginOther(10)
    yield* sql`UPDATE payments SET created_at = now() - interval '2 days' WHERE id = ${gone.id}`
    const [broken, whole] = [yield* begin(10), yield* begin(20)]
    for (const { session } of [broken, whole]) account.complete(session)
    const refund = account.refund(account.intentOf(broken.session), 250)
    // No reference of a reversal can be taken by a top-up any more, but some were before.
    yield* sql`
      INSERT INTO ledger_entries (org_id, kind, amount, ref) VALUES (${org}, 'top_up', ${dollar}, ${`stripe:${refund}`})`
    const { failed } = yield* Effect.flatMap(syncOf(given), ({ run }) => run(everything))
    assert.isAtLeast(failed, 3)
    assert.strictEqual((yield* others.find(OrganizationScope.all, gone.id)).status, "open")
    assert.strictEqual((yield* payments.find(OrganizationScope.all, broken.id)).status, "open")
    assert.strictEqual((yield* payments.find(OrganizationScope.all, whole.id)).status, "paid")
    assert.strictEqual((yield* state).balance, 20n * dollar)
  })

  it.effect("looks up a bank's debit that is paid days after its page was made", function* () {
    const given = yield* payer()
    const { account, begin, deliver, payments, state } = given
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session, true))
    account.succeed(session)
    const { run } = yield* syncOf(given)
    yield* run(nothing)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE payments SET created_at = now() - interval '6 days' WHERE id = ${id}`
    yield* run(nothing)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "paid")
    assert.strictEqual((yield* state).balance, 10n * dollar)
  })

  for (const since of [everything, nothing]) {
    it.effect(`ends a bank's debit that failed, asked since ${since.toISOString()}`, function* () {
      const given = yield* payer()
      const { account, begin, deliver, payments } = given
      const { id, session } = yield* begin(10)
      yield* deliver(account.complete(session, true))
      const sql = yield* SqlClient.SqlClient
      // A young one is found among the provider's sessions alone.
      if (since === nothing) yield* sql`UPDATE payments SET created_at = now() - interval '6 days' WHERE id = ${id}`
      const { run } = yield* syncOf(given)
      yield* run(since)
      assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
      account.fail(session)
      yield* run(since)
      assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "failed")
    })
  }

  it.effect("expires what nobody was sent to pay, and credits it if somebody paid all the same", function* () {
    const given = yield* payer()
    const { account, deliver, org, payments, state } = given
    const { id } = yield* payments.begin({ org, amount: NanoUsd(10n * dollar) })
    const { run } = yield* syncOf(given)
    yield* run(nothing)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE payments SET created_at = now() - interval '3 minutes' WHERE id = ${id}`
    yield* run(nothing)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "expired")
    yield* deliver(account.complete(account.createSession({ payment: id, cents: 1000 }).id))
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "paid")
    assert.strictEqual((yield* state).balance, 10n * dollar)
  })

  for (const currency of ["usd", "eur"]) {
    it.effect(`looks up the money of a dispute that was won and settled in ${currency}`, function* () {
      const given = yield* paid()
      const { account, deliver, intent, state } = given
      const dispute = account.dispute(intent, 1000, { settled: currency })
      account.withdraw(dispute)
      yield* deliver(account.close(dispute, "won"))
      assert.deepInclude(yield* state, { balance: 0n, isDisputed: false })
      account.reinstate(dispute, currency === "usd" ? 1000 : 980)
      yield* Effect.flatMap(syncOf(given), ({ run }) => run(nothing))
      assert.strictEqual((yield* state).balance, 10n * dollar)
    })
  }

  it.effect("looks up a refund that failed after it had succeeded", function* () {
    const given = yield* paid()
    const { account, deliver, intent, state } = given
    const refund = account.refund(intent, 400)
    yield* Effect.forEach(account.events, deliver)
    assert.strictEqual((yield* state).balance, 6n * dollar)
    account.updateRefund(refund, "failed")
    yield* Effect.flatMap(syncOf(given), ({ run }) => run(nothing))
    assert.strictEqual((yield* state).balance, 10n * dollar)
  })

  it.effect("adopts what an operator entered for a refused payment once it is refunded", function* () {
    const given = yield* payer()
    const { account, deliver, org, payments, state } = given
    const { topUp } = yield* LedgerAdmin
    const { id } = yield* payments.begin({ org, amount: NanoUsd(20n * dollar) })
    const { id: session } = account.createSession({ payment: id, cents: 1999 })
    yield* deliver(account.complete(session))
    yield* topUp({ org, amount: NanoUsd(20n * dollar), ref: `stripe:${account.intentOf(session)}` })
    account.refund(account.intentOf(session), 1999)
    yield* Effect.flatMap(syncOf(given), ({ run }) => run(everything))
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "paid")
    assert.strictEqual((yield* state).balance, dollar / 100n)
  })

  it.effect("lifts a suspension that stands where disputes are ignored", function* () {
    const given = yield* paid()
    const { account, deliver, intent, session, state } = given
    account.dispute(intent, 1000)
    yield* Effect.forEach(account.events, deliver)
    assert.isTrue((yield* state).isDisputed)
    yield* Effect.flatMap(syncOf(given), ({ run }) => run(nothing))
    assert.isTrue((yield* state).isDisputed)
    // Of another account the provider tells nothing.
    account.sessions.delete(session)
    yield* Effect.flatMap(syncOf(given, false), ({ run }) => run(nothing))
    assert.isFalse((yield* state).isDisputed)
  })
})

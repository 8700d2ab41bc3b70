import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { Payments } from "../../src/services/payments/Payments.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import { Cli, failure, json, list } from "./Cli.ts"
import { customer, suite } from "./Operator.ts"

withLayer(suite)("gateway payments", (it) => {
  it.scoped("sync enters what no event told, list and show tell of it", function* () {
    const stripe = yield* FakeStripe.make
    const { org } = yield* customer("1")
    const { begin } = yield* Effect.provide(Payments, Layer.provide(Payments.layer, LedgerAdmin.layer))
    const { id } = yield* begin({ org: OrgId.make(org), amount: NanoUsd(20_000_000_000n) })
    const session = stripe.account.createSession({ payment: id, cents: 2000 })
    stripe.account.complete(session.id)
    const refund = stripe.account.refund(stripe.account.intentOf(session.id), 500)

    const { run } = yield* Cli
    const { code, stdout } = yield* run(["payments", "sync", "--json"], FakeStripe.environmentFor(stripe))
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(JSON.parse(stdout), { sessions: 1, reversals: 1, reconciled: 2, failed: 0, unreadable: 0 })
    const [listed] = yield* list("payments", "list", "--org", org)
    assert.deepInclude(listed, { id, status: "paid", amount_usd: 20, reversed_usd: 5 })
    const shown = yield* json("payments", "show", id)
    assert.deepInclude(shown["reversals"], {
      id: refund,
      kind: "refund",
      status: "succeeded",
      amount_usd: 5,
      taken_usd: 5,
      foreign_amount: null,
      created_at: stripe.account.refunds.get(refund)?.created
    })
    assert.strictEqual((yield* json("orgs", "show", org))["balance_usd"], 16)
    const { verify } = yield* Effect.provide(LedgerAdmin, LedgerAdmin.layer)
    assert.deepStrictEqual((yield* verify).violations, [])
  })

  it.scoped("reverse sets the USD amount of a refund in another currency", function* () {
    const stripe = yield* FakeStripe.make
    const { account } = stripe
    const env = FakeStripe.environmentFor(stripe)
    const { org } = yield* customer("1")
    const { run } = yield* Cli
    const { id: session } = account.createSession({ cents: 3000, currency: "jpy" })
    account.complete(session)
    const intent = account.intentOf(session)
    yield* run(["payments", "sync"], env)
    yield* json("credits", "add", org, "20", "--ref", `stripe:${intent}`)
    const [paid] = yield* list("payments", "list", "--org", org, "--status", "paid")
    const id = String(paid?.["id"])
    const refund = account.refund(intent, 1500, "succeeded", { currency: "jpy" })
    yield* run(["payments", "sync"], env)
    assert.strictEqual((yield* json("orgs", "show", org))["balance_usd"], 21)
    const reversed = yield* json("payments", "reverse", id, refund, "9.5")
    assert.deepInclude(reversed, { id, amount_usd: 20, reversed_usd: 9.5 })
    assert.strictEqual((yield* json("orgs", "show", org))["balance_usd"], 11.5)
    assert.strictEqual(
      yield* failure(["payments", "reverse", id, "re_none", "1"]),
      `The payment ${id} has no refund or dispute re_none in a currency other than USD.`
    )
    const { verify } = yield* Effect.provide(LedgerAdmin, LedgerAdmin.layer)
    assert.deepStrictEqual((yield* verify).violations, [])
  })

  it.scoped(
    "a disputed payment that is entered by hand suspends its organization as DISPUTE_POLICY says",
    function* () {
      const { run } = yield* Cli
      for (const [policy, isDisputed] of [
        ["ignore", false],
        ["suspend", true]
      ] as const) {
        const stripe = yield* FakeStripe.make
        const { account } = stripe
        const env = { ...FakeStripe.environmentFor(stripe), DISPUTE_POLICY: policy }
        const { org } = yield* customer("1")
        const { id: session } = account.createSession({ cents: 2000 })
        account.complete(session)
        account.dispute(account.intentOf(session), 2000)
        yield* run(["payments", "sync"], env)
        yield* run(["credits", "add", org, "20", "--ref", `stripe:${account.intentOf(session)}`], env)
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql`SELECT disputed_at IS NOT NULL AS is_disputed FROM organizations WHERE id = ${org}`
        assert.deepStrictEqual(row, { isDisputed }, policy)
      }
    }
  )

  it.scoped("sync continues after an object that it cannot read, and fails at the end", function* () {
    const stripe = yield* FakeStripe.make
    const { account } = stripe
    const { org } = yield* customer("1")
    const { begin } = yield* Effect.provide(Payments, Layer.provide(Payments.layer, LedgerAdmin.layer))
    const { id } = yield* begin({ org: OrgId.make(org), amount: NanoUsd(20_000_000_000n) })
    account.complete(account.createSession({ payment: id, cents: 2000 }).id)
    const odd = account.createSession({ cents: 500 })
    account.sessions.set(odd.id, { ...odd, amount_total: -500 })
    const { run } = yield* Cli
    const { code, stderr } = yield* run(["payments", "sync"], FakeStripe.environmentFor(stripe))
    assert.strictEqual(code, 1)
    assert.include(stderr, "1 object from Stripe could not be read.")
    assert.strictEqual((yield* json("orgs", "show", org))["balance_usd"], 21)
  })

  it.scoped("sync needs the settings of Stripe, and show a payment that there is", function* () {
    const message = "Payments are not set up: STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET are not set."
    assert.include(yield* failure(["payments", "sync"]), message)
    assert.strictEqual(yield* failure(["payments", "show", "pay_none"]), "There is no payment pay_none.")
  })
})

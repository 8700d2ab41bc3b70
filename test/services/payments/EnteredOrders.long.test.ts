import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { runs } from "../../harness/Cases.ts"
import { make, type Random } from "../../harness/fixtures/Random.ts"
import { assert, withLayer } from "../../harness/It.ts"
import type { StripeAccount } from "../../harness/stripe/StripeAccount.ts"
import { database, dollar, payer } from "./PaymentBench.ts"

/** 2,000 take some minutes. */
const count = runs(200)
const atOnce = 8

const cent = dollar / 100n
const paidCents = 2000

/** A payment that is refused: its session was not made here, its amount is wrong, or its organization was deleted. */
const refusedPayment = Effect.fnUntraced(function* (random: Random) {
  const sql = yield* SqlClient.SqlClient
  const given = yield* payer()
  const { account, begin, org } = given
  const cause = random.pick(["session", "amount", "organization"])
  const session =
    cause === "session"
      ? account.createSession({ cents: paidCents }).id
      : (yield* begin(cause === "amount" ? 10 : paidCents / 100)).session
  account.changeAmount(session, paidCents)
  if (cause === "organization") yield* sql`UPDATE organizations SET deleted_at = now() WHERE id = ${org}`
  return { ...given, cause, completed: account.complete(session), intent: account.intentOf(session) }
})

type Step = Effect.Effect<unknown>

const ends = ["open", "lost", "won"] as const

/** Two refunds, of which one may fail, and a dispute with its end. */
const reversalSteps = (account: StripeAccount, intent: string, random: Random, end: (typeof ends)[number]) => {
  const made = { refund: "", dispute: "" }
  const ofRefunds: Array<Step> = [
    Effect.sync(() => account.refund(intent, random.integer(1, 1200))),
    Effect.sync(() => (made.refund = account.refund(intent, random.integer(1, 1200), "pending"))),
    Effect.sync(() => account.updateRefund(made.refund, random.pick(["failed", "succeeded"])))
  ]
  const ofDispute: Array<Step> = [
    Effect.sync(() => (made.dispute = account.dispute(intent, random.integer(1, paidCents)))),
    Effect.sync(() => account.withdraw(made.dispute)),
    ...(end === "open" ? [] : [Effect.sync(() => account.close(made.dispute, end))]),
    ...(end === "won" ? [Effect.sync(() => account.reinstate(made.dispute))] : [])
  ]
  return { ofRefunds, ofDispute }
}

/** An operator enters the payment for another organization, twice, while refunds, the dispute and their events come. */
const runOne = Effect.fnUntraced(function* (seed: string) {
  const random = make(seed)
  const { account, cause, completed, deliver, intent, state } = yield* refusedPayment(random)
  const heir = yield* payer()
  const amount = NanoUsd(BigInt(random.pick([paidCents, paidCents, random.integer(1, 3000)])) * cent)
  const end = random.pick(ends)
  const { ofDispute, ofRefunds } = reversalSteps(account, intent, random, end)
  const enter: Step = Effect.orDie(heir.payments.enter({ org: heir.org, amount, ref: `stripe:${intent}` }))
  const entries = [enter, enter]
  const chains = [ofRefunds, ofDispute, entries] as const
  const deliverOne = Effect.suspend(() => deliver(random.pick([completed, ...account.events])))
  while (chains.some(({ length }) => length > 0)) {
    const step = random.pick(chains).shift() ?? Effect.void
    const delivery = random.chance(0.5) ? deliverOne : Effect.void
    yield* Effect.all([step, delivery], { concurrency: random.chance(0.3) ? 2 : 1, discard: true })
  }
  yield* Effect.forEach(random.shuffle(account.events), deliver, { discard: true })

  const reversals = yield* account.provider.reversals(intent)
  const reversed = reversals.reduce((sum, { amount: reversal = 0n }) => sum + reversal, 0n)
  const left = reversed < amount ? amount - reversed : 0n
  const isOpen = end === "open"
  const seen = { heir: yield* heir.state, former: yield* state }
  const message = `${seed}, refused for its ${cause}, ${end}`
  assert.deepInclude(seen.heir, { balance: left, isDisputed: isOpen }, message)
  assert.deepInclude(seen.former, { balance: 0n, isDisputed: false }, message)
})

withLayer(database)("a refused payment that an operator enters for another organization", (it) => {
  it.effect(
    "is that organization's alone, whatever the order of its refunds, its dispute, their events and the entry",
    function* () {
      const seeds = Array.from({ length: count }, (_, index) => `${process.env["PAYMENT_SEED"] ?? "entered"} ${index}`)
      yield* Effect.forEach(seeds, runOne, { concurrency: atOnce, discard: true })
      const { verify } = yield* LedgerAdmin
      assert.deepStrictEqual((yield* verify).violations, [])
    },
    300_000 + count * 500
  )
})

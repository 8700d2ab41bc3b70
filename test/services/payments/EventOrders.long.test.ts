import { Effect } from "effect"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { runs } from "../../harness/Cases.ts"
import { make, type Random } from "../../harness/fixtures/Random.ts"
import { assert, withLayer } from "../../harness/It.ts"
import type { StripeAccount } from "../../harness/stripe/StripeAccount.ts"
import { database, dollar, payer } from "./PaymentBench.ts"

/** 2,000 take some minutes. */
const count = runs(200)
const atOnce = 8

/** What becomes of the payment, in cents: 20 USD, of which two parts are refunded and all or some is disputed. */
interface Life {
  readonly refunds: readonly [number, number]
  readonly secondFails: boolean
  readonly disputed: number
  readonly end: "open" | "lost" | "won"
}

const lifeOf = (random: Random): Life => ({
  refunds: [random.integer(1, 1200), random.integer(1, 1200)],
  secondFails: random.chance(0.3),
  disputed: random.pick([2000, 2000, random.integer(1, 2000)]),
  end: random.pick(["open", "lost", "won"])
})

/** The steps of that life at the provider; those of refunds and of the dispute may come between each other. */
const stepsOf = (account: StripeAccount, session: string, { disputed, end, refunds, secondFails }: Life) => {
  const intent = () => account.intentOf(session)
  const made = { first: "", second: "", dispute: "" }
  const ofRefunds = [
    () => void (made.first = account.refund(intent(), refunds[0])),
    () => void (made.second = account.refund(intent(), refunds[1], "pending")),
    () => void account.updateRefund(made.second, secondFails ? "failed" : "succeeded")
  ]
  const ofDispute = [
    () => void (made.dispute = account.dispute(intent(), disputed)),
    () => void account.withdraw(made.dispute),
    ...(end === "open" ? [] : [() => void account.close(made.dispute, end)]),
    ...(end === "won" ? [() => void account.reinstate(made.dispute)] : [])
  ]
  const refunded = refunds[0] + (secondFails ? 0 : refunds[1])
  const taken = Math.min(2000, refunded + (end === "won" ? 0 : disputed))
  return { pay: () => account.complete(session), ofRefunds, ofDispute, left: BigInt(2000 - taken) * (dollar / 100n) }
}

/** Under each reference what the provider's last word comes to. */
const expectedOf = Effect.fnUntraced(function* (account: StripeAccount, session: string) {
  const intent = account.intentOf(session)
  const reversals = yield* account.provider.reversals(intent)
  const amount = 20n * dollar
  const expected = new Map([[intent, amount]])
  let left = amount
  for (const { amount: wanted = 0n, id } of reversals.toSorted(
    (a, b) => a.createdAt.getTime() - b.createdAt.getTime()
  )) {
    const share = wanted < left ? wanted : left
    left -= share
    if (share > 0n) expected.set(id, -share)
  }
  return expected
})

/** Deliveries come while the life goes on, twice, late and out of order; in the end each event has come. */
const runOne = Effect.fnUntraced(function* (seed: string) {
  const random = make(seed)
  const { account, begin, deliver, state } = yield* payer()
  const { session } = yield* begin(20)
  const life = lifeOf(random)
  const { left, ofDispute, ofRefunds, pay } = stepsOf(account, session, life)
  const paid = pay()
  while (ofRefunds.length + ofDispute.length > 0) {
    random.pick([ofRefunds, ofDispute]).shift()?.()
    if (random.chance(0.3)) yield* deliver(random.pick([paid, ...account.events]))
  }
  const repeated = account.events.filter(() => random.chance(0.3))
  const deliveries = random.shuffle([...account.events, ...repeated])
  if (random.chance(0.2)) yield* Effect.forEach(deliveries, deliver, { concurrency: 4, discard: true })
  else yield* Effect.forEach(deliveries, deliver, { discard: true })

  const { balance, entries, isDisputed } = yield* state
  const said = `${seed} ${JSON.stringify(life)}`
  assert.strictEqual(balance, left, said)
  assert.strictEqual(isDisputed, life.end === "open", said)
  assert.deepStrictEqual(entries, yield* expectedOf(account, session), said)
})

withLayer(database)("a payment with two partial refunds and a dispute", (it) => {
  it.effect(
    "comes to the same ledger whatever the order of its events and however often they come",
    function* () {
      const seeds = Array.from({ length: count }, (_, index) => `${process.env["PAYMENT_SEED"] ?? "orders"} ${index}`)
      yield* Effect.forEach(seeds, runOne, { concurrency: atOnce, discard: true })
      const { verify } = yield* LedgerAdmin
      assert.deepStrictEqual((yield* verify).violations, [])
    },
    300_000 + count * 500
  )
})

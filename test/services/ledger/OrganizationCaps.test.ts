import { Context, Effect, Layer } from "effect"
import type { CapPeriod } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { refundFailed } from "../../../src/services/ledger/Refunds.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { times, violatedBy } from "../../harness/database/Money.ts"
import { account, anotherProcess, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

/** An organization of a hundred USD with two keys. */
const customer = Effect.gen(function* () {
  const { admin, bench, ids, key, ledger, org, sql } = yield* account(100n * one)
  const { find, update } = yield* Organizations
  const other = yield* bench.organization(0n)
  yield* sql`UPDATE api_keys SET org_id = ${org} WHERE id = ${other.key}`
  const keys = [key, other.key] as const
  const charge = (amount: bigint, by: 0 | 1 = 0) =>
    Effect.flatMap(Holds.admit(ledger, { org, key: keys[by], upTo: NanoUsd(amount) }), (hold) =>
      Effect.as(ledger.settle(hold, NanoUsd(amount)), hold.id)
    )
  return {
    admin,
    bench,
    charge,
    ids,
    keys,
    ledger,
    org,
    sql,
    setCap: (amount: bigint, period?: CapPeriod) => update(org, { cap_usd: NanoUsd(amount), cap_period: period }),
    takeCap: update(org, { cap_usd: null, cap_period: null }),
    spent: Effect.map(Effect.orDie(find(OrganizationScope.all, org)), ({ cap_spent_usd }) => cap_spent_usd),
    /** As if all that was charged had been so before. */
    rollBack: (days: number) =>
      sql.withTransaction(
        Effect.all([
          sql`SET LOCAL session_replication_role = replica`,
          sql`UPDATE key_spend SET day = day - ${days}::integer WHERE key_id = ANY (${keys}::text[])`,
          sql`UPDATE ledger_entries SET at = at - ${days} * interval '1 day' WHERE org_id = ${org} AND kind = 'charge'`,
          sql`UPDATE organizations SET cap_since = cap_since - ${days}::integer WHERE id = ${org}`
        ])
      )
  }
})

const counted = "an organization's cap spend is the sum of its keys' spend since the period began"

withLayer(Layer.provideMerge(Organizations.layer, ledgers))("the spend under an organization's cap", (it) => {
  it.effect("is not counted without a cap, and with one is the charges of all keys, before and after", function* () {
    const { admin, bench, charge, setCap, spent, takeCap } = yield* customer
    yield* charge(1n)
    yield* charge(2n, 1)
    assert.isNull(yield* spent)
    for (const period of ["day", "week", "month", "total"] as const) {
      assert.deepInclude(yield* setCap(50n, period), { cap_usd: 50n, cap_period: period, cap_spent_usd: 3n })
    }
    yield* charge(4n)
    yield* charge(8n, 1)
    yield* charge(0n)
    assert.strictEqual(yield* spent, 15n)
    assert.strictEqual((yield* setCap(20n)).cap_spent_usd, 15n)
    assert.isTrue(yield* bench.proved)
    assert.deepInclude(yield* takeCap, { cap_usd: null, cap_period: null, cap_spent_usd: null, cap_resets_at: null })
    yield* charge(16n)
    assert.isNull(yield* spent)
    assert.strictEqual((yield* setCap(20n, "total")).cap_spent_usd, 31n)
    assert.deepStrictEqual((yield* admin.verify).violations, [])
  })

  it.effect("excludes payments, adjustments, open holds and released holds", function* () {
    const { admin, bench, keys, ledger, org, setCap, spent } = yield* customer
    yield* setCap(50n, "day")
    const hold = yield* Holds.admit(ledger, { org, key: keys[0], upTo: NanoUsd(9n) })
    yield* admin.topUp({ org, amount: NanoUsd(5n) })
    yield* admin.adjust({ org, amount: NanoUsd(-7n), note: "n", force: false })
    yield* Holds.release(ledger, hold)
    assert.strictEqual(yield* spent, 0n)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("counts a job's charge, and several of one batch", function* () {
    const { bench, ids, keys, ledger, org, setCap, spent, sql } = yield* customer
    yield* setCap(50n, "month")
    const job = { id: ids.uuid(), org, key: keys[1], amount: NanoUsd(7n) }
    yield* sql.withTransaction(ledger.job.hold(job))
    yield* sql.withTransaction(ledger.job.settle(job, NanoUsd(7n)))
    const holds = yield* Effect.forEach(times(30), (index) =>
      Holds.admit(ledger, { org, key: keys[index % 2 === 0 ? 0 : 1], upTo: NanoUsd(3n) })
    )
    yield* Effect.forEach(holds, (hold) => ledger.settle(hold, NanoUsd(2n)), { concurrency: "unbounded" })
    assert.strictEqual(yield* spent, 67n)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("restarts with the period, and counts a late charge in the previous one", function* () {
    const { bench, charge, org, rollBack, setCap, spent, sql } = yield* customer
    yield* setCap(50n, "day")
    yield* charge(5n)
    yield* rollBack(1)
    assert.strictEqual(yield* spent, 0n)
    assert.isTrue(yield* bench.proved)
    yield* charge(3n)
    assert.strictEqual(yield* spent, 3n)
    yield* sql`UPDATE organizations SET cap_since = cap_since + 1, cap_spent = 0 WHERE id = ${org}`
    yield* charge(4n, 1)
    assert.strictEqual(yield* spent, 0n)
    assert.isTrue(yield* bench.proved)
    assert.strictEqual((yield* setCap(50n, "total")).cap_spent_usd, 12n)
    yield* rollBack(400)
    yield* charge(1n)
    assert.strictEqual(yield* spent, 13n)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("decreases by full and partial refunds of charges in the period, and by no others", function* () {
    const { admin, bench, charge, rollBack, setCap, spent, sql } = yield* customer
    const before = yield* charge(2n)
    yield* setCap(50n, "day")
    yield* rollBack(1)
    const [failed, partly] = [yield* charge(5n), yield* charge(7n, 1)]
    assert.strictEqual(yield* spent, 12n)
    yield* refundFailed(sql, failed)
    assert.strictEqual(yield* spent, 7n)
    yield* admin.refund({ row: partly, hold: partly, amount: NanoUsd(3n), note: "n" })
    assert.strictEqual(yield* spent, 4n)
    assert.isTrue(yield* bench.proved)
    yield* refundFailed(sql, before)
    assert.strictEqual(yield* spent, 4n)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("counts all charges and refunds while a cap is set, changed and removed", function* () {
    const { admin, charge, setCap, takeCap } = yield* customer
    const traffic = Effect.forEach(
      times(120),
      (index) =>
        Effect.tap(charge(BigInt(1 + (index % 5)), index % 2 === 0 ? 0 : 1), (id) =>
          index % 7 === 0 ? admin.refund({ row: id, hold: id, amount: undefined, note: "n" }) : Effect.void
        ),
      { concurrency: 8 }
    )
    const changes = Effect.all([
      setCap(9_000n, "day"),
      takeCap,
      setCap(9_000n, "week"),
      setCap(8_000n),
      setCap(7_000n, "total"),
      takeCap
    ])
    yield* Effect.all([traffic, Effect.replicateEffect(changes, 5)], { concurrency: "unbounded" })
    const last = yield* setCap(9_000n, "month")
    const expected = times(120).reduce((sum, index) => sum + (index % 7 === 0 ? 0 : 1 + (index % 5)), 0)
    assert.strictEqual(last.cap_spent_usd, BigInt(expected))
    assert.deepStrictEqual((yield* admin.verify).violations, [])
  })

  it.effect("is verified, and corrected by setting the cap again", function* () {
    const { admin, charge, org, setCap, sql } = yield* customer
    yield* setCap(9n, "week")
    yield* charge(3n)
    const wrong = sql`UPDATE organizations SET cap_spent = cap_spent + 1 WHERE id = ${org}`
    assert.deepStrictEqual<unknown>(yield* violatedBy(wrong), [counted])
    yield* wrong
    assert.strictEqual((yield* setCap(9n)).cap_spent_usd, 3n)
    assert.deepStrictEqual((yield* admin.verify).violations, [])
  })
})

withLayer(Layer.provideMerge(Organizations.layer, ledgers))("an organization's cap", (it) => {
  /** The tag of what refuses a hold, and whose cap it is. */
  const refusal = <A, E extends { readonly _tag: string }, R>(hold: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.flip(hold), (failure) => ({
      _tag: failure._tag,
      ...("owner" in failure && { owner: failure.owner })
    }))
  const reached = { _tag: "SpendLimitReached", owner: "organization" }

  it.scoped("refuses the holds of all its keys once it is reached, in every process, and no others", function* () {
    const { bench, charge, ids, keys, ledger, org, rollBack, setCap, sql } = yield* customer
    const other = Context.get(yield* anotherProcess, Ledger)
    const admit = (by: 0 | 1, process = ledger) => Holds.admit(process, { org, key: keys[by], upTo: NanoUsd(1n) })
    const job = (by: 0 | 1) => ({ id: ids.uuid(), org, key: keys[by], amount: NanoUsd(1n) })
    const isReached = Effect.gen(function* () {
      for (const by of [0, 1] as const) {
        for (const process of [ledger, other]) assert.deepStrictEqual(yield* refusal(admit(by, process)), reached)
        assert.deepStrictEqual(yield* refusal(ledger.job.hold(job(by))), reached)
      }
    })
    yield* charge(5n)
    yield* setCap(12n, "week")
    yield* Holds.release(ledger, yield* admit(0))
    yield* Holds.release(other, yield* admit(1, other))
    yield* ledger.job.release(yield* ledger.job.hold(job(1)))
    const last = yield* charge(7n, 1)
    yield* isReached
    yield* bench.cap(keys[0], NanoUsd(0n), "day")
    assert.deepStrictEqual(yield* refusal(admit(0)), { ...reached, owner: "key" })
    yield* sql`UPDATE api_keys SET cap = NULL, cap_period = NULL WHERE id = ${keys[0]}`
    yield* setCap(13n)
    yield* admit(1, other)
    yield* setCap(12n)
    yield* isReached
    yield* refundFailed(sql, last)
    yield* admit(0)
    yield* charge(7n)
    yield* isReached
    yield* rollBack(7)
    yield* admit(1)
    const { org: elsewhere, key } = yield* bench.organization(one)
    yield* Holds.admit(ledger, { org: elsewhere, key, upTo: one })
  })

  it.effect("counts open jobs of all its keys from the start, and not what requests hold", function* () {
    const { bench, charge, ids, keys, ledger, org, setCap } = yield* customer
    const job = { id: ids.uuid(), org, key: keys[1], amount: NanoUsd(4n) }
    const admit = (upTo: bigint) => Holds.admit(ledger, { org, key: keys[0], upTo: NanoUsd(upTo) })
    yield* setCap(5n, "total")
    yield* charge(1n)
    const request = yield* admit(50n)
    yield* ledger.job.hold(job)
    assert.deepStrictEqual(yield* ledger.job.hold(job), job)
    assert.deepStrictEqual(yield* refusal(admit(1n)), reached)
    yield* ledger.job.release(job)
    yield* Holds.release(ledger, yield* admit(1n))
    yield* Holds.release(ledger, request)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("is checked after rate and key cap, before tokens, concurrency and balance", function* () {
    const { bench, keys, ledger, org, setCap } = yield* customer
    const [key] = keys
    const rateLimit = 9
    const tokens = { limit: 1, amount: 1 }
    yield* Holds.admit(ledger, { org, key, upTo: NanoUsd(1n), tokens })
    const full = {
      org,
      key,
      upTo: NanoUsd(1_000n * one),
      concurrency: 1,
      tokens
    }
    yield* setCap(0n, "day")
    assert.deepStrictEqual(yield* refusal(Holds.admit(ledger, { ...full, rateLimit })), reached)
    yield* bench.cap(key, NanoUsd(0n), "day")
    assert.deepStrictEqual(yield* refusal(Holds.admit(ledger, { ...full, rateLimit })), { ...reached, owner: "key" })
    assert.deepStrictEqual(yield* refusal(Holds.admit(ledger, { ...full, rateLimit: 1 })), {
      _tag: "RateLimited"
    })
    yield* bench.cap(key, NanoUsd(1n), "day")
    yield* setCap(1n)
    assert.deepStrictEqual(yield* refusal(Holds.admit(ledger, { ...full, rateLimit })), { _tag: "TokensLimited" })
  })
})

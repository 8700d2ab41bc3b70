import { Effect, Layer } from "effect"
import type { CapPeriod } from "../../../src/domain/ApiKey.ts"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import type { HoldRefused } from "../../../src/services/ledger/Ledger.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { account, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

const spendIn = (refused: HoldRefused) => (refused._tag === "SpendLimitReached" ? refused.spend : undefined)

withLayer(Layer.provideMerge(Organizations.layer, ledgers))("a cap that is reached", (it) => {
  it.effect.each(["day", "week", "month", "total"] as const)(
    "is told with what was spent, and when the %s ends",
    function* (period: CapPeriod) {
      const { bench, key, ledger, org, sql } = yield* account(100n * one)
      yield* bench.cap(key, 2n * one, period)
      const pay = Effect.scoped(
        Effect.flatMap(Holds.hold(ledger, { org, key, upTo: one }), (hold) => ledger.settle(hold, one))
      )
      yield* Effect.zipRight(pay, pay)
      const spend = spendIn(yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { org, key, upTo: one }))))
      const [{ ends } = { ends: null }] = yield* sql<{ readonly ends: Date | null }>`
        SELECT CASE WHEN ${period} <> 'total'
          THEN (cap_period_start(${period}) + ('1 ' || ${period})::interval) AT TIME ZONE 'UTC' END AS ends`
      assert.deepStrictEqual(spend, { cap: 2n * one, spent: 2n * one, held: 0n, resetsAt: ends ?? undefined })
      assert.strictEqual(ends === null, period === "total")
      if (ends !== null) assert.isAbove(ends.getTime(), Date.now())
    }
  )

  it.effect("of an organization has the same message", function* () {
    const { key, ledger, org } = yield* account(100n * one)
    const { update } = yield* Organizations
    yield* update(org, { cap_usd: NanoUsd(2n * one), cap_period: "total" })
    const { uuid } = yield* Ids
    const film = () => ledger.job.hold({ id: uuid(), org, key, amount: one })
    yield* film()
    const pay = Effect.flatMap(Holds.admit(ledger, { org, key, upTo: one }), (hold) => ledger.settle(hold, one))
    yield* pay
    const refused = [yield* Effect.flip(pay), yield* Effect.flip(film())]
    for (const failure of refused) {
      assert.deepInclude(failure, {
        _tag: "SpendLimitReached",
        owner: "organization",
        spend: { cap: NanoUsd(2n * one), spent: one, held: one, resetsAt: undefined }
      })
    }
  })

  it.effect("includes the holds of videos in its message, also for a video", function* () {
    const { bench, key, ledger, org } = yield* account(100n * one)
    const { uuid } = yield* Ids
    yield* bench.cap(key, 3n * one, "total")
    const job = () => ledger.job.hold({ id: uuid(), org, key, amount: one })
    yield* Effect.all([job(), job(), job()])
    const refused = [
      yield* Effect.flip(job()),
      yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { org, key, upTo: one })))
    ]
    for (const failure of refused) {
      assert.deepInclude(failure, {
        _tag: "SpendLimitReached",
        spend: { cap: NanoUsd(3n * one), spent: zero, held: NanoUsd(3n * one), resetsAt: undefined }
      })
    }
  })
})

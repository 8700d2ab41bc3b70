import { Effect, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { ReductionTerms } from "../../../src/services/ledger/HoldPlacement.ts"
import { Refunds } from "../../../src/services/ledger/Refunds.ts"
import { NoAnswer } from "../../../src/services/sql/Outage.ts"
import { losing } from "../../harness/database/LostStatements.ts"
import { eventually } from "../../harness/database/Money.ts"
import { account, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

/** The first statement that places a hold does not reach the database, and nobody knows. */
const losingOnce = losing("statement", "placed AS")

const fit: ReductionTerms = {
  price: { prompt: 0n, promptTokens: 100, outputToken: 1_000n * one, cap: 20_000 },
  waitMillis: 60_000,
  isAbandoned: () => false
}

withLayer(Layer.provideMerge(observedProcess(), losingOnce))("a hold with an unknown outcome", (it) => {
  it.effect("is not reduced under an id that is being released", function* () {
    const { bench, key, ledger, org } = yield* account(10n * one)
    const { pendingHolds } = yield* Refunds
    let isUsed = false
    const wanted = { org, key, upTo: NanoUsd(20n * one), reduction: fit }
    const work = ledger.withHold(wanted, (hold) => {
      isUsed = true
      // Long enough for the release to come through.
      return Effect.delay(ledger.settle(hold, one), "1 second")
    })
    const defect = yield* Effect.flip(Effect.sandbox(work))
    assert.deepInclude(defect, { _tag: "Die", defect: new NoAnswer() })
    assert.isFalse(isUsed)
    yield* eventually(pendingHolds, (pending) => pending.length === 0)
    assert.strictEqual(yield* bench.openHolds(org), 0)
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: 10n * one, held: 0n })
    assert.isTrue(yield* bench.proved)
  })
})

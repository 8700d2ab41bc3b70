import { Effect } from "effect"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { account, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { chargeOne } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"

withLayer(ledgers)("the references of entries", (it) => {
  it.effect("are unique", function* () {
    const { refund, topUp } = yield* LedgerAdmin
    const { bench, key, org } = yield* account(one)
    const payment = { org, amount: one, ref: `paid ${org}` }
    assert.isFalse((yield* topUp(payment)).replayed)
    assert.isTrue((yield* topUp(payment)).replayed)
    const { hold, requestId } = yield* chargeOne({ key, org }, 7n)
    yield* refund({ row: hold, hold, amount: undefined, note: requestId })
    yield* Effect.flip(refund({ row: hold, hold, amount: undefined, note: requestId }))
    assert.isTrue(yield* bench.proved)
  })
})

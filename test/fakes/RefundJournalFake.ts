import { Effect, Layer } from "effect"
import { type PendingRefund, RefundJournal } from "../../src/services/ledger/Refunds.ts"

/** A refund journal in memory. */
export const layer = Layer.sync(RefundJournal, () => {
  const kept = new Map<string, PendingRefund>()
  return RefundJournal.of({
    add: (entry) => Effect.sync(() => void kept.set(entry.hold, entry)),
    remove: (hold) => Effect.sync(() => void kept.delete(hold)),
    entries: Effect.sync(() => [...kept.values()])
  })
})

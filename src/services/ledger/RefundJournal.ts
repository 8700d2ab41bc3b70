import { Context, Data, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"

export const PendingRefund = Schema.Struct({
  hold: Schema.UUID,
  org: OrgId,
  key: KeyId,
  video: Schema.optional(Schema.String)
})
export type PendingRefund = typeof PendingRefund.Type

export class JournalFailed extends Data.TaggedError("JournalFailed")<{ readonly message: string }> {}

/** Survives the process while the database is out of reach. */
export class RefundJournal extends Context.Tag("gateway/RefundJournal")<
  RefundJournal,
  {
    /** Durable once this returns. */
    readonly add: (entry: PendingRefund) => Effect.Effect<void, JournalFailed>
    readonly remove: (hold: string) => Effect.Effect<void, JournalFailed>
    readonly entries: Effect.Effect<ReadonlyArray<PendingRefund>, JournalFailed>
  }
>() {
  /** For processes without a disk: a kill loses its entries. */
  static readonly layerMemory = Layer.sync(RefundJournal, () => {
    const kept = new Map<string, PendingRefund>()
    return RefundJournal.of({
      add: (entry) => Effect.sync(() => void kept.set(entry.hold, entry)),
      remove: (hold) => Effect.sync(() => void kept.delete(hold)),
      entries: Effect.sync(() => [...kept.values()])
    })
  })
}

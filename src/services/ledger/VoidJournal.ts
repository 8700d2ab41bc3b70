import { Context, Data, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { Hold } from "./Hold.ts"

/** What must not be paid for, because its customer was told that it failed. */
export const PendingVoid = Schema.Struct({
  hold: Schema.UUID,
  org: OrgId,
  key: KeyId,
  /** The job that the hold is for. */
  video: Schema.optional(Schema.String)
})
export type PendingVoid = typeof PendingVoid.Type

export const voidOf = ({ id, key, org }: Hold): PendingVoid => ({ hold: id, org, key })

export class JournalFailed extends Data.TaggedError("JournalFailed")<{ readonly message: string }> {}

/** Voids that outlive the process while the database cannot take them. */
export class VoidJournal extends Context.Tag("gateway/VoidJournal")<
  VoidJournal,
  {
    /** Durable once this returns. */
    readonly add: (entry: PendingVoid) => Effect.Effect<void, JournalFailed>
    /** Does nothing for a hold that has no entry. */
    readonly remove: (hold: string) => Effect.Effect<void, JournalFailed>
    /** Entries of this process and of those that died before they could be worked off. */
    readonly entries: Effect.Effect<ReadonlyArray<PendingVoid>, JournalFailed>
  }
>() {
  /** For processes without a disk of their own: a kill forgets it. */
  static readonly layerMemory = Layer.sync(VoidJournal, () => {
    const kept = new Map<string, PendingVoid>()
    return VoidJournal.of({
      add: (entry) => Effect.sync(() => void kept.set(entry.hold, entry)),
      remove: (hold) => Effect.sync(() => void kept.delete(hold)),
      entries: Effect.sync(() => [...kept.values()])
    })
  })
}

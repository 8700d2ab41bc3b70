import { Context, Effect, Layer } from "effect"
import { InFlight, type RunningRequest } from "../runtime/InFlight.ts"
import { RefundJournal } from "./RefundJournal.ts"
import { Refunds } from "./Refunds.ts"

/** What a process knows of open holds beyond the database; nothing by default. */
export class ProcessHolds extends Context.Reference<ProcessHolds>()("gateway/ProcessHolds", {
  defaultValue: (): {
    /** Those that this process runs. */
    readonly requests: () => ReadonlyArray<RunningRequest>
    /** Holds whose refund or release the database has not confirmed. */
    readonly refunds: Effect.Effect<ReadonlyArray<string>>
  } => ({ requests: () => [], refunds: Effect.succeed([]) })
}) {
  /** For a process that serves. */
  static readonly layer = Layer.effect(
    ProcessHolds,
    Effect.map(Effect.all([InFlight, Refunds]), ([{ requests }, { pendingHolds }]) => ({
      requests,
      refunds: pendingHolds
    }))
  )

  /** For a command, which carries out no refund: by the journal that it shares with a gateway. */
  static readonly layerJournal = Layer.effect(
    ProcessHolds,
    Effect.map(RefundJournal, ({ entries }) => ({
      requests: () => [],
      refunds: Effect.catchAll(
        Effect.map(entries, (pending) => pending.map(({ hold }) => hold)),
        ({ message }) => Effect.as(Effect.logWarning(`The journal of refunds cannot be read: ${message}`), [])
      )
    }))
  )
}

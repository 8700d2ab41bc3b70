import { SqlError } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import { isStatementTimeout } from "../sql/Outage.ts"

const readsAtOnce = 2
const longestWait = "10 seconds"

type Turn = <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const failWhereCut = Effect.catchSomeDefect((defect) =>
  defect instanceof SqlError.SqlError && isStatementTimeout(defect) ? Option.some(new GatewayBusy()) : Option.none()
)

/** One limit for all operators: customers' requests share the database and the event loop. */
export class ReadTurns extends Context.Tag("gateway/ReadTurns")<
  ReadTurns,
  {
    /** A read keeps its turn when its client leaves: the database goes on with it. */
    readonly take: Turn
    /** Fails where its turn does not come in time, and where the database's time limit cuts it. */
    readonly takeSoon: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>
    /** One page of all downloads at a time. */
    readonly download: Turn
  }
>() {
  static readonly layer = Layer.effect(
    ReadTurns,
    Effect.gen(function* () {
      const reads = yield* Effect.makeSemaphore(readsAtOnce)
      const downloads = yield* Effect.makeSemaphore(1)
      const take: Turn = (read) => reads.withPermits(1)(Effect.uninterruptible(read))
      return ReadTurns.of({
        take,
        takeSoon: (read) =>
          Effect.suspend(() => {
            let hasBegun = false
            const begin = Effect.sync(() => (hasBegun = true))
            const giveUp = Effect.suspend(() => (hasBegun ? Effect.never : new GatewayBusy()))
            return Effect.raceFirst(
              Effect.interruptible(take(Effect.zipRight(begin, failWhereCut(read)))),
              Effect.interruptible(Effect.delay(giveUp, longestWait))
            )
          }),
        download: downloads.withPermits(1)
      })
    })
  )
}

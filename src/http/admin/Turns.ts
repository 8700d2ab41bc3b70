import { Effect } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

/** Of all operators together, since customers' requests need the database too. */
const readsAtOnce = 2
const longestWait = "10 seconds"

const turns = Effect.unsafeMakeSemaphore(readsAtOnce)

/** A read keeps its turn when its client leaves: the database goes on with it. */
export const inTurn = <A, E, R>(read: Effect.Effect<A, E, R>) => turns.withPermits(1)(Effect.uninterruptible(read))

/** Fails where its turn does not come in time. */
export const inTurnSoon = <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E | GatewayBusy, R> =>
  Effect.suspend(() => {
    let hasBegun = false
    const begin = Effect.sync(() => (hasBegun = true))
    const giveUp = Effect.suspend(() => (hasBegun ? Effect.never : new GatewayBusy()))
    return Effect.raceFirst(
      Effect.interruptible(inTurn(Effect.zipRight(begin, read))),
      Effect.interruptible(Effect.delay(giveUp, longestWait))
    )
  })

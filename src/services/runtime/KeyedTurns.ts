import { Effect } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

/** Fails where too many of the key wait already. */
export type KeyedTurns = (
  key: string
) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>

/**
 * Runs at most `atOnce` per key, and up to `waiting` more in order of arrival: six counts of 20 MB at once slowed every
 * request, and a semaphore lets any number wait.
 */
export const makeKeyedTurns = (atOnce: number, waiting: number): KeyedTurns => {
  const turns = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()
  return (key) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | GatewayBusy, R> => {
        const turn = turns.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(atOnce), users: 0 }
        if (turn.users >= atOnce + waiting) return new GatewayBusy()
        turns.set(key, turn)
        turn.users += 1
        const leave = Effect.sync(() => {
          turn.users -= 1
          if (turn.users === 0) turns.delete(key)
        })
        return Effect.ensuring(turn.semaphore.withPermits(1)(effect), leave)
      })
}

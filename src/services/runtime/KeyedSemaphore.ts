import { Effect } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

type KeyedSemaphore = (key: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Fails with `GatewayBusy` if too many effects of the key are waiting. */
type BoundedKeyedSemaphore = (
  key: string
) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>

/** Makes a semaphore per key, and removes it when no effect of the key runs or waits any more. */
const makeSemaphores = (permits: number) => {
  const semaphores = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()
  const usersOf = (key: string): number => semaphores.get(key)?.users ?? 0
  const run = <A, E, R>(key: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const entry = semaphores.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(permits), users: 0 }
    semaphores.set(key, entry)
    entry.users += 1
    const leave = Effect.sync(() => {
      entry.users -= 1
      if (entry.users === 0) semaphores.delete(key)
    })
    return Effect.ensuring(entry.semaphore.withPermits(1)(effect), leave)
  }
  return { run, usersOf }
}

/**
 * Runs one effect per key at a time, and at most `total` in all. Transactions that wait for a key's lock thus occupy only
 * one connection.
 */
export const makeKeyedSemaphore = (total: number): Effect.Effect<KeyedSemaphore> =>
  Effect.map(Effect.makeSemaphore(total), (all): KeyedSemaphore => {
    const { run } = makeSemaphores(1)
    return (key) => (effect) => Effect.suspend(() => run(key, all.withPermits(1)(effect)))
  })

/**
 * Runs at most `maxRunning` effects per key; up to `maxWaiting` more wait in order of arrival. Both need limits, because six
 * concurrent token counts of 20 MB slowed every request.
 */
export const makeBoundedKeyedSemaphore = (maxRunning: number, maxWaiting: number): BoundedKeyedSemaphore => {
  const { run, usersOf } = makeSemaphores(maxRunning)
  return (key) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend(
        (): Effect.Effect<A, E | GatewayBusy, R> =>
          usersOf(key) >= maxRunning + maxWaiting ? new GatewayBusy() : run(key, effect)
      )
}

import { Effect } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

export type KeyedSemaphore = (key: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Fails where too many of the key wait already. */
type BoundedKeyedSemaphore = (
  key: string
) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>

/** A semaphore for each key, kept while effects of the key run or wait. */
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

/** At most `total` at a time, and one per key: transactions that wait for one organization's lock occupy one connection. */
export const makeKeyedSemaphore = (total: number): Effect.Effect<KeyedSemaphore> =>
  Effect.map(Effect.makeSemaphore(total), (all): KeyedSemaphore => {
    const { run } = makeSemaphores(1)
    return (key) => (effect) => Effect.suspend(() => run(key, all.withPermits(1)(effect)))
  })

/**
 * At most `atOnce` per key, and up to `waiting` more in order of arrival: six counts of 20 MB at once slowed every request,
 * and a semaphore lets any number wait.
 */
export const makeBoundedKeyedSemaphore = (atOnce: number, waiting: number): BoundedKeyedSemaphore => {
  const { run, usersOf } = makeSemaphores(atOnce)
  return (key) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend(
        (): Effect.Effect<A, E | GatewayBusy, R> =>
          usersOf(key) >= atOnce + waiting ? new GatewayBusy() : run(key, effect)
      )
}

import { Effect } from "effect"

/** At most so many at a time, and one per key. */
export type KeyedSemaphore = (key: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Transactions that wait for one organization's lock then occupy one connection. */
export const makeKeyedSemaphore = (atOnce: number): Effect.Effect<KeyedSemaphore> =>
  Effect.map(Effect.makeSemaphore(atOnce), (all): KeyedSemaphore => {
    const turns = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()
    return (key) => (effect) =>
      Effect.suspend(() => {
        const turn = turns.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 }
        turns.set(key, turn)
        turn.users += 1
        const release = Effect.sync(() => {
          turn.users -= 1
          if (turn.users === 0) turns.delete(key)
        })
        return effect.pipe(all.withPermits(1), turn.semaphore.withPermits(1), Effect.ensuring(release))
      })
  })

import { Effect } from "effect"

/** At most so many at a time, and one per key. */
export type Turns = (key: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Transactions that wait for one organization's lock then occupy one connection. */
export const makeTurns = (atOnce: number): Effect.Effect<Turns> =>
  Effect.map(Effect.makeSemaphore(atOnce), (all): Turns => {
    const owns = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()
    return (key) => (effect) =>
      Effect.suspend(() => {
        const own = owns.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 }
        owns.set(key, own)
        own.users += 1
        const leave = Effect.sync(() => {
          own.users -= 1
          if (own.users === 0) owns.delete(key)
        })
        return effect.pipe(all.withPermits(1), own.semaphore.withPermits(1), Effect.ensuring(leave))
      })
  })

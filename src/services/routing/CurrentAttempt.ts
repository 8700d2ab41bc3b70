import { Effect, FiberRef } from "effect"
import type { CurrentAttempt } from "./Provider.ts"

/** The attempt that the upstream client adds a request id to, and whose trace it passes on. */
export const currentAttempt = FiberRef.unsafeMake<CurrentAttempt | undefined>(undefined)

/** Without `Effect.locally`: nothing comes after but the next attempt. */
export const askAs = <A, E, R>(attempt: CurrentAttempt, ask: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(FiberRef.set(currentAttempt, attempt), ask)

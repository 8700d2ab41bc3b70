import { Effect, FiberRef } from "effect"
import type { Span } from "../telemetry/Tracing.ts"

export interface CurrentAttempt {
  readonly span: Span | undefined
  /** The provider's own, of its last response that had one. */
  providerRequestId: string | undefined
}

/** The attempt that the upstream client adds a request id to, and whose trace it passes on. */
export const currentAttempt = FiberRef.unsafeMake<CurrentAttempt | undefined>(undefined)

/** Only for a fiber of the attempt's own; without `Effect.locally`, since nothing comes after. */
export const askAs = <A, E, R>(attempt: CurrentAttempt, ask: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(FiberRef.set(currentAttempt, attempt), ask)

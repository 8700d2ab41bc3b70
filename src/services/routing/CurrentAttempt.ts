import { Effect, FiberRef } from "effect"
import type { Span } from "../telemetry/Tracing.ts"
import type { ProviderFailure } from "./Provider.ts"

export interface CurrentAttempt {
  readonly span: Span | undefined
  /** The provider's own, of its last response that had one. */
  providerRequestId: string | undefined
  /** Set at the deadline of an attempt that has no fiber of its own: upstream calls fail with it from then on. */
  abortedBy: ProviderFailure | undefined
  /** Ends the upstream call that it waits for. */
  onAbort: ((failure: ProviderFailure) => void) | undefined
}

/** The attempt that the upstream client adds a request id to, and whose trace it passes on. */
export const currentAttempt = FiberRef.unsafeMake<CurrentAttempt | undefined>(undefined)

/** Without `Effect.locally`: nothing comes after but the next attempt. */
export const askAs = <A, E, R>(attempt: CurrentAttempt, ask: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(FiberRef.set(currentAttempt, attempt), ask)

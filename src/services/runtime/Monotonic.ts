import { type Clock, Effect } from "effect"

/** Not for speed: `Clock.currentTimeMillis` jumps when the machine's time is set. */
export const millisOf = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

export const millis: Effect.Effect<number> = Effect.map(Effect.clock, millisOf)

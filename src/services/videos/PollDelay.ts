import { Effect, Random } from "effect"

/**
 * What is to become of a job after a step: nothing more, another look after so many milliseconds, or for so many
 * milliseconds none by this instance, since it cannot go on with it.
 */
export type Next = "over" | { readonly restMs: number } | { readonly leaveMs: number }

export const leave = { leaveMs: 60_000 }

const firstMs = 2_000
const longestMs = 10_000

/** From 2 s rising to 10 s with the times it was asked after, a little apart from the other jobs' rests. */
export const pollDelay = (asked: number): Effect.Effect<{ readonly restMs: number }> =>
  Effect.map(Random.nextRange(0.9, 1.1), (jitter) => ({
    restMs: Math.min(firstMs * 1.3 ** Math.max(0, asked - 2), longestMs) * jitter
  }))

const firstDownloadMs = 3_000

/** From 3 s to 4 times as long each time: what cannot be had may come back, and another render is paid for again. */
export const downloadDelay = (failed: number) => ({ restMs: firstDownloadMs * 4 ** Math.max(0, failed - 1) })

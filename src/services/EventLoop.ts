import { Effect } from "effect"

/** Lets pending I/O run; `Effect.yieldNow` alone only lets other fibers run. */
export const turn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

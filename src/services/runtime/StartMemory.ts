import { Effect } from "effect"

/**
 * Gives back some 50 MB of a start, before there are requests to wait for it: V8 keeps its young generation as large as the
 * start made it, and `gc()` leaves it so.
 */
export const giveBackStartMemory = Effect.gen(function* () {
  // Not every build of Node has it.
  const { Session } = yield* Effect.tryPromise(() => import("node:inspector"))
  yield* Effect.acquireUseRelease(
    Effect.try(() => {
      const session = new Session()
      session.connect()
      return session
    }),
    (session) => Effect.async<void>((resume) => session.post("HeapProfiler.collectGarbage", () => resume(Effect.void))),
    (session) => Effect.sync(() => session.disconnect())
  )
}).pipe(Effect.timeout("10 seconds"), Effect.ignore)

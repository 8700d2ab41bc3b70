import { Session } from "node:inspector"
import { performance } from "node:perf_hooks"
import { Effect } from "effect"

const quietSeconds = 5
const quietShare = 0.05

const collect = Effect.acquireUseRelease(
  Effect.sync(() => {
    const session = new Session()
    session.connect()
    return session
  }),
  (session) => Effect.async<void>((resume) => session.post("HeapProfiler.collectGarbage", () => resume(Effect.void))),
  (session) => Effect.sync(() => session.disconnect())
)

/**
 * Gives back some 60 MB once nothing has happened for a while: V8 keeps its young generation as large as a start made it,
 * and `gc()` leaves it so.
 */
export const giveBackStartMemory = Effect.suspend(() => {
  let before = performance.eventLoopUtilization()
  const isQuiet = Effect.sync(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization < quietShare
  })
  return isQuiet.pipe(
    Effect.delay(`${quietSeconds} seconds`),
    Effect.repeat({ until: (quiet) => quiet }),
    Effect.zipRight(collect)
  )
})

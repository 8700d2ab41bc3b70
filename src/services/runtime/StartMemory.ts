import { Effect } from "effect"

const lookSeconds = 5
const maxLooks = 24
/** Of a core: heartbeats and chores take half of it. A waiting event loop is no measure where others use the cores. */
const quietShare = 0.05
/** What a start leaves alive is a third of it; more would take long to go through. */
const maxHeapBytes = 100 * 1024 * 1024

const collect = Effect.gen(function* () {
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

/**
 * Gives back some 60 MB of a start in the first two minutes, at a moment when nothing happens: V8 keeps its young generation
 * as large as a start made it, and `gc()` leaves it so.
 */
export const giveBackStartMemory = Effect.suspend(() => {
  let before = process.cpuUsage()
  let looks = 0
  const look = Effect.sync(() => {
    const { system, user } = process.cpuUsage(before)
    before = process.cpuUsage()
    looks += 1
    const share = (system + user) / (lookSeconds * 1_000_000)
    return share < quietShare && process.memoryUsage().heapUsed < maxHeapBytes
  })
  return look.pipe(
    Effect.delay(`${lookSeconds} seconds`),
    Effect.repeat({ until: (isQuiet) => isQuiet || looks === maxLooks }),
    Effect.flatMap((isQuiet) => (isQuiet ? collect : Effect.void))
  )
})

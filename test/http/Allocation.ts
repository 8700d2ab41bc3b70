import { type HeapProfiler, Session } from "node:inspector/promises"
import { Effect } from "effect"

/** In bytes between two samples: a request allocates some hundred times as much. */
const samplingInterval = 512

const ofProgram = /\/src\/|\/node_modules\//
const ofTest = /\/test\//

/** Bytes whose stack leads through the gateway's code or its libraries, and not through a test's. */
const sum = (
  { callFrame: { url }, children, selfSize }: HeapProfiler.SamplingHeapProfileNode,
  isCounted: boolean
): number => {
  if (ofTest.test(url)) return 0
  const counts = isCounted || ofProgram.test(url)
  return children.reduce((total, child) => total + sum(child, counts), counts ? selfSize : 0)
}

/** Bytes that the program allocates meanwhile, dead or alive, by V8's samples: some per cent off the truth. */
export const allocatedBytes = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const session = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const made = new Session()
      made.connect()
      return made
    }),
    (made) => Effect.sync(() => made.disconnect())
  )
  const collected = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }
  yield* Effect.promise(() => session.post("HeapProfiler.startSampling", { samplingInterval, ...collected }))
  yield* work
  const { profile } = yield* Effect.promise(() => session.post("HeapProfiler.stopSampling"))
  return sum(profile.head, false)
}, Effect.scoped)

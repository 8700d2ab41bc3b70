import { getHeapStatistics } from "node:v8"
import { Effect, Layer } from "effect"
import * as Metrics from "./Metrics.ts"

const sampleMillis = 100

/** A timer of Node's own, because a fiber would be late for other reasons too. */
const sampleEventLoop = Effect.acquireRelease(
  Effect.sync(() => {
    let due = performance.now() + sampleMillis
    return setInterval(() => {
      const now = performance.now()
      Metrics.eventLoopDelay.unsafeUpdate(Math.max(0, now - due) / 1000, [])
      due = now + sampleMillis
    }, sampleMillis).unref()
  }),
  (timer) => Effect.sync(() => clearInterval(timer))
)

const publishMemory = (): void => {
  Metrics.residentMemory.unsafeUpdate(process.memoryUsage.rss(), [])
  Metrics.heapUsed.unsafeUpdate(getHeapStatistics().used_heap_size, [])
}

export const layer = ({ version }: { readonly version: string }) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      Metrics.startTime.unsafeUpdate(performance.timeOrigin / 1000, [])
      const commit = process.env.GATEWAY_COMMIT ?? ""
      Metrics.unsafeUpdate(Metrics.buildInfo, 1, { version, node: process.version, commit })
      yield* Metrics.collect(publishMemory)
      yield* sampleEventLoop
    })
  )

import { Duration, Effect } from "effect"

/** Lets pending I/O run; `Effect.yieldNow` only lets other fibers run. */
export const yieldTurn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** Slices of a silence limit: a stalled event loop lets at most one of them pass. */
export const partsOfLimit = 16

/** As long as the event loop is on time; what each part of the limit is late by comes on top. */
export const sleepUnlessStalled = (limit: Duration.DurationInput): Effect.Effect<void> =>
  Effect.repeatN(Effect.sleep(Duration.times(limit, 1 / partsOfLimit)), partsOfLimit - 1)

/** Yields at least once a millisecond: parsed in one go, a body of 27 MB held the event loop for 11 s. */
export type Steps<A> = Generator<void, A>

const sliceMillis = 4

const waiting = new Set<() => void>()
let isScheduled = false

/** One slice per turn over all requests, so that parallel ones do not add up to a long wait. */
const runNext = () => {
  const [slice] = waiting
  isScheduled = slice !== undefined
  if (slice === undefined) return
  waiting.delete(slice)
  slice()
  setImmediate(runNext)
}

const enqueue = (slice: () => void) => {
  waiting.add(slice)
  if (isScheduled) return
  isScheduled = true
  setImmediate(runNext)
}

export const awaitSlice = Effect.async<void>((resume) => {
  const run = () => resume(Effect.void)
  enqueue(run)
  return Effect.sync(() => waiting.delete(run))
})

export const runInSlices = <A>(steps: Steps<A>): Effect.Effect<A> =>
  Effect.async((resume) => {
    const run = () => {
      const end = performance.now() + sliceMillis
      try {
        do {
          const step = steps.next()
          if (step.done === true) return resume(Effect.succeed(step.value))
        } while (performance.now() < end)
        enqueue(run)
      } catch (defect) {
        resume(Effect.die(defect))
      }
    }
    enqueue(run)
    return Effect.sync(() => waiting.delete(run))
  })

export const runAtOnce = <A>(steps: Steps<A>): A => {
  while (true) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

export const run = <A>(steps: Steps<A>, isLarge: boolean | undefined): Effect.Effect<A> =>
  isLarge === true ? runInSlices(steps) : Effect.sync(() => runAtOnce(steps))

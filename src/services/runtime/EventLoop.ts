import { Duration, Effect } from "effect"

/** Lets pending I/O run; `Effect.yieldNow` only lets other fibers run. */
export const yieldTurn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** A silence limit is slept in this many parts, so a stall of the event loop uses up at most one of them. */
export const partsOfLimit = 16

/** Sleeps for the limit, and longer if the event loop stalls meanwhile. */
export const sleepUnlessStalled = (limit: Duration.DurationInput): Effect.Effect<void> =>
  Effect.repeatN(Effect.sleep(Duration.times(limit, 1 / partsOfLimit)), partsOfLimit - 1)

/**
 * A computation that yields at least once a millisecond, so it can run in slices: parsing a body of 27 MB in one step
 * blocked the event loop for 11 s.
 */
export type Steps<A> = Generator<void, A>

const sliceMillis = 4

const waitingSlices = new Set<() => void>()
let isScheduled = false

/**
 * Runs one slice per turn of the event loop, over all requests. Otherwise the slices of concurrent requests would add up to
 * a long block.
 */
const runNext = () => {
  const [slice] = waitingSlices
  isScheduled = slice !== undefined
  if (slice === undefined) return
  waitingSlices.delete(slice)
  slice()
  setImmediate(runNext)
}

const enqueue = (slice: () => void) => {
  waitingSlices.add(slice)
  if (isScheduled) return
  isScheduled = true
  setImmediate(runNext)
}

export const awaitSlice = Effect.async<void>((resume) => {
  const run = () => resume(Effect.void)
  enqueue(run)
  return Effect.sync(() => waitingSlices.delete(run))
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
    return Effect.sync(() => waitingSlices.delete(run))
  })

export const runAtOnce = <A>(steps: Steps<A>): A => {
  while (true) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

export const run = <A>(steps: Steps<A>, isLarge: boolean | undefined): Effect.Effect<A> =>
  isLarge === true ? runInSlices(steps) : Effect.sync(() => runAtOnce(steps))

const everyMillis = 60_000

/** Allows one log line per minute. */
export class LogLimit {
  #loggedAt = Number.NEGATIVE_INFINITY
  #omitted = 0

  /** Returns the number of omitted lines, or undefined if this line must be omitted too. */
  enter(now: number): number | undefined {
    if (now - this.#loggedAt < everyMillis) {
      this.#omitted += 1
      return undefined
    }
    const omitted = this.#omitted
    this.#loggedAt = now
    this.#omitted = 0
    return omitted
  }
}

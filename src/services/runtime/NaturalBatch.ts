import { Array as Arr, Cause, Duration, Effect, Exit, Option, type Scope } from "effect"
import { always } from "./Always.ts"
import * as EventLoop from "./EventLoop.ts"
import { type Listed, Roster } from "./Roster.ts"

const tickMillis = 250
/** How much longer than its patience an item waits for a statement that is on its way. */
const graceTicks = 2
/** One batch runs at a time, for it is the larger then; others start beside one that takes this long. */
const slowTicks = 2
const mostAtOnce = 3

export interface Options<Item, Result, E, R, Late> {
  readonly maxSize: number
  /** Answers every item in order, and is safe to repeat. */
  readonly run: (items: Arr.NonEmptyReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E, R>
  /** How long a submitter waits, to the second, and what it fails with then. */
  readonly patience?:
    | { readonly duration: Duration.DurationInput; readonly late: (mayHaveRun: boolean) => Late }
    | undefined
  /** Whether a failure is no single item's fault: then the batch is repeated once as it is. */
  readonly isShared?: ((error: E) => boolean) | undefined
  /** Items that wait for one lock, so that the others need not wait with them. */
  readonly lanes?:
    | {
        readonly laneOf: (item: Item) => string
        /** Whether a run was given up, without effect, because a lock of some item was taken. */
        readonly isBlocked: (error: E) => boolean
        /** How many lanes may wait for their locks at a time. */
        readonly permits: Effect.Semaphore
      }
    | undefined
}

/**
 * Turns one-at-a-time calls into batches, at the delay of one turn of the event loop: a batch is whatever queued up
 * while the last one ran. One that takes long holds up nobody: the next one then starts beside it. After a failure each item of the batch runs once more by itself, so that one bad item
 * cannot fail its neighbours. After a run that was blocked each lane goes on by itself, and is passed over until it
 * got through.
 *
 * An item that was submitted runs even if its submitter is interrupted while waiting. One whose submitter lost
 * patience is passed over if its turn had not come; else it may yet have run.
 */
export const make = <Item, Result, E, R, Late = never>(
  options: Options<Item, Result, E, R, Late>
): Effect.Effect<(item: Item) => Effect.Effect<Result, E | Late>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    interface Pending extends Listed {
      readonly item: Item
      readonly resume: (outcome: Exit.Exit<Result, E | Late>) => void
      readonly since: number
      isRunning: boolean
      /** It was part of a run that failed, which may have done it all the same. */
      hasFailed: boolean
    }
    type Batch = ReadonlyArray<Pending>

    const { lanes, patience } = options
    const scope = yield* Effect.scope
    let queue: Array<Pending> = []
    /** Workers that wait for a batch. */
    const idle: Array<(batch: Batch) => void> = []
    let newest: { readonly since: number } | undefined
    let isGathering = false
    const waiting = new Roster<Pending>()
    const blocked = new Map<string, Array<Pending>>()
    // One clock for all that wait: a timer for each would cost more than the batching saves.
    let ticks = 0
    const longest = patience === undefined ? Infinity : Duration.toMillis(patience.duration) / tickMillis

    const end = (pending: Pending, outcome: Exit.Exit<Result, E | Late>): void => {
      if (waiting.delete(pending)) pending.resume(outcome)
    }

    const answer = (batch: Batch, results: ReadonlyArray<Result>): void =>
      batch.forEach((pending, index) => {
        const result = results[index]
        end(
          pending,
          result === undefined ? Exit.die(new Error("a batch left an item unanswered")) : Exit.succeed(result)
        )
      })

    const failLate = (candidates: Iterable<Pending>): void => {
      if (patience === undefined) return
      for (const pending of candidates) {
        if (ticks - pending.since <= longest + (pending.isRunning ? graceTicks : 0)) continue
        end(pending, Exit.fail(patience.late(pending.isRunning || pending.hasFailed)))
      }
    }

    const failsWith = (cause: Cause.Cause<E>, is: ((error: E) => boolean) | undefined) =>
      is !== undefined && Option.exists(Cause.failureOption(cause), is)

    const run = (batch: Batch, isRepeated: boolean, onBlocked: (batch: Batch) => Effect.Effect<void, never, R>) =>
      Effect.suspend((): Effect.Effect<void, never, R> => {
        const wanted = batch.filter((pending) => waiting.has(pending))
        if (!Arr.isNonEmptyArray(wanted)) return Effect.void
        for (const pending of wanted) pending.isRunning = true
        return Effect.matchCauseEffect(
          Effect.suspend(() => options.run(Arr.map(wanted, ({ item }) => item))),
          {
            onSuccess: (results) => {
              answer(wanted, results)
              return Effect.void
            },
            onFailure: (cause): Effect.Effect<void, never, R> => {
              for (const pending of wanted) pending.isRunning = false
              if (failsWith(cause, lanes?.isBlocked)) return onBlocked(wanted)
              for (const pending of wanted) pending.hasFailed = true
              const isShared = failsWith(cause, options.isShared)
              if (isRepeated || (wanted.length === 1 && !isShared)) {
                for (const pending of wanted) end(pending, Exit.failCause(cause))
                return Effect.void
              }
              if (isShared) return run(wanted, true, onBlocked)
              return Effect.forEach(wanted, (pending) => run([pending], true, onBlocked), { discard: true })
            }
          }
        )
      })

    const goOn = (lane: string, items: Array<Pending>, permits: Effect.Semaphore) => {
      const attempt = Effect.suspend(() => {
        failLate(items)
        return run(items.splice(0, options.maxSize), false, (again) => Effect.sync(() => items.unshift(...again)))
      })
      return attempt.pipe(
        Effect.uninterruptible,
        permits.withPermits(1),
        // Those that wait for the permit take it once they run, which must be before this one does again.
        Effect.zipRight(EventLoop.turn),
        Effect.map(() => items.length === 0 && blocked.delete(lane)),
        Effect.repeat({ until: (isDone) => isDone }),
        Effect.interruptible,
        Effect.forkIn(scope)
      )
    }

    /** Leaves to their lanes what belongs to one that is blocked, and returns the rest. */
    const passOver = (batch: Batch) =>
      blocked.size === 0 || lanes === undefined
        ? batch
        : batch.filter((pending) => blocked.get(lanes.laneOf(pending.item))?.push(pending) === undefined)

    const split = (batch: Batch) =>
      Effect.suspend(() => {
        if (lanes === undefined) return Effect.void
        const groups = Arr.groupBy(passOver(batch), ({ item }) => lanes.laneOf(item))
        return Effect.forEach(
          Object.entries(groups),
          ([lane, items]) => {
            const queued = [...items]
            blocked.set(lane, queued)
            return goOn(lane, queued, lanes.permits)
          },
          { discard: true }
        )
      })

    const take = () => {
      const batch = queue.length > options.maxSize ? queue.splice(0, options.maxSize) : queue
      if (batch === queue) queue = []
      return batch
    }
    /** Starts a batch of what comes in the same turn, unless one runs that will soon be done. */
    const gather = () => {
      if (isGathering || queue.length === 0 || idle.length === 0) return
      if (newest !== undefined && ticks - newest.since < slowTicks) return
      isGathering = true
      setImmediate(() => {
        isGathering = false
        idle.shift()?.(take())
      })
    }
    const arrival = Effect.async<Batch>((resume) => {
      idle.push((batch) => resume(Effect.succeed(batch)))
      gather()
    })
    const work = (batch: Batch) =>
      Effect.suspend(() => {
        const one = { since: ticks }
        newest = one
        return always(run(passOver(batch), false, split), () => {
          if (newest === one) newest = undefined
        })
      })
    const worker = Effect.interruptible(arrival).pipe(Effect.flatMap(work), Effect.forever, Effect.uninterruptible)
    for (let n = 0; n < mostAtOnce; n += 1) yield* Effect.forkScoped(worker)

    if (patience !== undefined) {
      const tick = Effect.sync(() => {
        ticks += 1
        failLate(waiting)
        gather()
      })
      yield* Effect.zipRight(Effect.sleep(tickMillis), tick).pipe(Effect.forever, Effect.forkScoped)
    }

    return (item) =>
      Effect.async((resume) => {
        const pending = { item, resume, since: ticks, isRunning: false, hasFailed: false, index: -1 }
        waiting.add(pending)
        queue.push(pending)
        gather()
      })
  })

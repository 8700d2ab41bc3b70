import { Array as Arr, Cause, Deferred, Duration, Effect, Exit, Option, Queue, Schedule, type Scope } from "effect"
import * as EventLoop from "./EventLoop.ts"

const tickMillis = 250
/** How much longer than its patience an item waits for a statement that is on its way. */
const graceTicks = 2

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
 * Turns one-at-a-time calls into batches, at the delay of one turn of the event loop: a worker takes whatever queued
 * up while its last batch ran. After a failure each item of the batch runs once more by itself, so that one bad item
 * cannot fail its neighbours. After a run that was blocked each lane goes on by itself, and is passed over by the
 * worker until it got through.
 *
 * An item that was submitted runs even if its submitter is interrupted while waiting. One whose submitter lost
 * patience is passed over if its turn had not come; else it may yet have run.
 */
export const make = <Item, Result, E, R, Late = never>(
  options: Options<Item, Result, E, R, Late>
): Effect.Effect<(item: Item) => Effect.Effect<Result, E | Late>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    interface Pending {
      readonly item: Item
      readonly done: Deferred.Deferred<Result, E | Late>
      readonly since: number
      isRunning: boolean
      /** It was part of a run that failed, which may have done it all the same. */
      hasFailed: boolean
    }
    type Batch = ReadonlyArray<Pending>

    const { lanes, patience } = options
    const scope = yield* Effect.scope
    const queue = yield* Queue.unbounded<Pending>()
    const waiting = new Set<Pending>()
    const blocked = new Map<string, Array<Pending>>()
    // One clock for all that wait: a timer for each would cost more than the batching saves.
    let ticks = 0
    const longest = patience === undefined ? Infinity : Duration.toMillis(patience.duration) / tickMillis

    const end = (pending: Pending, outcome: Exit.Exit<Result, E | Late>) =>
      Effect.suspend(() => {
        waiting.delete(pending)
        return Deferred.done(pending.done, outcome)
      })

    const answer = (pending: Pending, result: Result | undefined) =>
      end(pending, result === undefined ? Exit.die(new Error("a batch left an item unanswered")) : Exit.succeed(result))

    const failLate = (candidates: Iterable<Pending>) => {
      if (patience === undefined) return Effect.void
      const late = [...candidates].filter(
        ({ isRunning, since }) => ticks - since > longest + (isRunning ? graceTicks : 0)
      )
      return Effect.forEach(
        late,
        (pending) => end(pending, Exit.fail(patience.late(pending.isRunning || pending.hasFailed))),
        {
          discard: true
        }
      )
    }

    const failsWith = (cause: Cause.Cause<E>, is: ((error: E) => boolean) | undefined) =>
      is !== undefined && Option.exists(Cause.failureOption(cause), is)

    const run = (batch: Batch, isRepeated: boolean, onBlocked: (batch: Batch) => Effect.Effect<void, never, R>) =>
      Effect.suspend((): Effect.Effect<void, never, R> => {
        const wanted = batch.filter((pending) => waiting.has(pending))
        if (!Arr.isNonEmptyArray(wanted)) return Effect.void
        for (const pending of wanted) pending.isRunning = true
        return Effect.matchCauseEffect(options.run(Arr.map(wanted, ({ item }) => item)), {
          onSuccess: (results) =>
            Effect.forEach(wanted, (pending, index) => answer(pending, results[index]), { discard: true }),
          onFailure: (cause): Effect.Effect<void, never, R> => {
            for (const pending of wanted) pending.isRunning = false
            if (failsWith(cause, lanes?.isBlocked)) return onBlocked(wanted)
            for (const pending of wanted) pending.hasFailed = true
            const isShared = failsWith(cause, options.isShared)
            if (isRepeated || (wanted.length === 1 && !isShared)) {
              return Effect.forEach(wanted, (pending) => end(pending, Exit.failCause(cause)), { discard: true })
            }
            if (isShared) return run(wanted, true, onBlocked)
            return Effect.forEach(wanted, (pending) => run([pending], true, onBlocked), { discard: true })
          }
        })
      })

    const goOn = (lane: string, items: Array<Pending>, permits: Effect.Semaphore) => {
      const attempt = Effect.suspend(() =>
        run(items.splice(0, options.maxSize), false, (again) => Effect.sync(() => items.unshift(...again)))
      )
      return Effect.suspend(() => failLate(items)).pipe(
        Effect.zipRight(attempt),
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

    yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const first = yield* restore(Queue.take(queue))
        // What came in together is asked together, also when nothing was running.
        yield* EventLoop.turn
        const rest = yield* Queue.takeUpTo(queue, options.maxSize - 1)
        yield* run(passOver([first, ...rest]), false, split)
      })
    ).pipe(Effect.forever, Effect.forkScoped)

    if (patience !== undefined) {
      const tick = Effect.suspend(() => {
        ticks += 1
        return failLate(waiting)
      })
      yield* tick.pipe(Effect.schedule(Schedule.spaced(tickMillis)), Effect.forkScoped)
    }

    return (item) =>
      Effect.flatMap(Deferred.make<Result, E | Late>(), (done) => {
        const pending = { item, done, since: ticks, isRunning: false, hasFailed: false }
        waiting.add(pending)
        return Effect.zipRight(Queue.offer(queue, pending), Deferred.await(done))
      })
  })

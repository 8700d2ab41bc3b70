import { Array as Arr, Deferred, Effect, Exit, Queue, Schedule, type Scope } from "effect"
import * as EventLoop from "./EventLoop.ts"

/**
 * Turns one-at-a-time calls into batches, at the delay of one turn of the event loop: a worker takes whatever queued
 * up while its last batch ran. `run` must answer every item in order and be safe to repeat, because after a failure
 * each item of the batch runs once more by itself, so that one bad item cannot fail its neighbours.
 *
 * An item that was submitted runs even if its submitter is interrupted while waiting. One whose submitter lost
 * patience is passed over if its turn had not come; else it may yet have run.
 */
export const make = <Item, Result, E, R, Late = never>(options: {
  readonly maxSize: number
  readonly run: (items: Arr.NonEmptyReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E, R>
  /** How long a submitter waits, to the second, and what it is told then. */
  readonly patience?: { readonly seconds: number; readonly late: () => Late } | undefined
}): Effect.Effect<(item: Item) => Effect.Effect<Result, E | Late>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    interface Pending {
      readonly item: Item
      readonly done: Deferred.Deferred<Result, E | Late>
      readonly since: number
    }
    const queue = yield* Queue.unbounded<Pending>()
    const waiting = new Set<Pending>()
    // One clock for all that wait: a timer for each would cost more than the batching saves.
    let seconds = 0

    const end = (pending: Pending, outcome: Exit.Exit<Result, E | Late>) =>
      Effect.suspend(() => {
        waiting.delete(pending)
        return Deferred.done(pending.done, outcome)
      })

    const answer = (pending: Pending, result: Result | undefined) =>
      end(pending, result === undefined ? Exit.die(new Error("a batch left an item unanswered")) : Exit.succeed(result))

    const runOne = (pending: Pending) =>
      options.run([pending.item]).pipe(
        Effect.flatMap((results) => answer(pending, results[0])),
        Effect.catchAllCause((cause) => end(pending, Exit.failCause(cause)))
      )

    const runBatch = Effect.fnUntraced(function* (batch: Arr.NonEmptyReadonlyArray<Pending>) {
      if (batch.length === 1) return yield* runOne(batch[0])
      const [first, ...rest] = batch
      const exit = yield* Effect.exit(options.run([first.item, ...rest.map(({ item }) => item)]))
      return yield* Effect.forEach(
        batch,
        (pending, index) =>
          Exit.isSuccess(exit)
            ? answer(pending, exit.value[index])
            : Effect.suspend(() => (waiting.has(pending) ? runOne(pending) : Effect.void)),
        { discard: true }
      )
    })

    yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const first = yield* restore(Queue.take(queue))
        // What came in together is asked together, also when nothing was running.
        yield* EventLoop.turn
        const rest = yield* Queue.takeUpTo(queue, options.maxSize - 1)
        const batch = [first, ...rest].filter((pending) => waiting.has(pending))
        if (Arr.isNonEmptyReadonlyArray(batch)) yield* runBatch(batch)
      })
    ).pipe(Effect.forever, Effect.forkScoped)

    const { patience } = options
    if (patience !== undefined) {
      const second = Effect.suspend(() => {
        seconds += 1
        const late = [...waiting].filter(({ since }) => seconds - since > patience.seconds)
        return Effect.forEach(late, (pending) => end(pending, Exit.fail(patience.late())), { discard: true })
      })
      yield* second.pipe(Effect.schedule(Schedule.spaced("1 second")), Effect.forkScoped)
    }

    return (item) =>
      Effect.flatMap(Deferred.make<Result, E | Late>(), (done) => {
        const pending = { item, done, since: seconds }
        waiting.add(pending)
        return Effect.zipRight(Queue.offer(queue, pending), Deferred.await(done))
      })
  })

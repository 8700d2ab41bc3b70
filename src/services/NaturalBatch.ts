import { type Array as Arr, Deferred, Effect, Exit, Queue, type Scope } from "effect"

const isNonEmpty = <A>(items: ReadonlyArray<A>): items is Arr.NonEmptyReadonlyArray<A> => items.length > 0

/**
 * Turns one-at-a-time calls into batches without adding delay: a worker takes whatever queued up while its last
 * batch ran. `run` must answer every item in order and be safe to repeat, because after a failure each item of
 * the batch runs once more by itself, so that one bad item cannot fail its neighbours.
 *
 * An item that was submitted runs even if its submitter is interrupted while waiting.
 */
export const make = <Item, Result, E, R>(options: {
  readonly maxSize: number
  readonly run: (items: Arr.NonEmptyReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E, R>
}): Effect.Effect<(item: Item) => Effect.Effect<Result, E>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    interface Pending {
      readonly item: Item
      readonly done: Deferred.Deferred<Result, E>
    }
    const queue = yield* Queue.unbounded<Pending>()

    const answer = (pending: Pending, result: Result | undefined) =>
      result === undefined
        ? Deferred.die(pending.done, new Error("a batch left an item unanswered"))
        : Deferred.succeed(pending.done, result)

    const runOne = (pending: Pending) =>
      options.run([pending.item]).pipe(
        Effect.flatMap((results) => answer(pending, results[0])),
        Effect.catchAllCause((cause) => Deferred.failCause(pending.done, cause))
      )

    const runBatch = Effect.fnUntraced(function* (batch: Arr.NonEmptyReadonlyArray<Pending>) {
      if (batch.length === 1) return yield* runOne(batch[0])
      const [first, ...rest] = batch
      const exit = yield* Effect.exit(options.run([first.item, ...rest.map(({ item }) => item)]))
      return yield* Effect.forEach(
        batch,
        (pending, index) => (Exit.isSuccess(exit) ? answer(pending, exit.value[index]) : runOne(pending)),
        { discard: true }
      )
    })

    yield* Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(Queue.takeBetween(queue, 1, options.maxSize)), (taken) => {
        const batch = [...taken]
        return isNonEmpty(batch) ? runBatch(batch) : Effect.void
      })
    ).pipe(Effect.forever, Effect.forkScoped)

    return (item) =>
      Effect.flatMap(Deferred.make<Result, E>(), (done) =>
        Effect.zipRight(Queue.offer(queue, { item, done }), Deferred.await(done))
      )
  })

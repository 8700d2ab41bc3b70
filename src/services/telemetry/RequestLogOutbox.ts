import { Array as Arr, type Duration, Effect, type Metric, Queue, type Scope } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import { backoff } from "../runtime/Schedules.ts"

const untilBack = backoff("100 millis", "5 seconds")

/** Writes in order and in batches, keeps rows during an outage, and flushes when the scope closes. */
export const make = <Row, E>(options: {
  readonly capacity: number
  readonly perBatch: number
  /** Must ignore existing rows: after a failure they come again. */
  readonly write: (rows: Arr.NonEmptyReadonlyArray<Row>) => Effect.Effect<unknown, E>
  /** The row itself is at fault: a retry is of no use. */
  readonly isRefusal: (error: E) => boolean
  readonly lost: (rows: number, why: string) => Effect.Effect<void>
  readonly flushWithin: Duration.DurationInput
  readonly waiting: Metric.Metric.Gauge<number>
}): Effect.Effect<(row: Row) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const waiting: Array<Row> = []
    yield* Metrics.collect(() => options.waiting.unsafeUpdate(waiting.length, []))
    const arrival = yield* Queue.sliding<void>(1)
    const mutex = yield* Effect.makeSemaphore(1)

    const writeOne = (row: Row) =>
      Effect.catchIf(options.write([row]), options.isRefusal, (error) => options.lost(1, String(error)))
    const writeBatch = (batch: Arr.NonEmptyReadonlyArray<Row>) =>
      Effect.catchIf(options.write(batch), options.isRefusal, () => Effect.forEach(batch, writeOne, { discard: true }))

    const flush = Effect.suspend(() => {
      const batch = waiting.slice(0, options.perBatch)
      if (!Arr.isNonEmptyReadonlyArray(batch)) return Effect.succeed(false)
      return Effect.map(writeBatch(batch), () => {
        waiting.splice(0, batch.length)
        return true
      })
    }).pipe(Effect.uninterruptible, mutex.withPermits(1), Effect.repeat({ while: (more) => more }))

    yield* Effect.addFinalizer(() =>
      flush.pipe(
        Effect.retry(untilBack),
        Effect.interruptible,
        Effect.timeoutFail({ duration: options.flushWithin, onTimeout: () => "the store was away at the stop" }),
        Effect.catchAll((why) => options.lost(waiting.length, String(why)))
      )
    )
    yield* Queue.take(arrival).pipe(
      Effect.zipRight(Effect.retry(flush, untilBack)),
      Effect.zipRight(Effect.sleep("50 millis")),
      Effect.ignore,
      Effect.forever,
      Effect.forkScoped
    )

    return (row) =>
      Effect.suspend(() => {
        if (waiting.length >= options.capacity) return options.lost(1, "too many rows are waiting")
        waiting.push(row)
        return Effect.asVoid(Queue.offer(arrival, undefined))
      })
  })

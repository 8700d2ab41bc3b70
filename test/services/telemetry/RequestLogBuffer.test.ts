import { Data, Effect, Exit, Ref, Scope, TestClock } from "effect"
import * as Metrics from "../../../src/services/metrics/Metrics.ts"
import { makeRowBuffer } from "../../../src/services/telemetry/RequestLog.ts"
import { assert, describe, it } from "../../harness/It.ts"

class Refused extends Data.TaggedError("Refused")<{}> {}
class Away extends Data.TaggedError("Away")<{}> {}

/** A store of numbers that refuses negative ones and can be away. */
const bench = Effect.gen(function* () {
  const stored = yield* Ref.make<ReadonlyArray<number>>([])
  const batches = yield* Ref.make(0)
  const lost = yield* Ref.make(0)
  const away = yield* Ref.make(false)
  const scope = yield* Scope.make()
  const put = yield* makeRowBuffer<number, Refused | Away>({
    capacity: 10,
    perBatch: 4,
    write: (rows) =>
      Effect.gen(function* () {
        if (yield* Ref.get(away)) return yield* new Away()
        if (rows.some((row) => row < 0)) return yield* new Refused()
        yield* Ref.update(batches, (count) => count + 1)
        yield* Ref.update(stored, (all) => [...all, ...rows.filter((row) => !all.includes(row))])
      }),
    isRefusal: ({ _tag }) => _tag === "Refused",
    onLoss: (rows) => Ref.update(lost, (count) => count + rows),
    flushWithin: "5 seconds",
    waiting: Metrics.logWaiting
  }).pipe(Scope.extend(scope))
  return { put, stored, batches, lost, away, stop: Scope.close(scope, Exit.void) }
})

describe("a row buffer", () => {
  it.effect("writes what came together in one batch, in order", function* () {
    const { batches, put, stored } = yield* bench
    yield* Effect.forEach([1, 2, 3], put)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* Ref.get(stored), [1, 2, 3])
    assert.strictEqual(yield* Ref.get(batches), 1)
  })

  it.effect("keeps rows while the store is away, for however long", function* () {
    const { away, lost, put, stored } = yield* bench
    yield* Ref.set(away, true)
    yield* Effect.forEach([1, 2, 3, 4, 5, 6], put)
    yield* TestClock.adjust("10 minutes")
    assert.deepStrictEqual(yield* Ref.get(stored), [])
    yield* Ref.set(away, false)
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(yield* Ref.get(stored), [1, 2, 3, 4, 5, 6])
    assert.strictEqual(yield* Ref.get(lost), 0)
  })

  it.effect("loses a row that is refused, and no other", function* () {
    const { lost, put, stored } = yield* bench
    yield* Effect.forEach([1, -2, 3], put)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* Ref.get(stored), [1, 3])
    assert.strictEqual(yield* Ref.get(lost), 1)
  })

  it.effect("counts what does not fit", function* () {
    const { away, lost, put } = yield* bench
    yield* Ref.set(away, true)
    yield* Effect.forEach(
      Array.from({ length: 13 }, (_, index) => index),
      put
    )
    assert.strictEqual(yield* Ref.get(lost), 3)
  })

  it.effect("writes everything before it closes", function* () {
    const { put, stop, stored } = yield* bench
    yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8, 9], put)
    yield* stop
    assert.deepStrictEqual(yield* Ref.get(stored), [1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it.effect("does not close for ever when the store stays away", function* () {
    const { away, lost, put, stop } = yield* bench
    yield* Ref.set(away, true)
    yield* Effect.forEach([1, 2], put)
    const stopped = yield* Effect.fork(stop)
    yield* TestClock.adjust("6 seconds")
    yield* stopped
    assert.strictEqual(yield* Ref.get(lost), 2)
  })
})

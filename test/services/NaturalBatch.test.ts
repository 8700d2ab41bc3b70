import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Ref, TestClock } from "effect"
import * as EventLoop from "../../src/services/EventLoop.ts"
import * as NaturalBatch from "../../src/services/NaturalBatch.ts"

/** Batches of numbers that wait for a gate; what ran is in `ran`. */
const gated = (fails: (items: ReadonlyArray<number>) => boolean = () => false) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const ran = yield* Ref.make<ReadonlyArray<ReadonlyArray<number>>>([])
    const submit = yield* NaturalBatch.make({
      maxSize: 3,
      patience: { duration: "10 seconds", late: () => "late" as const },
      run: (items: ReadonlyArray<number>) =>
        Ref.update(ran, (before) => [...before, items]).pipe(
          Effect.zipRight(Deferred.await(gate)),
          Effect.zipRight(Effect.suspend(() => (fails(items) ? Effect.fail("bad" as const) : Effect.succeed(items))))
        )
    })
    const ask = (item: number) => Effect.fork(Effect.exit(submit(item)))
    /** Asks once a batch of all that came before can have begun. */
    const askLater = (item: number) => Effect.zipRight(Effect.repeatN(EventLoop.turn, 2), ask(item))
    return { gate, ran, ask, askLater }
  })

describe("natural batches", () => {
  it.scoped("take what queued up while the last one ran, and answer each its own", () =>
    Effect.gen(function* () {
      const { askLater, gate, ran } = yield* gated()
      const asked = yield* Effect.forEach([1, 2, 3, 4, 5], askLater)
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(
        yield* Fiber.join(Fiber.all(asked)),
        [1, 2, 3, 4, 5].map((item) => Exit.succeed(item))
      )
      assert.deepStrictEqual(yield* Ref.get(ran), [[1], [2, 3, 4], [5]])
    })
  )

  it.scoped("take what came in together, also when nothing ran", () =>
    Effect.gen(function* () {
      const { ask, gate, ran } = yield* gated()
      const asked = yield* Effect.forEach([1, 2, 3, 4], ask)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(Fiber.all(asked))
      assert.deepStrictEqual(yield* Ref.get(ran), [[1, 2, 3], [4]])
    })
  )

  it.scoped("that fail are run again one by one, so that a bad item fails alone", () =>
    Effect.gen(function* () {
      const { ask, gate } = yield* gated((items) => items.includes(3))
      const asked = yield* Effect.forEach([1, 2, 3, 4], ask)
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(Fiber.all(asked)), [
        Exit.succeed(1),
        Exit.succeed(2),
        Exit.fail("bad" as const),
        Exit.succeed(4)
      ])
    })
  )

  it.scoped("keep nobody waiting beyond their patience, and pass over who has lost it", () =>
    Effect.gen(function* () {
      const { askLater, gate, ran } = yield* gated()
      const early = yield* Effect.forEach([1, 2], askLater)
      yield* TestClock.adjust("9 seconds")
      const late = yield* askLater(3)
      assert.isNull(early[1]?.unsafePoll())
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(Fiber.all(early)), [
        Exit.fail("late" as const),
        Exit.fail("late" as const)
      ])
      assert.isNull(late.unsafePoll())
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(late), Exit.succeed(3))
      assert.deepStrictEqual(yield* Ref.get(ran), [[1], [3]])
    })
  )
})

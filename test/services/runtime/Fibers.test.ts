import { Effect, Exit, Fiber, TestClock } from "effect"
import { flatMapEager, uninterruptibly } from "../../../src/services/runtime/Fibers.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("flatMapEager", () => {
  it("goes on at once over a value", () => {
    const seen: Array<number> = []
    const next = flatMapEager(Effect.succeed(1), (value) => {
      seen.push(value)
      return Effect.succeed(value + 1)
    })
    assert.deepStrictEqual(seen, [1])
    assert.deepStrictEqual(next, Effect.succeed(2))
  })

  it.effect("waits for what is none yet, and stops at a failure", function* () {
    const waiting = yield* Effect.fork(
      flatMapEager(Effect.delay(Effect.succeed(1), "1 second"), (one) => Effect.succeed(-one))
    )
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* waiting, -1)
    const failed = yield* Effect.exit(flatMapEager(Effect.fail("no"), () => Effect.dieMessage("gone on")))
    assert.deepStrictEqual(failed, Exit.fail("no"))
  })
})

describe("uninterruptibly", () => {
  for (const region of [Effect.interruptible, Effect.uninterruptible]) {
    it.effect(
      `runs to its end within ${region === Effect.interruptible ? "an interruptible" : "such a"} region`,
      function* () {
        let isDone = false
        const work = uninterruptibly(() =>
          Effect.map(Effect.sleep("1 second"), () => {
            isDone = true
          })
        )
        const fiber = yield* Effect.fork(region(work))
        yield* Effect.yieldNow()
        yield* Fiber.interruptFork(fiber)
        yield* TestClock.adjust("1 second")
        yield* Fiber.await(fiber)
        assert.isTrue(isDone)
      }
    )
  }
})

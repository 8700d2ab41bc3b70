import { Deferred, Duration, Effect, Exit, Fiber, Option, TestClock } from "effect"
import * as Deadlines from "../../../src/services/runtime/Deadlines.ts"
import { monotonicMillis } from "../../../src/services/runtime/System.ts"
import { interruptBefore } from "../../harness/Interruption.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("deadlines", () => {
  it.scoped("come in their order, however soon after each other they were set", function* () {
    for (let gap = 0; gap < 20; gap += 1) {
      const deadlines = yield* Deadlines.make
      const now = yield* monotonicMillis
      const came: Array<string> = []
      deadlines.schedule(now + 10_000, () => came.push("last"))
      yield* Effect.repeatN(Effect.yieldNow(), 30)
      deadlines.schedule(now + 3_000, () => came.push("later"))
      yield* Effect.repeatN(Effect.yieldNow(), gap)
      deadlines.schedule(now + 300, () => came.push("first"))
      yield* Effect.repeatN(Effect.yieldNow(), 30)
      yield* TestClock.adjust("300 millis")
      assert.deepStrictEqual(came, ["first"], `after ${gap} turns`)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(came, ["first", "later", "last"])
    }
  })

  it.scoped("do not run after a cancellation, and a failed one does not stop others", function* () {
    const deadlines = yield* Deadlines.make
    const now = yield* monotonicMillis
    const came: Array<string> = []
    deadlines.schedule(now + 100, () => came.push("called off"))()
    deadlines.schedule(now + 100, () => {
      throw new Error("broken")
    })
    deadlines.schedule(now + 200, () => came.push("kept"))
    yield* Effect.repeatN(Effect.yieldNow(), 30)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(came, ["kept"])
  })

  it.scoped("interrupt the effect, and return its exit", function* () {
    const { interruptAfter } = yield* Deadlines.make
    const ended = yield* Deferred.make<void>()
    const endless = Effect.onInterrupt(Effect.never, () => Deferred.succeed(ended, undefined))
    const late = yield* Effect.fork(
      interruptAfter(endless, 1_000, (exit) => (Exit.isInterrupted(exit) ? Effect.fail("late" as const) : exit))
    )
    const soon = interruptAfter(Effect.succeed(1), 1_000, () => Effect.succeed(2))
    assert.strictEqual(yield* soon, 1)
    yield* Effect.repeatN(Effect.yieldNow(), 30)
    yield* TestClock.adjust("1 second")
    yield* Deferred.await(ended)
    assert.deepStrictEqual(yield* Fiber.await(late), Exit.fail("late" as const))
  })

  it.scoped("let the effect continue while they are extended", function* () {
    const { interruptAfter } = yield* Deadlines.make
    const ends = [3_000, 5_000, 4_000]
    const late = yield* Effect.fork(
      interruptAfter(
        Effect.never,
        1_000,
        () => Effect.succeed("late"),
        () => ends.shift()
      )
    )
    yield* Effect.repeatN(Effect.yieldNow(), 30)
    for (const millis of [1_000, 2_000, 1_999]) yield* TestClock.adjust(Duration.millis(millis))
    assert.isTrue(Option.isNone(yield* Fiber.poll(late)))
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(yield* Fiber.join(late), "late")
  })
})

describe("an interruptible child fiber", () => {
  it.effect("has ended before its parent does, whenever that is interrupted", function* () {
    let isInterrupted = true
    for (let operation = 0; isInterrupted; operation += 1) {
      let running = 0
      let registered = 0
      const child = Effect.acquireUseRelease(
        Effect.sync(() => {
          running += 1
        }),
        () => Effect.repeatN(Effect.yieldNow(), 3),
        () =>
          Effect.sync(() => {
            running -= 1
          })
      )
      const work = Deadlines.runChild(child, () => {
        registered += 1
        return () => {
          registered -= 1
        }
      }).pipe(
        Effect.onExit(() => Effect.sync(() => assert.deepStrictEqual([running, registered], [0, 0], `${operation}`)))
      )
      const exit = yield* interruptBefore(operation, work)
      assert.isFalse(Exit.isFailure(exit) && !Exit.isInterrupted(exit), `${operation}`)
      isInterrupted = Exit.isFailure(exit)
    }
  })
})

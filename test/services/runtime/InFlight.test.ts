import { Effect, Exit, Fiber, TestClock } from "effect"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { tracked } from "../../harness/InFlight.ts"
import { interruptBefore } from "../../harness/Interruption.ts"
import { assert, describe, testOver } from "../../harness/It.ts"

const work = Effect.repeatN(Effect.yieldNow(), 3)

const it = testOver(InFlight.layer)

describe("requests in flight", () => {
  it("are removed, whenever they are interrupted", function* () {
    const inFlight = yield* InFlight
    let isInterrupted = true
    for (let operation = 0; isInterrupted; operation += 1) {
      isInterrupted = Exit.isInterrupted(yield* interruptBefore(operation, tracked(inFlight, work)))
      assert.deepStrictEqual(inFlight.requests(), [], `interrupted before operation ${operation}`)
    }
  })

  it("are removed when they fail or die", function* () {
    const inFlight = yield* InFlight
    for (const end of [Effect.fail("no"), Effect.die("a bug")]) {
      yield* Effect.exit(tracked(inFlight, end))
      assert.deepStrictEqual(inFlight.requests(), [])
    }
  })

  it("are interrupted by an abort, except in an uninterruptible region", function* () {
    const inFlight = yield* InFlight
    const waiting = yield* Effect.fork(tracked(inFlight, Effect.never))
    let isSettled = false
    const settle = Effect.delay(
      Effect.sync(() => {
        isSettled = true
      }),
      "1 second"
    )
    const settling = yield* Effect.fork(Effect.uninterruptible(tracked(inFlight, settle)))
    yield* Effect.yieldNow()
    assert.strictEqual(inFlight.requests().length, 2)
    yield* inFlight.abort
    assert.isTrue(Exit.isInterrupted(yield* Fiber.await(waiting)))
    assert.strictEqual(inFlight.requests().length, 1)
    yield* TestClock.adjust("1 second")
    yield* Fiber.await(settling)
    assert.isTrue(isSettled)
    assert.deepStrictEqual(inFlight.requests(), [])
  })
})

import { Clock, Effect, Fiber, Option, TestClock } from "effect"
import { backoffFor } from "../../../src/services/runtime/Schedules.ts"
import { withTimeLimit } from "../../../src/services/sql/Outage.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** How often something fails in vain within a second, while the first failure sets the wall clock. */
const triesWhileSet = Effect.fnUntraced(function* (stepMillis: number) {
  const live = Clock.make()
  let offset = 0
  const wall = () => live.unsafeCurrentTimeMillis() + offset
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    currentTimeMillis: Effect.sync(wall),
    unsafeCurrentTimeNanos: () => live.unsafeCurrentTimeNanos(),
    currentTimeNanos: live.currentTimeNanos,
    sleep: (duration) => live.sleep(duration)
  }
  let tries = 0
  const failing = Effect.suspend(() => {
    tries += 1
    if (tries === 2) offset = stepMillis
    return Effect.fail("again" as const)
  })
  yield* Effect.flip(Effect.retry(failing, backoffFor("1 second"))).pipe(Effect.withClock(clock))
  return tries
})

describe("retries of the database", () => {
  it.live("does not end when the wall clock is set forward", () =>
    Effect.map(triesWhileSet(3_600_000), (tries) => assert.isAtLeast(tries, 4))
  )

  it.live("ends when the wall clock is set back", () =>
    Effect.map(Effect.timeout(triesWhileSet(-3_600_000), "20 seconds"), (tries) => assert.isAtLeast(tries, 2))
  )
})

describe("waiting for a statement", () => {
  it.scoped("continues after an interruption of its caller", function* () {
    const scope = yield* Effect.scope
    let isDone = false
    const statement = Effect.andThen(Effect.sleep("2 seconds"), () => {
      isDone = true
    })
    const waiting = yield* Effect.fork(withTimeLimit(scope, "4 seconds")(statement))
    yield* Effect.yieldNow()
    yield* Fiber.interruptFork(waiting)
    yield* TestClock.adjust("1 second")
    assert.isNull(yield* Effect.map(Fiber.poll(waiting), Option.getOrNull))
    yield* TestClock.adjust("1 second")
    yield* Fiber.await(waiting)
    assert.isTrue(isDone)
  })

  it.scoped("ends without an answer when its time is up", function* () {
    const waiting = yield* Effect.fork(
      Effect.flip(withTimeLimit(yield* Effect.scope, "4 seconds")(Effect.interruptible(Effect.never)))
    )
    yield* TestClock.adjust("4 seconds")
    assert.strictEqual((yield* Fiber.join(waiting))._tag, "NoAnswer")
  })
})

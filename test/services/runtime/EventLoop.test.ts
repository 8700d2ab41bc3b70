import { Clock, Duration, Effect, Fiber, TestClock } from "effect"
import { sleepUnlessStalled } from "../../../src/services/runtime/EventLoop.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** Whose every sleep ends so much later. */
const lateBy = (lateness: Duration.DurationInput) =>
  Effect.map(
    Effect.clock,
    (clock): Clock.Clock =>
      Object.assign(Object.create(clock), {
        sleep: (duration: Duration.Duration) => clock.sleep(Duration.sum(duration, lateness))
      })
  )

describe("a limit on the silence of others", () => {
  it.effect("is as long as it says while the event loop is on time", function* () {
    const waiting = yield* Effect.fork(sleepUnlessStalled("1600 millis"))
    yield* TestClock.adjust("1599 millis")
    assert.isTrue((yield* Fiber.poll(waiting))._tag === "None")
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(waiting)
  })

  it.effect("grows by what the event loop is late", function* () {
    const clock = yield* lateBy("50 millis")
    const waiting = yield* Effect.fork(Effect.withClock(sleepUnlessStalled("1600 millis"), clock))
    yield* TestClock.adjust("2399 millis")
    assert.isTrue((yield* Fiber.poll(waiting))._tag === "None")
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(waiting)
  })
})

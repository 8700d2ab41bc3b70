import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schedule } from "effect"
import { upTo } from "../../../src/services/sql/DatabaseRetry.ts"

/** How often something fails in vain within 300 ms, while the first failure sets the wall clock. */
const triesWhileSet = (stepMillis: number) =>
  Effect.gen(function* () {
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
    yield* Effect.flip(Effect.retry(failing, upTo("300 millis")(Schedule.spaced("10 millis")))).pipe(
      Effect.withClock(clock)
    )
    return tries
  })

describe("patience with the database", () => {
  it.live("does not end when the wall clock is set forward", () =>
    Effect.map(triesWhileSet(3_600_000), (tries) => assert.isAtLeast(tries, 4))
  )

  it.live("ends when the wall clock is set back", () =>
    Effect.map(Effect.timeout(triesWhileSet(-3_600_000), "20 seconds"), (tries) => assert.isAtLeast(tries, 2))
  )
})

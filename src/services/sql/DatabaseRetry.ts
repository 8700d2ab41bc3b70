import { Clock, Deferred, Duration, Effect, Fiber, Option, Schedule, type Scope } from "effect"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleInterval from "effect/ScheduleInterval"
import { sleepUnlessStalled } from "../runtime/EventLoop.ts"
import { NoAnswer } from "./Outage.ts"

export const stepTimeout = Duration.seconds(4)

/** Monotonic; `Schedule.elapsed` reads the wall clock. */
const elapsed = Schedule.makeWithState(Option.none<bigint>(), (now, _: unknown, before) =>
  Effect.map(Clock.currentTimeNanos, (at) => {
    const start = Option.getOrElse(before, () => at)
    const next = ScheduleDecision.continueWith(ScheduleInterval.after(now))
    return [Option.some(start), Duration.nanos(at - start), next] as const
  })
)

export const upTo =
  (duration: Duration.DurationInput) =>
  <Out, In, R>(schedule: Schedule.Schedule<Out, In, R>): Schedule.Schedule<Out, In, R> =>
    Schedule.zipLeft(
      schedule,
      Schedule.whileOutput(elapsed, (time) => Duration.lessThan(time, duration))
    )

export const often = Schedule.exponential("50 millis").pipe(Schedule.union(Schedule.spaced("1 second")))

export const brief = Schedule.exponential("50 millis").pipe(Schedule.intersect(Schedule.recurs(3)))

/** Retries at growing intervals until `settleWithin` of `Timings` has passed. */
export const untilSettled = (settleWithin: Duration.Duration) => upTo(settleWithin)(often)

export const untilDone = Schedule.exponential("200 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

/** `Effect.retry` without the cost of a schedule until something fails. */
export const retryRarely = <A, E, R, Out>(
  effect: Effect.Effect<A, E, R>,
  options: { readonly schedule: Schedule.Schedule<Out, E>; readonly while: (error: E) => boolean }
): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) => {
    if (!options.while(error)) return Effect.fail(error)
    let isFirst = true
    const again = Effect.suspend(() => {
      if (!isFirst) return effect
      isFirst = false
      return Effect.fail(error)
    })
    return Effect.retry(again, options)
  })

/** Waits no longer than that, while the statement goes on in the scope: none is ever interrupted. */
export const withTimeLimit =
  (scope: Scope.Scope, duration: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | NoAnswer, R> =>
    Effect.gen(function* () {
      // Not a race: its fibers are children, and an interrupted parent interrupts them even where it cannot be itself.
      const done = yield* Deferred.make<A, E | NoAnswer>()
      yield* Effect.forkIn(Effect.intoDeferred(effect, done), scope)
      const clock = yield* Effect.zipRight(sleepUnlessStalled(duration), Deferred.fail(done, new NoAnswer())).pipe(
        Effect.interruptible,
        Effect.forkIn(scope)
      )
      return yield* Effect.ensuring(Deferred.await(done), Fiber.interruptFork(clock))
    }).pipe(Effect.uninterruptible)

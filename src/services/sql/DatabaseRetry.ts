import { Clock, Duration, Effect, Fiber, Option, Schedule, type Scope } from "effect"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleInterval from "effect/ScheduleInterval"
import { NoAnswer } from "./Outage.ts"

/** The longest that a request waits for the database to take one step of it. */
export const stepTimeout = Duration.seconds(4)

/** The longest that a request waits for its charge: by then the answer is paid for. */
export const settleTimeout = Duration.seconds(10)

/** Time since the first step, which `Schedule.elapsed` takes from the wall clock. */
const elapsed = Schedule.makeWithState(Option.none<bigint>(), (now, _: unknown, before) =>
  Effect.map(Clock.currentTimeNanos, (at) => {
    const start = Option.getOrElse(before, () => at)
    const next = ScheduleDecision.continueWith(ScheduleInterval.after(now))
    return [Option.some(start), Duration.nanos(at - start), next] as const
  })
)

/** Ends a schedule after that time, whatever the wall clock does meanwhile. */
export const upTo =
  (duration: Duration.DurationInput) =>
  <Out, In, R>(schedule: Schedule.Schedule<Out, In, R>): Schedule.Schedule<Out, In, R> =>
    Schedule.zipLeft(
      schedule,
      Schedule.whileOutput(elapsed, (time) => Duration.lessThan(time, duration))
    )

/** From 50 ms to a second apart. */
export const often = Schedule.exponential("50 millis").pipe(Schedule.union(Schedule.spaced("1 second")))

/** For statements that a request waits for: four tries at most. */
export const brief = Schedule.exponential("50 millis").pipe(Schedule.intersect(Schedule.recurs(3)))

/** For what settles a request's money. */
export const untilSettled = upTo(settleTimeout)(often)

/** For statements that nobody waits for and that must come through: every 5 s in the end, for as long as we live. */
export const untilDone = Schedule.exponential("200 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

/** `Effect.retry` for what nearly always succeeds: the schedule costs nothing until something has failed. */
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

/**
 * Waits for an effect, uninterrupted, and for no longer than that. The effect itself goes on in the scope: statements
 * are never interrupted.
 */
export const within =
  (scope: Scope.Scope, duration: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | NoAnswer, R> =>
    Effect.flatMap(Effect.forkIn(effect, scope), (fiber) =>
      Effect.timeoutFail(Effect.interruptible(Fiber.join(fiber)), { duration, onTimeout: () => new NoAnswer() })
    ).pipe(Effect.uninterruptible)

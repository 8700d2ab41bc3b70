import { Clock, Duration, Effect, Option, Schedule } from "effect"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleInterval from "effect/ScheduleInterval"

/** Recurs without end. Each pause is twice as long as the one before, up to `longest`. */
export const backoff = (first: Duration.DurationInput, longest: Duration.DurationInput) =>
  Schedule.union(Schedule.exponential(first), Schedule.spaced(longest))

/** Recurs so many times. Each pause is twice as long as the one before. */
export const retries = (first: Duration.DurationInput, times: number) =>
  Schedule.intersect(Schedule.exponential(first), Schedule.recurs(times))

/** For a statement whose caller waits. */
export const briefRetries = retries("50 millis", 3)

/** Monotonic; `Schedule.elapsed` reads the wall clock. */
const elapsed = Schedule.makeWithState(Option.none<bigint>(), (now, _: unknown, before) =>
  Effect.map(Clock.currentTimeNanos, (at) => {
    const start = Option.getOrElse(before, () => at)
    const next = ScheduleDecision.continueWith(ScheduleInterval.after(now))
    return [Option.some(start), Duration.nanos(at - start), next] as const
  })
)

/** Recurs with pauses of up to a second until `duration` has passed. */
export const backoffFor = (duration: Duration.DurationInput) =>
  Schedule.zipLeft(
    backoff("50 millis", "1 second"),
    Schedule.whileOutput(elapsed, (time) => Duration.lessThan(time, duration))
  )

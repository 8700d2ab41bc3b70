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

/** For freeing an idempotency key, without end: until then its request cannot be repeated. */
export const keyReleaseRetries = backoff("200 millis", "5 seconds")

/** For giving a video job's lease to other instances, which otherwise get it when it lapses. */
export const leaseReleaseRetries = retries("100 millis", 4)

/** For polls and results of a job that a provider has accepted: it is paid for. */
export const jobRetries = retries("500 millis", 3)

/** For calls to Stripe. Jittered, so that instances do not call in step. */
export const stripeRetries = Schedule.jittered(retries("300 millis", 2))

/** For writing rows of the request log, without end: an outage of the database loses none. */
export const outboxRetries = backoff("100 millis", "5 seconds")

/** For a worker process that ended soon after its start. */
export const workerRestarts = backoff("250 millis", "30 seconds")

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

/** For the rows of a video that a provider has rendered: it is paid for, so an outage of the database is waited out. */
export const videoRetries = backoffFor("2 minutes")

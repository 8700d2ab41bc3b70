import { Clock, Duration, Effect, Option, Schedule } from "effect"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleInterval from "effect/ScheduleInterval"

/** Recurs forever. Each pause is twice as long as the one before, up to `maxDelay`. */
const backoff = (first: Duration.DurationInput, maxDelay: Duration.DurationInput) =>
  Schedule.union(Schedule.exponential(first), Schedule.spaced(maxDelay))

/** Recurs `times` times. Each pause is twice as long as the one before. */
export const retries = (first: Duration.DurationInput, times: number) =>
  Schedule.intersect(Schedule.exponential(first), Schedule.recurs(times))

/** For statements whose caller waits. */
export const quickRetries = retries("50 millis", 3)

/** For freeing an idempotency key. Recurs forever, because the client cannot repeat its request until the key is free. */
export const keyReleaseRetries = backoff("200 millis", "5 seconds")

/** For releasing a video job's lease. Limited, because other instances take the job anyway when the lease expires. */
export const leaseReleaseRetries = retries("100 millis", 4)

/** For polling and fetching a job that a provider has accepted, and therefore charges. */
export const jobRetries = retries("500 millis", 3)

/** For calls to Stripe. Jittered, because instances must not retry at the same moments. */
export const stripeRetries = Schedule.jittered(retries("300 millis", 2))

/** For writing rows of the request log. Recurs forever, because no rows may be lost in an outage of the database. */
export const requestLogRetries = backoff("100 millis", "5 seconds")

/** For restarting a worker process that ended soon after its start. */
export const workerRestarts = backoff("250 millis", "30 seconds")

/** Outputs the time since its start. Unlike `Schedule.elapsed` it does not use the wall clock, which can jump. */
const elapsed = Schedule.makeWithState(Option.none<bigint>(), (now, _: unknown, previousStart) =>
  Effect.map(Clock.currentTimeNanos, (at) => {
    const start = Option.getOrElse(previousStart, () => at)
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

/**
 * For the rows of a video that a provider has rendered and charged. Long enough to outlast a short outage of the database.
 */
export const videoRetries = backoffFor("2 minutes")

import { Duration, Effect, Layer, Schedule } from "effect"
import { Operators } from "../admin/Operators.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import { ImageGenerations } from "../images/ImageGenerations.ts"
import { logFailure } from "../sql/Outage.ts"
import { RequestLog } from "../telemetry/RequestLog.ts"
import { VideoJobs } from "../videos/VideoJobs.ts"
import { Webhooks } from "../webhooks/Webhooks.ts"

const idempotencyRetention = Duration.hours(24)

/** Deletes expired rows every hour. */
export const housekeeping = (logRetention: Duration.Duration) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const log = yield* RequestLog
      const idempotency = yield* Idempotency
      const images = yield* ImageGenerations
      const videos = yield* VideoJobs
      const webhooks = yield* Webhooks
      const operators = yield* Operators
      const tasks: ReadonlyArray<readonly [string, Effect.Effect<unknown>]> = [
        ["Old rows of the request log", log.prune(logRetention)],
        ["Old idempotency keys", idempotency.prune(idempotencyRetention, images.forget)],
        ["Old sessions of operators", operators.prune],
        ["Old videos", videos.prune(logRetention)],
        ["Old deliveries of webhooks", webhooks.prune(logRetention)]
      ]
      yield* Effect.forEach(tasks, ([what, task]) =>
        Effect.catchAllCause(task, (cause) => logFailure(`${what} could not be removed`, cause))
      ).pipe(Effect.repeat(Schedule.spaced("1 hour")), Effect.forkScoped)
    })
  )

import { Schema } from "effect"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/Record.ts"
import type { VideoJob } from "../videos/VideoAdmin.ts"
import { AttemptRecord, attemptRecord } from "./requests/Record.ts"

const VideoFailure = Schema.Struct({
  code: Schema.String,
  message: TextOrNull,
  attempt: Schema.NullOr(Schema.Number).annotations({
    description: "The last failed attempt, counted from 1; null if there was none."
  }),
  outcome: TextOrNull.annotations({ description: "How that attempt ended, such as `retry` or `timeout`." })
})

export const VideoRecord = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  at: UnixSeconds,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  step: Schema.Literal("submit", "submitting", "rendering", "over"),
  org: Schema.String,
  key_id: Schema.String,
  model: Schema.String,
  seconds: Schema.Number,
  route: TextOrNull,
  price_usd: Usd,
  charge_usd: Schema.NullOr(Usd),
  refunded_usd: Usd.annotations({ description: "What was given back of `charge_usd`." }),
  cost_usd: Schema.NullOr(Usd),
  error: Schema.NullOr(VideoFailure),
  progress: Schema.Number,
  completed_at: TimeOrNull,
  deleted_at: TimeOrNull,
  deadline: UnixSeconds,
  media: TextOrNull,
  hold_id: Schema.String,
  handle: TextOrNull,
  tried: Schema.Array(Schema.String).annotations({
    description: "Every route that it was submitted to, in that order, the one that took it too."
  }),
  attempts: Schema.Array(AttemptRecord),
  doubts: Schema.Number.annotations({
    description: "Submits that a provider may have taken without an answer, each perhaps paid for nothing."
  }),
  polls: Schema.Number.annotations({ description: "How often `route` was asked for the render at `handle`." }),
  last_error: TextOrNull.annotations({
    description: "The error of the render's last poll or download; null if it succeeded."
  }),
  downloads: Schema.Number.annotations({ description: "How often that render's clip could not be downloaded." }),
  next_at: TimeOrNull,
  lease_until: TimeOrNull
}).annotations({ identifier: "Video" })
export type VideoRecord = typeof VideoRecord.Type

const failureOf = ({ attempts, errorCode, errorMessage }: VideoJob): typeof VideoFailure.Type | null => {
  if (errorCode === null) return null
  const failed = attempts.findLastIndex(({ outcome }) => outcome !== "ok" && outcome !== "skipped")
  const outcome = attempts[failed]?.outcome ?? null
  return { code: errorCode, message: errorMessage, attempt: outcome === null ? null : failed + 1, outcome }
}

export const videoRecord = (job: VideoJob): VideoRecord => ({
  id: job.id,
  request_id: job.requestId,
  at: job.createdAt,
  status: job.status,
  step: job.step,
  org: job.orgId,
  key_id: job.keyId,
  model: job.model,
  seconds: job.seconds,
  route: job.route?.id ?? null,
  price_usd: job.price,
  charge_usd: job.charged,
  refunded_usd: job.refunded,
  cost_usd: job.cost,
  error: failureOf(job),
  progress: job.progress,
  completed_at: job.completedAt,
  deleted_at: job.deletedAt,
  deadline: job.deadline,
  media: job.media,
  hold_id: job.holdId,
  handle: job.handle,
  tried: job.tried,
  attempts: job.attempts.map(attemptRecord),
  doubts: job.doubts,
  polls: job.polls,
  last_error: job.lastError,
  downloads: job.downloads,
  next_at: job.nextAt,
  lease_until: job.leaseUntil
})

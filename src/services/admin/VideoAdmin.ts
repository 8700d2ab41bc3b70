import { SqlClient, type Statement } from "@effect/sql"
import { Array as Arr, Context, Data, Effect, Layer, Schema } from "effect"
import { VideoNotFound } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { refundsOf } from "../ledger/Refunds.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { listing } from "../sql/Listing.ts"
import { inScope, inTimeRange, type Row, recordsOf, whenDefined } from "../sql/SqlStatement.ts"
import { cancelledError } from "../videos/VideoState.ts"
import { cancelJob } from "../videos/VideoViews.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { AttemptRecord } from "./RequestAdmin.ts"

const VideoFailure = Schema.Struct({
  code: Schema.String,
  message: TextOrNull,
  attempt: Schema.NullOr(Schema.Number).annotations({
    description: "The number of the last failed attempt, from 1. Null if there was none."
  }),
  outcome: TextOrNull.annotations({ description: "The outcome of that attempt, such as `retry` or `timeout`." })
})

/** Omits the prompt and the reference image, because they are customers' content. */
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
  refunded_usd: Usd.annotations({ description: "The refunded part of `charge_usd`." }),
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
    description: "All routes that it was submitted to, in that order, including the one that accepted it."
  }),
  attempts: Schema.Array(AttemptRecord),
  doubts: Schema.Number.annotations({
    description: "The number of submissions without a response. The provider may have accepted and billed each."
  }),
  polls: Schema.Number.annotations({ description: "The number of polls of `route` for the job `handle`." }),
  last_error: TextOrNull.annotations({
    description: "The error of the last poll or download, or null if it succeeded."
  }),
  downloads: Schema.Number.annotations({ description: "The number of failed downloads of the video." }),
  next_at: TimeOrNull,
  lease_until: TimeOrNull
}).annotations({ identifier: "Video" })
export type VideoRecord = typeof VideoRecord.Type

const failedAttempt = (attempts: VideoRecord["attempts"]) => {
  const failed = attempts.findLastIndex(({ outcome }) => outcome !== "ok" && outcome !== "skipped")
  return { attempt: failed < 0 ? null : failed + 1, outcome: attempts[failed]?.outcome ?? null }
}

const videoRows = recordsOf(
  Schema.Struct({ ...VideoRecord.fields, error: Schema.NullOr(VideoFailure.pick("code", "message")) })
)
const readVideos = (statement: Statement.Statement<Row>) =>
  Effect.map(
    videoRows(statement),
    Arr.map(
      ({ error, ...video }): VideoRecord => ({
        ...video,
        error: error && { ...error, ...failedAttempt(video.attempts) }
      })
    )
  )

interface JobQuery {
  readonly org?: OrgId | undefined
  readonly model?: string | undefined
  readonly status?: VideoRecord["status"] | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** The order of the fields selects the index. For unfinished jobs the status comes first, because they are few. */
const toEqual = ({ model, org, status }: JobQuery) =>
  status === "queued" || status === "in_progress" ? { status, org_id: org, model } : { org_id: org, model, status }

class VideoAlreadyFinished extends Data.TaggedError("VideoAlreadyFinished")<{
  readonly id: string
  readonly status: VideoRecord["status"]
}> {
  override get message() {
    return `The video ${this.id} has already ${this.status}. It cannot be changed.`
  }
}

export class VideoAdmin extends Context.Tag("gateway/VideoAdmin")<
  VideoAdmin,
  {
    readonly list: (scope: OrganizationScope, query: JobQuery) => Effect.Effect<ReadonlyArray<VideoRecord>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<VideoRecord, VideoNotFound>
    readonly findByHold: (scope: OrganizationScope, hold: string) => Effect.Effect<VideoRecord | undefined>
    readonly retry: (
      scope: OrganizationScope,
      id: string
    ) => Effect.Effect<VideoRecord, VideoNotFound | VideoAlreadyFinished>
    /** Releases the hold even if another instance has the lease. Cancels the job at the provider if that is supported. */
    readonly cancel: (
      scope: OrganizationScope,
      id: string
    ) => Effect.Effect<VideoRecord, VideoNotFound | VideoAlreadyFinished>
  }
>() {
  static readonly layer = Layer.effect(
    VideoAdmin,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const selectJobs = sql`
        SELECT videos.id, request_id, videos.created_at AS at, status, step, videos.org_id AS org, videos.key_id, model, seconds,
          route::jsonb ->> 'id' AS route, price AS price_usd, holds.charged AS charge_usd, (
            SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entries WHERE ${sql.literal(refundsOf("holds.id"))}
          ) AS refunded_usd, cost AS cost_usd,
          CASE WHEN error_code IS NOT NULL THEN jsonb_build_object('code', error_code, 'message', error_message) END AS error,
          progress, completed_at, deleted_at, deadline, media, videos.hold_id, handle, attempted_routes AS tried, attempts, uncertain_submits AS doubts, polls,
          last_error, downloads, next_at, lease_until
        FROM videos JOIN holds ON holds.id = videos.hold_id`

      const createdAt = (scope: OrganizationScope, id: string) =>
        sql`(SELECT created_at FROM videos WHERE ${sql.and([sql`id = ${id}`, ...inScope(sql, scope)])})`

      const find = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const [job] = yield* readVideos(
          sql`${selectJobs} WHERE ${sql.and([sql`videos.id = ${id}`, ...inScope(sql, scope, "videos.org_id")])}`
        )
        return job === undefined ? yield* new VideoNotFound() : job
      })

      const requireUnfinished = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const job = yield* find(scope, id)
        return job.step === "over" ? yield* new VideoAlreadyFinished({ id, status: job.status }) : job
      })

      return VideoAdmin.of({
        find,
        findByHold: Effect.fn("VideoAdmin.findByHold")((scope: OrganizationScope, hold: string) =>
          Effect.map(
            readVideos(
              sql`${selectJobs} WHERE ${sql.and([sql`videos.hold_id = ${hold}`, ...inScope(sql, scope, "videos.org_id")])}`
            ),
            ([job]) => job
          )
        ),
        list: Effect.fn("VideoAdmin.list")((scope: OrganizationScope, jobQuery: JobQuery) => {
          const query = { ...jobQuery, org: scope.narrow(jobQuery.org) }
          const where = [
            // Repeats the condition of the index `videos_status` exactly, or PostgreSQL would not use the index.
            ...(query.status === undefined || query.status === "completed" ? [] : [sql`status <> 'completed'`]),
            ...inTimeRange(sql, "created_at", query),
            ...whenDefined(query.after, (id) => sql`(created_at, id) < (${createdAt(scope, id)}, ${id})`)
          ]
          return readVideos(sql`${selectJobs} WHERE videos.id = ANY (ARRAY(
              SELECT id FROM videos ${listing(sql, { equal: toEqual(query), where, by: ["created_at", "id"], limit: query.limit })}
            )) ORDER BY videos.created_at DESC, videos.id DESC`)
        }),
        retry: Effect.fn("VideoAdmin.retry")(function* (scope: OrganizationScope, id: string) {
          yield* requireUnfinished(scope, id)
          yield* Effect.orDie(sql`UPDATE videos SET next_at = now() WHERE id = ${id} AND step <> 'over'`)
          return yield* find(scope, id)
        }, Effect.uninterruptible),
        cancel: Effect.fn("VideoAdmin.cancel")(function* (scope: OrganizationScope, id: string) {
          yield* find(scope, id)
          const isCancelled = yield* Effect.orDie(cancelJob(sql, id, cancelledError, false))
          return yield* isCancelled ? find(scope, id) : requireUnfinished(scope, id)
        }, Effect.uninterruptible)
      })
    })
  )
}

const videos = auditResource({
  name: "videos",
  record: VideoRecord,
  find: (scope, id) => Effect.flatMap(VideoAdmin, ({ find }) => find(scope, id))
})

export const cancel = operation("Cancel an unfinished video and release its hold", (id: string) =>
  videos.change("cancel", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ cancel }) => cancel(scope, id)))
)

export const retry = operation("Process an unfinished video now instead of at its next scheduled time", (id: string) =>
  videos.change("retry", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ retry }) => retry(scope, id)))
)

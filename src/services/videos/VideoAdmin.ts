import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { VideoNotFound } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { refundsOf } from "../ledger/RefundSql.ts"
import { listing } from "../sql/Listing.ts"
import { inScope, inTimeRange, rowsOf, whenDefined } from "../sql/Statement.ts"
import { RequestRow } from "../telemetry/RequestLog.ts"
import { cancelled, KeptRoute } from "./VideoState.ts"
import { cancelJob } from "./VideoViews.ts"

/** Without prompt and reference. */
export class VideoJob extends Schema.Class<VideoJob>("VideoJob")({
  id: Schema.String,
  requestId: Schema.String,
  orgId: OrgId,
  keyId: KeyId,
  model: Schema.String,
  seconds: Schema.Number,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  step: Schema.Literal("submit", "submitting", "rendering", "over"),
  createdAt: Schema.DateFromSelf,
  completedAt: Schema.NullOr(Schema.DateFromSelf),
  deletedAt: Schema.NullOr(Schema.DateFromSelf),
  progress: Schema.Number,
  deadline: Schema.DateFromSelf,
  errorCode: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  media: Schema.NullOr(Schema.String),
  price: NanoUsdFromRow,
  charged: Schema.NullOr(NanoUsdFromRow),
  refunded: NanoUsdFromRow,
  cost: Schema.NullOr(NanoUsdFromRow),
  holdId: Schema.String,
  route: KeptRoute,
  handle: Schema.NullOr(Schema.String),
  tried: Schema.Array(Schema.String),
  attempts: RequestRow.fields.attempts,
  doubts: Schema.Number,
  polls: Schema.Number,
  lastError: Schema.NullOr(Schema.String),
  downloads: Schema.Number,
  nextAt: Schema.NullOr(Schema.DateFromSelf),
  leaseUntil: Schema.NullOr(Schema.DateFromSelf)
}) {}

interface JobQuery {
  readonly org?: OrgId | undefined
  readonly model?: string | undefined
  readonly status?: VideoJob["status"] | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** Few jobs are unfinished. */
const equalIn = ({ model, org, status }: JobQuery) =>
  status === "queued" || status === "in_progress" ? { status, org_id: org, model } : { org_id: org, model, status }

export class VideoOver extends Data.TaggedError("VideoOver")<{
  readonly id: string
  readonly status: VideoJob["status"]
}> {
  override get message() {
    return `The video ${this.id} is ${this.status}: it cannot be changed any more.`
  }
}

export class VideoAdmin extends Context.Tag("gateway/VideoAdmin")<
  VideoAdmin,
  {
    readonly list: (scope: OrganizationScope, query: JobQuery) => Effect.Effect<ReadonlyArray<VideoJob>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<VideoJob, VideoNotFound>
    readonly findByHold: (scope: OrganizationScope, hold: string) => Effect.Effect<VideoJob | undefined>
    readonly retry: (scope: OrganizationScope, id: string) => Effect.Effect<VideoJob, VideoNotFound | VideoOver>
    /** Releases the hold whichever instance has the lease, and cancels upstream where possible. */
    readonly cancel: (scope: OrganizationScope, id: string) => Effect.Effect<VideoJob, VideoNotFound | VideoOver>
  }
>() {
  static readonly layer = Layer.effect(
    VideoAdmin,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = rowsOf(VideoJob)
      const selectJobs = sql`
        SELECT videos.*, holds.charged, (
          SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entries WHERE ${sql.literal(refundsOf("holds.id"))}
        ) AS refunded
        FROM videos JOIN holds ON holds.id = videos.hold_id`

      const createdAt = (scope: OrganizationScope, id: string) =>
        sql`(SELECT created_at FROM videos WHERE ${sql.and([sql`id = ${id}`, ...inScope(sql, scope)])})`

      const find = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const [job] = yield* rows(
          sql`${selectJobs} WHERE ${sql.and([sql`videos.id = ${id}`, ...inScope(sql, scope, "videos.org_id")])}`
        )
        return job === undefined ? yield* new VideoNotFound() : job
      })

      const requireUnfinished = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const job = yield* find(scope, id)
        return job.step === "over" ? yield* new VideoOver({ id, status: job.status }) : job
      })

      return VideoAdmin.of({
        find,
        findByHold: Effect.fn("VideoAdmin.findByHold")((scope: OrganizationScope, hold: string) =>
          Effect.map(
            rows(
              sql`${selectJobs} WHERE ${sql.and([sql`videos.hold_id = ${hold}`, ...inScope(sql, scope, "videos.org_id")])}`
            ),
            ([job]) => job
          )
        ),
        list: Effect.fn("VideoAdmin.list")((scope: OrganizationScope, given: JobQuery) => {
          const query = { ...given, org: scope.narrow(given.org) }
          const where = [
            // In the words of the index `videos_status`.
            ...(query.status === undefined || query.status === "completed" ? [] : [sql`status <> 'completed'`]),
            ...inTimeRange(sql, "created_at", query),
            ...whenDefined(query.after, (id) => sql`(created_at, id) < (${createdAt(scope, id)}, ${id})`)
          ]
          return rows(sql`${selectJobs} WHERE videos.id = ANY (ARRAY(
              SELECT id FROM videos ${listing(sql, { equal: equalIn(query), where, by: ["created_at", "id"], limit: query.limit })}
            )) ORDER BY videos.created_at DESC, videos.id DESC`)
        }),
        retry: Effect.fn("VideoAdmin.retry")(function* (scope: OrganizationScope, id: string) {
          yield* requireUnfinished(scope, id)
          yield* Effect.orDie(sql`UPDATE videos SET next_at = now() WHERE id = ${id} AND step <> 'over'`)
          return yield* find(scope, id)
        }, Effect.uninterruptible),
        cancel: Effect.fn("VideoAdmin.cancel")(function* (scope: OrganizationScope, id: string) {
          yield* find(scope, id)
          const isCancelled = yield* Effect.orDie(cancelJob(sql, id, cancelled, false))
          return yield* isCancelled ? find(scope, id) : requireUnfinished(scope, id)
        }, Effect.uninterruptible)
      })
    })
  )
}

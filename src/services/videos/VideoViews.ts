import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import * as Closing from "../ledger/HoldClosing.ts"
import { RefundedVideos } from "../ledger/Refunds.ts"
import { listing } from "../sql/Listing.ts"
import { rowsOf, whenDefined } from "../sql/SqlStatement.ts"
import { writeNotice } from "../webhooks/WebhookEvents.ts"
import { endLastAttempt, unconfirmedSubmit } from "./VideoSql.ts"
import { internalError, toVideo, transitions, type VideoError, VideoView, videoJson } from "./VideoState.ts"

const rows = rowsOf(VideoView)
const pruneBatch = 5_000

const columns = (sql: SqlClient.SqlClient) =>
  sql.literal(`id, model, status, seconds, created_at, completed_at, media AS media_name, error_code, error_message, sandbox,
    CASE status WHEN 'completed' THEN 100 ELSE progress END AS progress,
    CASE status WHEN 'completed' THEN price END AS charge`)

export interface PageStart {
  readonly order: "asc" | "desc"
  /** The id of the last video on the previous page. Undefined: the first page. */
  readonly after: string | undefined
}

const newestFirst: PageStart = { order: "desc", after: undefined }

const afterOperator = { asc: ">", desc: "<" }

/** Must match the partial index `videos_listed`. */
const isListed = "accepted_at IS NOT NULL AND deleted_at IS NULL"

/** Returns the query for a page. It reads only as many index entries as it returns rows. */
export const page = (
  sql: SqlClient.SqlClient,
  org: OrgId,
  limit: number,
  { after, order }: PageStart = newestFirst
) => {
  const isAfter = (id: string) =>
    sql`(created_at, id) ${sql.literal(afterOperator[order])} ((SELECT created_at FROM videos WHERE id = ${id}), ${id})`
  const where = [sql.literal(isListed), ...whenDefined(after, isAfter)]
  return sql`
    SELECT ${columns(sql)} FROM videos WHERE id = ANY (ARRAY(
      SELECT id FROM videos ${listing(sql, { equal: { org_id: org }, where, by: ["created_at", "id"], order, limit })}
    )) ORDER BY ${sql.literal(`created_at ${order}, id ${order}`)}`
}

export const makeVideoViews = (sql: SqlClient.SqlClient) => ({
  find: (org: OrgId, id: string) =>
    Effect.map(
      rows(sql`SELECT ${columns(sql)} FROM videos WHERE id = ${id} AND org_id = ${org} AND ${sql.literal(isListed)}`),
      ([view]) => view
    ),

  list: (org: OrgId, limit: number, start?: PageStart) => rows(page(sql, org, limit, start)),

  /** Includes deleted videos, because a client may delete the videos that it pages through. */
  belongsTo: (org: OrgId, id: string) =>
    sql`SELECT FROM videos WHERE id = ${id} AND org_id = ${org} AND accepted_at IS NOT NULL`.pipe(
      Effect.map((rows) => rows.length > 0)
    ),

  /** Schedules the clip for removal. Returns no row if the video is unfinished, deleted or of another organization. */
  delete: (org: OrgId, id: string) => sql<{ readonly mediaName: string | null }>`
    WITH deleted AS (
      UPDATE videos SET deleted_at = now()
      WHERE id = ${id} AND org_id = ${org} AND ${sql.literal(isListed)} AND step = 'over' RETURNING media
    ), removals AS (
      INSERT INTO media_removals (name) SELECT media FROM deleted WHERE media IS NOT NULL
    )
    SELECT media AS media_name FROM deleted`,

  createdAt: (id: string) =>
    sql<{ readonly createdAt: Date }>`SELECT created_at FROM videos WHERE id = ${id}`.pipe(
      Effect.map(([row]) => row?.createdAt)
    ),

  accept: (id: string) =>
    sql`
      UPDATE videos SET accepted_at = coalesce(accepted_at, now())
      WHERE id = ${id} AND (step <> 'over' OR accepted_at IS NOT NULL) RETURNING id`.pipe(
      Effect.map((rows) => rows.length > 0)
    ),

  unneededReferences: (limit: number) => sql<{ readonly id: string; readonly reference: string }>`
    SELECT id, reference FROM videos WHERE step = 'over' AND reference IS NOT NULL LIMIT ${limit}`,

  /** Does nothing until the job has finished, because a submit may need the reference. */
  forgetReference: (id: string) => sql`UPDATE videos SET reference = NULL WHERE id = ${id} AND step = 'over'`,

  prune: (olderThanSeconds: number) =>
    Effect.gen(function* () {
      let removedCount = 0
      while (true) {
        const batch = yield* sql`
          DELETE FROM videos WHERE id = ANY (ARRAY(
            SELECT id FROM videos
            WHERE completed_at < now() - ${olderThanSeconds} * interval '1 second' AND next_at IS NULL AND reference IS NULL
            LIMIT ${pruneBatch}
          )) RETURNING id`
        removedCount += batch.length
        if (batch.length < pruneBatch) return removedCount
      }
    })
})

/**
 * Writes the events of an ended job; none if the request that created the job failed. Call it in the transaction that
 * ends the job.
 */
export const notifyOfEnd = (sql: SqlClient.SqlClient, id: string, link: (mediaName: string) => string) =>
  Effect.gen(function* () {
    const [endedJob] = yield* sql<{ readonly orgId: OrgId; readonly webhookUrl: string | null }>`
      SELECT ${columns(sql)}, org_id, webhook_url FROM videos
      WHERE id = ${id} AND accepted_at IS NOT NULL AND (webhook_url IS NOT NULL OR EXISTS (
        SELECT FROM webhook_endpoints WHERE webhook_endpoints.org_id = videos.org_id AND disabled_at IS NULL
      ))`
    if (endedJob === undefined) return
    const [view] = yield* rows(Effect.succeed([endedJob]))
    if (view === undefined) return
    yield* writeNotice(sql, {
      org: endedJob.orgId,
      type: view.status === "completed" ? "video.completed" : "video.failed",
      url: endedJob.webhookUrl ?? undefined,
      data: videoJson(toVideo(view, link))
    })
  })

const cancelledAttempt = { outcome: "cancelled" }

/** Returns false if the job had finished. If `isRefused`, it also releases the idempotency key. */
export const cancelJob = (sql: SqlClient.SqlClient, id: string, error: VideoError, isRefused: boolean) =>
  Effect.gen(function* () {
    const { from, to } = transitions.cancel
    const [endedJob] = yield* sql<{ readonly holdId: string; readonly accepted: boolean }>`
      UPDATE videos SET status = 'failed', cancelling = step = 'rendering', completed_at = now(),
        next_at = CASE WHEN step = 'rendering' THEN now() END, step = ${to},
        uncertain_submits = uncertain_submits + (step = 'submitting')::int, error_code = ${error.code}, error_message = ${error.message},
        attempts = CASE WHEN step = 'rendering' AND attempts <> '[]' THEN ${endLastAttempt(sql, cancelledAttempt)}
          WHEN step = 'submitting' THEN attempts || jsonb_build_array(jsonb_build_object(
            'route', route::jsonb ->> 'id', 'provider', route::jsonb -> 'provider' ->> 'name', 'ms', 0
          ) || ${JSON.stringify({ ...cancelledAttempt, detail: unconfirmedSubmit.detail })}::text::jsonb)
          ELSE attempts END,
        prompt = '', reference_url = NULL, lease = NULL, lease_until = NULL
      WHERE id = ${id} AND step IN ${sql.in([...from])}
      RETURNING hold_id, accepted_at IS NOT NULL AS accepted`
    if (endedJob === undefined) return false
    yield* notifyOfEnd(sql, id, String)
    yield* Closing.releaseOne(sql, endedJob.holdId)
    if (isRefused || !endedJob.accepted) yield* deleteIdempotencyKey(sql, endedJob.holdId)
    return true
  }).pipe(sql.withTransaction, Effect.uninterruptible)

export const deleteIdempotencyKey = (sql: SqlClient.SqlClient, hold: string) =>
  sql`DELETE FROM idempotency_keys WHERE hold_id = ${hold}`

/** Cancels the jobs whose holds are refunded. */
export const refundedVideos = Layer.effect(
  RefundedVideos,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    cancel: (id) => Effect.asVoid(cancelJob(sql, id, internalError, true))
  }))
)

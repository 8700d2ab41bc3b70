import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import type { OrgId } from "../../domain/Organization.ts"

/** A render as customers see it. */
export const VideoView = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  seconds: Schema.Number,
  createdAt: Schema.DateFromSelf,
  completedAt: Schema.NullOr(Schema.DateFromSelf),
  media: Schema.NullOr(Schema.String),
  errorCode: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  sandbox: Schema.Boolean
})
export type VideoView = typeof VideoView.Type

const decode = Schema.decodeUnknown(Schema.Array(VideoView))
const pruneBatch = 5_000

/** Without prompts, which may be long. */
const shown = (sql: SqlClient.SqlClient) =>
  sql.literal("id, model, status, seconds, created_at, completed_at, media, error_code, error_message, sandbox")

/** Newest first; found in the organization's index alone, however long ago its last was. */
export const latest = (sql: SqlClient.SqlClient, org: OrgId, limit: number) => sql`
  SELECT ${shown(sql)} FROM videos WHERE id = ANY (ARRAY(
    SELECT id FROM videos WHERE org_id = ${org} AND accepted_at IS NOT NULL
    ORDER BY created_at DESC, id DESC LIMIT ${limit}
  )) ORDER BY created_at DESC, id DESC`

const make = (sql: SqlClient.SqlClient) => ({
  find: (org: OrgId, id: string) =>
    sql`SELECT ${shown(sql)} FROM videos WHERE id = ${id} AND org_id = ${org} AND accepted_at IS NOT NULL`.pipe(
      Effect.flatMap(decode),
      Effect.map(([clip]) => clip)
    ),

  list: (org: OrgId, limit: number) => Effect.flatMap(latest(sql, org, limit), decode),

  createdAt: (id: string) =>
    sql<{ readonly createdAt: Date }>`SELECT created_at FROM videos WHERE id = ${id}`.pipe(
      Effect.map(([row]) => row?.createdAt)
    ),

  /** The customer is told of the job from now on; false where it has failed before that. */
  accept: (id: string) =>
    sql`
      UPDATE videos SET accepted_at = coalesce(accepted_at, now())
      WHERE id = ${id} AND (step <> 'over' OR accepted_at IS NOT NULL) RETURNING id`.pipe(
      Effect.map((rows) => rows.length > 0)
    ),

  /** The private references of finished jobs, which go with them. */
  unneeded: (limit: number) => sql<{ readonly id: string; readonly reference: string }>`
    SELECT id, reference FROM videos WHERE step = 'over' AND reference IS NOT NULL LIMIT ${limit}`,

  /** The file is gone. A job that is not over may need its reference again. */
  dropped: (id: string) => sql`UPDATE videos SET reference = NULL WHERE id = ${id} AND step = 'over'`,

  /** Says how many were removed. */
  prune: (olderThanSeconds: number) =>
    Effect.gen(function* () {
      let removed = 0
      while (true) {
        const some = yield* sql`
          DELETE FROM videos WHERE id IN (
            SELECT id FROM videos
            WHERE completed_at < now() - ${olderThanSeconds} * interval '1 second' AND next_at IS NULL AND reference IS NULL
            LIMIT ${pruneBatch}
          ) RETURNING id`
        removed += some.length
        if (some.length < pruneBatch) return removed
      }
    })
})

/** What customers may see of jobs, and how long it is kept. */
export class VideoViews extends Context.Tag("gateway/VideoViews")<VideoViews, ReturnType<typeof make>>() {
  static readonly layer = Layer.effect(VideoViews, Effect.map(SqlClient.SqlClient, make))
}

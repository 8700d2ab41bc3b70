import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"

export class VideoRow extends Schema.Class<VideoRow>("VideoRow")({
  id: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  step: Schema.Literal("submit", "submitting", "rendering", "over"),
  seconds: Schema.Number,
  errorCode: Schema.NullOr(Schema.String),
  isLeased: Schema.Boolean,
  attemptedRoutes: Schema.Array(Schema.String),
  uncertainSubmits: Schema.Number,
  /** The `Idempotency-Key`. */
  key: Schema.NullOr(Schema.String),
  hold: Schema.Literal("open", "settled", "released"),
  /** In nano-USD. */
  charges: Schema.Array(Schema.BigInt)
}) {}

/** Every video there is, oldest first, with what was paid for it. */
export const videoRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    SELECT videos.*, lease IS NOT NULL AS is_leased, kept.key, holds.state AS hold,
      (SELECT coalesce(array_agg((-amount)::text), '{}') FROM ledger_entries
        WHERE hold_id = videos.hold_id AND kind = 'charge') AS charges
    FROM videos JOIN holds ON holds.id = videos.hold_id
    LEFT JOIN idempotency_keys AS kept ON kept.hold_id = videos.hold_id
    ORDER BY videos.created_at, videos.id`
  return yield* Schema.decodeUnknown(Schema.Array(VideoRow))(rows)
})

export const isOver = ({ step }: VideoRow): boolean => step === "over"

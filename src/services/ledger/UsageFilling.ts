import { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { refundsOf } from "./RefundSql.ts"

const FilledFrom = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ filledFrom: Schema.String })))

/** Adding rows to the totals takes this lock alone; changing rows shares it. */
export const fillingLock = "7025102615"

/** Rows of before the totals did not learn of a charge that followed them. */
const correctNextHour = (sql: SqlClient.SqlClient) => sql`
  UPDATE request_log AS r SET charge = h.charged - refunded.amount, cost = coalesce(v.cost, r.cost)
  FROM (
    SELECT date_trunc('hour', max(at), 'UTC') AS hour, filled_from
    FROM request_log, usage_bounds WHERE at < filled_from GROUP BY 2
  ) AS next, holds AS h LEFT JOIN videos AS v ON v.hold_id = h.id, LATERAL (
    SELECT coalesce(sum(amount), 0)::bigint AS amount FROM ledger_entries WHERE ${sql.literal(refundsOf("h.id"))}
  ) AS refunded
  WHERE h.id = r.hold_id AND h.charged > refunded.amount AND r.charge = 0 AND r.at >= next.hour AND r.at < next.filled_from`

/** Nothing where another gateway has added the corrected hour: the next one is not corrected yet. */
const addHour = (sql: SqlClient.SqlClient, filledFrom: string) =>
  sql`SELECT pg_advisory_xact_lock(${sql.literal(fillingLock)})`.pipe(
    Effect.zipRight(sql`SELECT fill_usage() FROM usage_bounds WHERE filled_from = ${filledFrom}::timestamptz`),
    sql.withTransaction
  )

/** Adds an hour of the log, whose changes wait meanwhile; false: there are no more. */
const fillNextHour = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ filledFrom }] = yield* Effect.flatMap(sql`SELECT filled_from::text FROM usage_bounds`, FilledFrom)
  if (filledFrom === "-infinity") return false
  yield* correctNextHour(sql)
  yield* addHour(sql, filledFrom)
  return true
}).pipe(Effect.uninterruptible)

/** Adds what was logged before there were totals, the newest first, and leaves others more time than it takes. */
export const fillUsage = Effect.timed(fillNextHour).pipe(
  Effect.tap(([took, more]) => (more ? Effect.sleep(Duration.sum(Duration.times(took, 2), "20 millis")) : Effect.void)),
  Effect.repeat({ while: ([, more]) => more }),
  Effect.asVoid
)

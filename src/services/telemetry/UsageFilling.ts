import { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { refundsOf } from "../ledger/RefundSql.ts"

const Filled = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ isDone: Schema.Boolean })))

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

/** Adds an hour of the log, whose writers wait meanwhile; false: it was the last. */
const fillNextHour = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [before] = yield* Effect.flatMap(sql`SELECT filled_from = '-infinity' AS is_done FROM usage_bounds`, Filled)
  if (before.isDone) return false
  yield* correctNextHour(sql)
  const [{ isDone }] = yield* Effect.flatMap(sql`SELECT fill_usage() = '-infinity' AS is_done`, Filled)
  return !isDone
}).pipe(Effect.uninterruptible)

/** Adds what was logged before there were totals, the newest first, and leaves others more time than it takes. */
export const fillUsage = Effect.timed(fillNextHour).pipe(
  Effect.tap(([took, more]) => (more ? Effect.sleep(Duration.sum(Duration.times(took, 2), "20 millis")) : Effect.void)),
  Effect.repeat({ while: ([, more]) => more }),
  Effect.asVoid
)

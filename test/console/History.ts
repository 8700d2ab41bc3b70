import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Copies the existing requests to earlier days, more by day than by night, with their holds, entries and balances. */
export const addHistory = Effect.fnUntraced(function* (days: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT setseed(0.5)`
      yield* sql`
        CREATE TEMP TABLE copies ON COMMIT DROP AS
        SELECT moved, gen_random_uuid() AS hold, row.hold_id AS from_hold, to_jsonb(row) AS fields
        FROM generate_series(0, ${days * 24 - 1}) AS hour
        CROSS JOIN LATERAL generate_series(1, (7 + 5 * sin(hour / 3.8) + 4 * random())::int) AS n
        CROSS JOIN LATERAL (SELECT now() - interval '2 minutes' - (hour + random()) * interval '1 hour' AS moved) AS moment
        CROSS JOIN LATERAL (
          SELECT * FROM request_log WHERE surface <> 'video' AND n > 0 AND hour >= 0
            AND (status < 500 OR random() < 0.15) AND (status < 400 OR random() < 0.3)
          ORDER BY random() LIMIT 1
        ) AS row`
      yield* sql`
        INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, created_at, closed_at)
        SELECT hold, org_id, key_id, amount, state, instance_id, moved, moved + (closed_at - created_at)
        FROM copies JOIN all_holds ON id = from_hold WHERE state = 'released'`
      yield* sql`
        INSERT INTO ledger_entries (org_id, at, kind, amount, hold_id, key_id, held, held_at)
        SELECT org_id, moved + (closed_at - created_at) AS at, 'charge', -charged, hold, key_id, amount, moved
        FROM copies JOIN all_holds ON id = from_hold WHERE state = 'settled' ORDER BY at`
      yield* sql`
        INSERT INTO request_log SELECT (jsonb_populate_record(NULL::request_log, fields || jsonb_build_object(
          'id', (lpad(to_hex((extract(epoch FROM moved) * 1000)::bigint), 12, '0') || '7' || substr(md5(hold::text), 1, 3)
            || '8' || right(md5(hold::text), 15))::uuid,
          'request_id', 'req_' || md5(hold::text), 'at', moved,
          'hold_id', CASE WHEN from_hold IS NOT NULL THEN hold END))).* FROM copies ORDER BY moved`
      yield* sql`
        UPDATE organizations SET created_at = now() - ${days + 1} * interval '1 day',
          balance = (SELECT sum(amount) FROM ledger_entries WHERE org_id = organizations.id)`
      yield* sql`
        INSERT INTO key_spend SELECT key_id, (at AT TIME ZONE 'UTC')::date, -sum(amount) FROM ledger_entries
        WHERE key_id IS NOT NULL GROUP BY 1, 2 ON CONFLICT (key_id, day) DO UPDATE SET spent = EXCLUDED.spent`
    })
  )
})

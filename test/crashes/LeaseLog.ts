import { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { productionTimings } from "../../src/services/runtime/Timings.ts"

/** Has the database write down every change of a job, so that it can be told afterwards who waited for whom. */
export const keep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE lease_log (n bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id text NOT NULL, step text NOT NULL, old_lease uuid, old_until timestamptz, due timestamptz, lease uuid)`
  yield* sql`CREATE FUNCTION log_lease() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO lease_log (id, step, old_lease, old_until, due, lease)
      VALUES (NEW.id, NEW.step, OLD.lease, OLD.lease_until, OLD.next_at, NEW.lease);
      RETURN NULL;
    END $$`
  yield* sql`CREATE TRIGGER leases AFTER INSERT OR UPDATE ON videos FOR EACH ROW EXECUTE FUNCTION log_lease()`
})

export class Takeover extends Schema.Class<Takeover>("Takeover")({
  id: Schema.String,
  step: Schema.String,
  /** The owner before said nothing any more: its lease lapsed. Otherwise it had given the job back. */
  lapsed: Schema.Boolean,
  /** When somebody could first have worked on it: when it was due, or the owner before last said that it lives. */
  free: Schema.DateFromSelf,
  at: Schema.DateFromSelf,
  /** Seconds between the two. */
  waited: Schema.Number
}) {}

/** Every time that somebody took a job on after its creation, in order; a lease had the length `videoLease`. */
export const takeovers = Effect.fnUntraced(function* ({ videoLease } = productionTimings) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    SELECT id, step, old_lease IS NOT NULL AS lapsed, free, at, extract(epoch FROM at - free)::float8 AS waited
    FROM (
      SELECT *, CASE WHEN old_lease IS NULL THEN due ELSE old_until - ${Duration.toSeconds(videoLease)} * interval '1 second' END AS free
      FROM lease_log WHERE lease IS NOT NULL AND lease IS DISTINCT FROM old_lease AND due IS NOT NULL
    ) AS taken
    ORDER BY n`
  return yield* Schema.decodeUnknown(Schema.Array(Takeover))(rows)
})

/** The database's time. */
export const now = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT clock_timestamp() AS at`).pipe(
  Effect.flatMap(Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ at: Schema.DateFromSelf })))),
  Effect.map(([{ at }]) => at)
)

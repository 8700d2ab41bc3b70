import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

const statements = [
  "CREATE TABLE excesses (key_id text NOT NULL, what text NOT NULL)",
  // A hold that a crash lost is placed again whatever its key has: only statements that look at limits are judged.
  `CREATE FUNCTION watch_places() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF current_query() LIKE '%places_of%' THEN
      INSERT INTO excesses SELECT k.id, n.places || ' at once'
      FROM api_keys AS k, LATERAL (
        SELECT (SELECT count(*) FROM open_holds WHERE key_id = k.id AND released_at IS NULL)
          + (SELECT count(*) FROM holds WHERE key_id = k.id AND state = 'open' AND instance_id IS NULL) AS places
      ) AS n
      WHERE k.id IN (SELECT key_id FROM placed) AND n.places > k.concurrency;
    END IF;
    RETURN NULL;
  END $$`,
  ...["open_holds", "holds"].map(
    (table) => `CREATE TRIGGER watched AFTER INSERT ON ${table} REFERENCING NEW TABLE AS placed
      FOR EACH STATEMENT EXECUTE FUNCTION watch_places()`
  ),
  // Above the limit is only what the first request of a window took, alone.
  `CREATE FUNCTION watch_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    is_first boolean := OLD IS NULL OR NEW.started_at <> OLD.started_at OR OLD.used = 0;
  BEGIN
    IF NEW.used > (SELECT tpm FROM api_keys WHERE id = NEW.key_id) AND (is_first OR NEW.used > OLD.used)
      AND (NOT is_first OR (SELECT count(*) FROM open_holds WHERE key_id = NEW.key_id AND created_at = now()) > 1) THEN
      INSERT INTO excesses VALUES (NEW.key_id, NEW.used || ' tokens in a window');
    END IF;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER watched AFTER INSERT OR UPDATE ON token_windows FOR EACH ROW EXECUTE FUNCTION watch_tokens()`
]

/** Lets the database write down each time that a key is given more than its limits allow. */
export const watchLimits = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.orDie(Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }))
)

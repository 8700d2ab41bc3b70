import type { SqlClient } from "@effect/sql"
import { lockTimeoutSql, type Query, type Waiter } from "../sql/Statement.ts"
import { type Closed, knownHolds, readClosed } from "./LedgerRows.ts"

const releaseText = (waiter: Waiter) => `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${lockTimeoutSql(waiter)}
      AND id IN (SELECT org_id FROM all_holds WHERE id = ANY ($1::uuid[])) ORDER BY id FOR NO KEY UPDATE
  ), of_processes AS (
    UPDATE open_holds SET released_at = now()
    WHERE id = ANY ($1::uuid[]) AND released_at IS NULL AND (SELECT count(*) FROM payers) > 0
    RETURNING id, org_id, amount
  ), others AS (
    UPDATE holds SET state = 'released', closed_at = now()
    WHERE id = ANY ($1::uuid[]) AND closed_at IS NULL AND (SELECT count(*) FROM payers) > 0
    RETURNING id, org_id, amount
  ), closed AS (
    SELECT * FROM of_processes UNION ALL SELECT * FROM others
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held
    FROM (SELECT org_id, sum(amount)::bigint AS held FROM closed GROUP BY org_id) AS sums
    WHERE organizations.id = sums.org_id
  ), known AS (${knownHolds})
  SELECT coalesce(CASE WHEN closed.id IS NOT NULL THEN 'released' END, known.state, 'missing') AS state,
    known.charged::text AS charged
  FROM input LEFT JOIN closed ON closed.id = input.id LEFT JOIN known ON known.id = input.id
  ORDER BY ord`

const texts = { many: releaseText("many"), one: releaseText("one") }

/** Closes open holds without a charge, whoever they belong to, and returns the state of each. */
export const release = (holds: ReadonlyArray<string>, waiter: Waiter = "many"): Query<Closed> => ({
  text: texts[waiter],
  values: [holds],
  read: readClosed
})

/** Longer than a statement that may place or settle a hold can be on its way. */
const keptMinutes = 10

const archivedAtOnce = 5_000

/** What was released stays known, but is in nobody's way. */
export const archiveReleased = (sql: SqlClient.SqlClient) => sql`
  WITH released AS (
    DELETE FROM open_holds WHERE id = ANY (ARRAY(
      SELECT id FROM open_holds WHERE released_at < now() - ${keptMinutes} * interval '1 minute'
      LIMIT ${archivedAtOnce} FOR UPDATE SKIP LOCKED
    )) RETURNING *
  )
  INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, created_at, closed_at)
  SELECT id, org_id, key_id, amount, 'released', instance_id, created_at, released_at FROM released
  ON CONFLICT (id) DO NOTHING`

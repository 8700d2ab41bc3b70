import type { SqlClient } from "@effect/sql"
import { type Duration, Schema } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { isAlive } from "../instance/InstanceState.ts"
import { lockTimeout } from "../sql/Statement.ts"

const keptHours = 24

export interface IdempotentRequest {
  readonly org: OrgId
  readonly endpoint: "images" | "videos"
  readonly key: string
  readonly fingerprint: string
}

/** Enough to build the same response again, without media. */
export type KeptResult = Readonly<Record<string, unknown>>

export interface Claim extends IdempotentRequest {
  readonly id: string
  readonly instance: string
}

export const Found = Schema.Struct({
  claim: Schema.String,
  state: Schema.Literal("working", "bound", "done"),
  isSame: Schema.Boolean,
  isExpired: Schema.Boolean,
  result: Schema.Unknown
})
export type Found = typeof Found.Type

/** A row claimed while this statement waited is never over: its instance may be too new to be visible. */
const isOver = (
  sql: SqlClient.SqlClient,
  deadAfter: Duration.Duration
) => sql`(kept.state = 'done' OR kept.created_at <= now() AND NOT EXISTS (
  SELECT FROM instances WHERE instances.id = kept.instance_id AND ${sql.literal(isAlive("instances", deadAfter))}
))`

/** Takes a key that is free or left by a dead process, whose bound result becomes final; safe to repeat. */
export const claim = (
  sql: SqlClient.SqlClient,
  { endpoint, fingerprint, id, instance, key, org }: Claim,
  deadAfter: Duration.Duration
) => sql`
  INSERT INTO idempotency_keys AS kept (claim, org_id, endpoint, key, fingerprint, instance_id)
  SELECT ${id}::uuid, ${org}, ${endpoint}, ${key}, ${fingerprint}, ${instance}::uuid WHERE ${lockTimeout(sql, "one")}
  ON CONFLICT (org_id, endpoint, key) DO UPDATE SET (claim, fingerprint, instance_id, created_at, state) = (
    SELECT
      CASE WHEN is_free THEN excluded.claim ELSE kept.claim END,
      CASE WHEN is_free THEN excluded.fingerprint ELSE kept.fingerprint END,
      CASE WHEN is_free THEN excluded.instance_id ELSE kept.instance_id END,
      CASE WHEN is_free THEN now() ELSE kept.created_at END,
      CASE WHEN is_over AND NOT is_free THEN 'done' ELSE kept.state END
    FROM (SELECT is_over, is_over AND kept.state = 'working' AS is_free FROM (SELECT ${isOver(sql, deadAfter)} AS is_over) AS life) AS fate
  )
  RETURNING claim, state, result, fingerprint = ${fingerprint} AS is_same,
    state = 'done' AND created_at <= now() - ${keptHours} * interval '1 hour' AS is_expired`

export const find = (sql: SqlClient.SqlClient, { endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) => sql`
  SELECT claim FROM idempotency_keys WHERE org_id = ${org} AND endpoint = ${endpoint} AND key = ${key}`

export const releaseKey = (sql: SqlClient.SqlClient, id: string) => sql`
  UPDATE idempotency_keys SET key = NULL WHERE claim = ${id}`

/** Returns a row if the claim still has its key. */
export const saveResult = (
  sql: SqlClient.SqlClient,
  id: string,
  state: "bound" | "done",
  { hold, result }: { readonly result: KeptResult; readonly hold: string }
) => sql`
  UPDATE idempotency_keys SET state = CASE state WHEN 'done' THEN 'done' ELSE ${state} END,
    result = ${JSON.stringify(result)}::jsonb, hold_id = ${hold}
  WHERE claim = ${id} AND key IS NOT NULL RETURNING claim`

export const finish = (sql: SqlClient.SqlClient, id: string) => sql`
  WITH freed AS (DELETE FROM idempotency_keys WHERE claim = ${id} AND state = 'working')
  UPDATE idempotency_keys SET state = 'done' WHERE claim = ${id} AND state = 'bound'`

/** As `finish`, while a statement of the claim may still run: its id stays taken, so none can take the key. */
export const tombstone = (sql: SqlClient.SqlClient, { endpoint, fingerprint, id, instance, org }: Claim) => sql`
  INSERT INTO idempotency_keys AS kept (claim, org_id, endpoint, fingerprint, instance_id)
  VALUES (${id}, ${org}, ${endpoint}, ${fingerprint}, ${instance})
  ON CONFLICT (claim) DO UPDATE SET
    key = CASE kept.state WHEN 'working' THEN NULL ELSE kept.key END,
    state = CASE kept.state WHEN 'bound' THEN 'done' ELSE kept.state END`

export const releaseOldKeys = (
  sql: SqlClient.SqlClient,
  olderThanSeconds: number,
  limit: number,
  deadAfter: Duration.Duration
) => sql`
  UPDATE idempotency_keys SET key = NULL WHERE claim IN (
    SELECT claim FROM idempotency_keys AS kept
    WHERE created_at <= now() - ${olderThanSeconds} * interval '1 second' AND (key IS NULL OR ${isOver(sql, deadAfter)})
    ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) RETURNING claim, result`

export const remove = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => sql`
  DELETE FROM idempotency_keys WHERE claim = ANY (${ids}::uuid[]) AND key IS NULL RETURNING claim`

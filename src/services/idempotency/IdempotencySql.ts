import type { SqlClient } from "@effect/sql"
import { type Duration, Schema } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { isAlive } from "../instance/Instance.ts"
import { lockTimeout } from "../sql/SqlStatement.ts"

const retentionHours = 24

export interface IdempotentRequest {
  readonly org: OrgId
  readonly endpoint: "images" | "videos"
  readonly key: string
  readonly fingerprint: string
}

/** The data of a response, without media. */
export type StoredResult = Readonly<Record<string, unknown>>

export interface Claim extends IdempotentRequest {
  readonly id: string
  readonly instance: string
}

export const ClaimRow = Schema.Struct({
  claim: Schema.String,
  state: Schema.Literal("working", "bound", "done"),
  isSame: Schema.Boolean,
  isExpired: Schema.Boolean,
  result: Schema.Unknown
})
export type ClaimRow = typeof ClaimRow.Type

/**
 * Returns the condition for a claim that is done or whose instance is dead. A row that was claimed while the statement
 * waited counts as unfinished, because its instance may be too new for the statement to see.
 */
const isFinished = (
  sql: SqlClient.SqlClient,
  deadAfter: Duration.Duration
) => sql`(kept.state = 'done' OR kept.created_at <= now() AND NOT EXISTS (
  SELECT FROM instances WHERE instances.id = kept.instance_id AND ${sql.literal(isAlive("instances", deadAfter))}
))`

/**
 * Claims a key that is free or was claimed by a dead process. If that process had bound a result, it becomes final
 * instead.
 */
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
    FROM (SELECT is_over, is_over AND kept.state = 'working' AS is_free FROM (SELECT ${isFinished(sql, deadAfter)} AS is_over) AS life) AS fate
  )
  RETURNING claim, state, result, fingerprint = ${fingerprint} AS is_same,
    state = 'done' AND created_at <= now() - ${retentionHours} * interval '1 hour' AS is_expired`

export const find = (sql: SqlClient.SqlClient, { endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) => sql`
  SELECT claim FROM idempotency_keys WHERE org_id = ${org} AND endpoint = ${endpoint} AND key = ${key}`

export const releaseKey = (sql: SqlClient.SqlClient, id: string) => sql`
  UPDATE idempotency_keys SET key = NULL WHERE claim = ${id}`

/** Stores the result of a claim. Returns no row if the claim no longer owns its key. */
export const saveResult = (
  sql: SqlClient.SqlClient,
  id: string,
  state: "bound" | "done",
  { hold, result }: { readonly result: StoredResult; readonly hold: string }
) => sql`
  UPDATE idempotency_keys SET state = CASE state WHEN 'done' THEN 'done' ELSE ${state} END,
    result = ${JSON.stringify(result)}::jsonb, hold_id = ${hold}
  WHERE claim = ${id} AND key IS NOT NULL RETURNING claim`

export const finish = (sql: SqlClient.SqlClient, id: string) => sql`
  WITH freed AS (DELETE FROM idempotency_keys WHERE claim = ${id} AND state = 'working')
  UPDATE idempotency_keys SET state = 'done' WHERE claim = ${id} AND state = 'bound'`

/**
 * Like `finish`, for when a statement of the claim may still run. The row's id keeps that statement from claiming the
 * key.
 */
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
    WHERE created_at <= now() - ${olderThanSeconds} * interval '1 second' AND (key IS NULL OR ${isFinished(sql, deadAfter)})
    ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) RETURNING claim, result`

export const remove = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => sql`
  DELETE FROM idempotency_keys WHERE claim = ANY (${ids}::uuid[]) AND key IS NULL RETURNING claim`

import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import * as Closing from "../ledger/Closing.ts"
import type { VideoError } from "./Errors.ts"

/**
 * Fails a job and gives its hold back, whoever works on it, in one transaction; says whether it was there to be ended.
 * @param isRefused whether its customer was told that there is no such job: its idempotency key is free then
 */
export const failVideo = (sql: SqlClient.SqlClient, id: string, error: VideoError, isRefused: boolean) =>
  Effect.gen(function* () {
    const [ended] = yield* sql<{ readonly holdId: string; readonly accepted: boolean }>`
      UPDATE videos SET status = 'failed', cancelling = step = 'rendering', completed_at = now(),
        next_at = CASE WHEN step = 'rendering' THEN now() END, step = 'over',
        doubts = doubts + (step = 'submitting')::int, error_code = ${error.code}, error_message = ${error.message},
        prompt = '', reference_url = NULL, lease = NULL, lease_until = NULL
      WHERE id = ${id} AND step <> 'over'
      RETURNING hold_id, accepted_at IS NOT NULL AS accepted`
    if (ended === undefined) return false
    yield* Closing.closeOne(sql, { id: ended.holdId, cost: undefined })
    if (isRefused || !ended.accepted) yield* unbind(sql, ended.holdId)
    return true
  }).pipe(sql.withTransaction, Effect.uninterruptible)

/** The idempotency key of a job that nobody was told of can be used again. */
export const unbind = (sql: SqlClient.SqlClient, hold: string) =>
  sql`DELETE FROM idempotency_keys WHERE hold_id = ${hold}`

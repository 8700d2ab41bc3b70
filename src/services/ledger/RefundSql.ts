import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { errorOf, internalFailure } from "../requests/RequestEntry.ts"
import { lockTimeout, rowsOf } from "../sql/Statement.ts"

/** Begins the reference of every refund, and of no other entry. */
export const refundPrefix = "refund:"

/** The condition for a hold's refunds, spelt as in their partial index. */
export const refundsOf = (hold: string): string =>
  `kind = 'adjustment' AND ref LIKE 'refund:%' AND substr(ref, 8, 36) = ${hold}::text`

export const refundedByHold = `
  SELECT substr(ref, 8, 36)::uuid AS hold_id, min(org_id) AS org_id, max(org_id) AS other_org_id,
    sum(amount) AS amount, min(amount) AS least
  FROM ledger_entries WHERE kind = 'adjustment' AND ref LIKE 'refund:%' GROUP BY 1`

/**
 * Expressions `charged`, whose `remaining` can be given back, and `entered`, the entry; without an amount it gives back
 * all that remains. A refund's reference counts those before it, so of two at a time one enters nothing.
 */
const giveBack = (sql: SqlClient.SqlClient, hold: string, amount: NanoUsd | null, note: string) => sql`
  payer AS (
    SELECT id FROM organizations
    WHERE ${lockTimeout(sql, "one")} AND id IN (SELECT org_id FROM all_holds WHERE id = ${hold}) FOR NO KEY UPDATE
  ), charged AS (
    SELECT hold.id, hold.org_id, coalesce(hold.charged, 0) AS charged, before.refunds,
      coalesce(hold.charged, 0) - before.amount AS remaining
    FROM all_holds AS hold, LATERAL (
      SELECT count(*) AS refunds, coalesce(sum(amount), 0)::bigint AS amount
      FROM ledger_entries WHERE ${sql.literal(refundsOf("hold.id"))}
    ) AS before
    WHERE hold.id = ${hold} AND (SELECT count(*) FROM payer) > 0
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT org_id, 'adjustment', coalesce(${amount}, remaining),
      ${refundPrefix} || id || CASE refunds WHEN 0 THEN '' ELSE ':' || refunds + 1 END, ${note}
    FROM charged WHERE remaining > 0 AND coalesce(${amount}, remaining) <= remaining
    ON CONFLICT DO NOTHING
    RETURNING *
  ), unspent AS (
    UPDATE key_spend SET spent = key_spend.spent - entered.amount FROM entered, ledger_entries AS charge
    WHERE charge.hold_id = ${hold} AND key_spend.key_id = charge.key_id
      AND key_spend.day = (charge.at AT TIME ZONE 'UTC')::date
  ), moved AS (
    UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered
    WHERE organizations.id = entered.org_id
  )`

/** Gives a failed request all of its charge back, and frees its idempotency key; does nothing the second time. */
export const refundFailed = (sql: SqlClient.SqlClient, hold: string) => sql<{ readonly contended: boolean }>`
  WITH ${giveBack(sql, hold, null, "charged for an answer that failed")}, freed AS (
    UPDATE idempotency_keys SET key = NULL WHERE hold_id = ${hold}
  ), relogged AS (
    UPDATE request_log SET charge = 0, images = NULL, seconds = NULL,
      status = CASE WHEN stream OR status = 499 THEN status ELSE 500 END,
      code = CASE WHEN status = 499 THEN code WHEN stream THEN 'stream_error' ELSE 'internal_error' END,
      error = CASE WHEN status <> 499 THEN ${JSON.stringify(errorOf(internalFailure))}::text::jsonb END
    WHERE id = ${hold} AND hold_id = id AND charge > 0
  )
  SELECT remaining > 0 AND NOT EXISTS (SELECT FROM entered) AS contended FROM charged`

export interface Refund {
  /** The request's row of the log. */
  readonly row: string
  readonly hold: string
  /** Undefined: all that remains. */
  readonly amount: NanoUsd | undefined
  readonly note: string
}

/** Gives back part or all of what a request was charged; its row of the log shows what it costs its customer then. */
export const refundRequest = (sql: SqlClient.SqlClient, { amount, hold, note, row }: Refund) => sql`
  WITH ${giveBack(sql, hold, amount ?? null, note)}, relogged AS (
    UPDATE request_log SET charge = charge - entered.amount FROM entered
    WHERE request_log.id = ${row} AND charge >= entered.amount
  )
  SELECT charged.charged, remaining, entered.id AS entry FROM charged LEFT JOIN entered ON true`

const Refunded = Schema.Struct({ hold: Schema.String, amount: NanoUsdFromRow })

/** What was given back of the charge of each hold; holds without a refund are left out. */
export const makeRefundedAmounts =
  (sql: SqlClient.SqlClient) =>
  (holds: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, NanoUsd>> =>
    holds.length === 0
      ? Effect.succeed(new Map())
      : Effect.map(
          rowsOf(Refunded)(sql`
            SELECT hold.id AS hold, refunds.amount FROM unnest(${holds}::text[]) AS hold (id), LATERAL (
              SELECT sum(amount)::bigint AS amount FROM ledger_entries WHERE ${sql.literal(refundsOf("hold.id"))}
            ) AS refunds WHERE refunds.amount IS NOT NULL`),
          (rows) => new Map(rows.map(({ amount, hold }) => [hold, amount]))
        )

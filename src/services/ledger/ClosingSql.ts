import { Record, Struct } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { requestColumns } from "../requests/RequestColumns.ts"
import {
  afterAllOf,
  amountIn,
  lockTimeoutOf,
  lockTimeoutSql,
  type Query,
  type Row,
  unexpectedRow,
  type Waiter
} from "../sql/SqlStatement.ts"

const states = ["settled", "released", "open", "missing"] as const

export interface ClosedHold {
  readonly state: (typeof states)[number]
  readonly charged: NanoUsd | undefined
}

const readClosedHold = (row: Row): ClosedHold => {
  const state = states.find((one) => one === row["state"])
  if (state === undefined) throw unexpectedRow(row)
  return { state, charged: row["charged"] === null ? undefined : amountIn(row["charged"], row) }
}

export interface Charge {
  readonly id: string
  readonly org: OrgId
  /** In nano-USD. If the cost exceeds the hold, only the amount of the hold is charged. */
  readonly cost: NanoUsd
}

/** Columns of the request log whose values do not depend on the settlement. */
const logColumns = Record.keys(Struct.omit(requestColumns, "id", "charge", "notes")).join(", ")

const arePayersLocked = "(SELECT count(*) FROM payers) > 0"

/**
 * True once the organizations are locked. Searches an array of ids, because the plan of a join may read every hold ever
 * opened.
 */
const isLockedInput = `id = ANY ($1::uuid[]) AND ${arePayersLocked}`

/** Returns the condition for input holds that a `WITH` expression lacks, in a form that is cheap if there are none. */
const missingIn = (expression: string) => `id = ANY (ARRAY(SELECT id FROM input EXCEPT SELECT id FROM ${expression}))`

/**
 * Returns the `WITH` expression `outcome`: the holds of `closed`, and input holds that another statement has closed or
 * is closing.
 */
const outcome = (state: ClosedHold["state"], charged: string) => `outcome AS (
    SELECT id, '${state}' AS state, ${charged} AS charged FROM closed
    UNION ALL
    SELECT id, state, charged FROM all_holds WHERE ${missingIn("closed")}
  )`

const outcomes = `
  SELECT coalesce(state, 'missing') AS state, charged::text AS charged FROM input LEFT JOIN outcome USING (id)`

/**
 * To save CPU, `notify_of_charges` runs only if an organization of the batch has a webhook endpoint. In batches of 1,
 * 8, 32 and 256, PostgreSQL uses 920, 181, 119 and 61 us of CPU per charge.
 */
const settleText = `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS t (id, cost, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${lockTimeoutSql("$5")} AND id = ANY ($3::text[]) ORDER BY id FOR NO KEY UPDATE
  ), of_processes AS (
    DELETE FROM open_holds WHERE ${isLockedInput} AND released_at IS NULL RETURNING id, org_id, key_id, amount, created_at
  ), of_jobs AS (
    UPDATE holds SET state = 'settled', closed_at = now(),
      charged = least(amount, (SELECT cost FROM input WHERE input.id = holds.id))
    WHERE ${missingIn("of_processes")} AND ${arePayersLocked} AND closed_at IS NULL
    RETURNING id, org_id, key_id, amount, charged
  ), closed AS (
    SELECT id, org_id, key_id, amount, least(amount, cost) AS charged, amount AS held, created_at AS held_at
    FROM of_processes JOIN input USING (id)
    UNION ALL
    SELECT id, org_id, key_id, amount, charged, NULL, NULL FROM of_jobs
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id, held, held_at, public_id)
    SELECT org_id, 'charge', -charged, id, key_id, held, held_at, NULL FROM closed ORDER BY id
  ), spent AS (
    INSERT INTO key_spend (key_id, day, spent)
    SELECT key_id, (now() AT TIME ZONE 'UTC')::date, sum(charged) FROM closed GROUP BY key_id
    ON CONFLICT (key_id, day) DO UPDATE SET spent = key_spend.spent + excluded.spent
    RETURNING key_id
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held, balance = organizations.balance - sums.charged
    FROM (
      SELECT org_id, sum(amount)::bigint AS held, sum(charged)::bigint AS charged FROM closed GROUP BY org_id
    ) AS sums
    WHERE organizations.id = sums.org_id
    RETURNING organizations.id
  ), notified AS (
    SELECT notify_of_charges(
      ARRAY(SELECT org_id FROM closed), ARRAY(SELECT key_id FROM closed), ARRAY(SELECT charged FROM closed))
    WHERE EXISTS (SELECT FROM webhook_endpoints WHERE disabled_at IS NULL AND org_id = ANY ($3::text[]))
      AND ${afterAllOf("spent")} AND ${afterAllOf("moved")}
  ), ${outcome("settled", "charged")}, logged AS (
    INSERT INTO request_log (id, ${logColumns}, charge, notes)
    SELECT entry.id, ${logColumns}, coalesce(outcome.charged, 0),
      CASE WHEN outcome.state = 'released' THEN notes || 'hold_lost'::text ELSE notes END
    FROM json_populate_recordset(NULL::request_log, $4::json) AS entry JOIN outcome ON outcome.id = entry.hold_id
    WHERE outcome.state IN ('settled', 'released')
    ON CONFLICT (id) DO NOTHING
  )
  ${outcomes} WHERE ${afterAllOf("notified")} ORDER BY ord`

/**
 * Returns the statement that charges open holds and reads the state of each. It also writes the log `rows` of the holds
 * that it settles, and of those that were already released.
 */
export const settle = (
  charges: ReadonlyArray<Charge>,
  rows: ReadonlyArray<string> = [],
  waiter: Waiter = "many"
): Query<ClosedHold> => ({
  text: settleText,
  values: [
    charges.map(({ id }) => id),
    charges.map(({ cost }) => cost),
    charges.map(({ org }) => org),
    `[${rows.join(",")}]`,
    lockTimeoutOf(waiter)
  ],
  read: readClosedHold
})

const releaseText = `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${lockTimeoutSql("$2")}
      AND id IN (SELECT org_id FROM all_holds WHERE id = ANY ($1::uuid[])) ORDER BY id FOR NO KEY UPDATE
  ), of_processes AS (
    UPDATE open_holds SET released_at = now() WHERE ${isLockedInput} AND released_at IS NULL RETURNING id, org_id, amount
  ), of_jobs AS (
    UPDATE holds SET state = 'released', closed_at = now() WHERE ${isLockedInput} AND closed_at IS NULL
    RETURNING id, org_id, amount
  ), closed AS (
    SELECT * FROM of_processes UNION ALL SELECT * FROM of_jobs
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held
    FROM (SELECT org_id, sum(amount)::bigint AS held FROM closed GROUP BY org_id) AS sums
    WHERE organizations.id = sums.org_id
  ), ${outcome("released", "NULL::bigint")}
  ${outcomes} ORDER BY ord`

/** Returns the statement that releases open holds of any instance or job, and reads the state of each. */
export const release = (holds: ReadonlyArray<string>, waiter: Waiter = "many"): Query<ClosedHold> => ({
  text: releaseText,
  values: [holds, lockTimeoutOf(waiter)],
  read: readClosedHold
})

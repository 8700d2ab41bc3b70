import { Record, Struct } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { requestColumns } from "../requests/RequestColumns.ts"
import { amountIn, lockTimeoutSql, type Query, type Row, unexpectedRow, type Waiter } from "../sql/Statement.ts"
import { lowCredits, notify, reachedCaps, reachedOrganizationCaps } from "../webhooks/CrossingSql.ts"

const states = ["settled", "released", "open", "missing"] as const

/** What a statement that closes holds says of one. */
export interface Closed {
  readonly state: (typeof states)[number]
  readonly charged: NanoUsd | undefined
}

const readClosed = (row: Row): Closed => {
  const state = states.find((one) => one === row["state"])
  if (state === undefined) throw unexpectedRow(row)
  return { state, charged: row["charged"] === null ? undefined : amountIn(row["charged"], row) }
}

/** Those of `input` that are not among the `closed`: nearly always none, which the planner cannot know. */
const knownHolds = `
  SELECT id, state, charged FROM all_holds
  WHERE id = ANY (ARRAY(SELECT id FROM input EXCEPT SELECT id FROM closed))`

export interface Charge {
  readonly id: string
  readonly org: OrgId
  /** Charged up to the hold. */
  readonly cost: NanoUsd
}

/** But for those that the settlement decides. */
const logColumns = Record.keys(Struct.omit(requestColumns, "id", "charge", "notes")).join(", ")

const notices = notify(
  "SELECT id FROM payers",
  `${lowCredits} UNION ALL ${reachedCaps} UNION ALL ${reachedOrganizationCaps}`
)

/** By the ids as they are given: joined to the input alone, a plan may go through all that was ever open. */
const isOpen = "hold.id = ANY ($1::uuid[]) AND hold.id = input.id AND (SELECT count(*) FROM payers) > 0"

const closeOfProcess = `
  DELETE FROM open_holds AS hold USING input WHERE ${isOpen} AND hold.released_at IS NULL
  RETURNING hold.id, hold.org_id, hold.key_id, hold.amount, least(input.cost, hold.amount) AS charged,
    hold.amount AS held, hold.created_at AS held_at`

const closeOfJob = `
  UPDATE holds AS hold SET state = 'settled', charged = least(input.cost, hold.amount), closed_at = now()
  FROM input WHERE ${isOpen} AND hold.closed_at IS NULL
  RETURNING hold.id, hold.org_id, hold.key_id, hold.amount, hold.charged, NULL::bigint AS held,
    NULL::timestamptz AS held_at`

const settleText = (closeHolds: string, waiter: Waiter, notifies: boolean) => `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS t (id, cost, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${lockTimeoutSql(waiter)} AND id = ANY ($3::text[])
    ORDER BY id FOR NO KEY UPDATE
  ), closed AS (${closeHolds}), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id, held, held_at, public_id)
    SELECT org_id, 'charge', -charged, id, key_id, held, held_at, NULL FROM closed
  ), spent AS (
    INSERT INTO key_spend (key_id, day, spent)
    SELECT key_id, (now() AT TIME ZONE 'UTC')::date, sum(charged) FROM closed GROUP BY key_id
    ON CONFLICT (key_id, day) DO UPDATE SET spent = key_spend.spent + excluded.spent
    RETURNING key_id, day, spent
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held, balance = organizations.balance - sums.charged
    FROM (
      SELECT org_id, sum(amount)::bigint AS held, sum(charged)::bigint AS charged FROM closed GROUP BY org_id
    ) AS sums
    WHERE organizations.id = sums.org_id
    RETURNING organizations.id, balance, organizations.held, notify_below, sums.charged, cap, cap_period, cap_spent
  ), ${notifies ? `${notices}, ` : ""}known AS (${knownHolds}), outcome AS (
    SELECT input.id, input.ord, coalesce(CASE WHEN closed.id IS NOT NULL THEN 'settled' END, known.state, 'missing') AS state,
      coalesce(closed.charged, known.charged) AS charged
    FROM input LEFT JOIN closed ON closed.id = input.id LEFT JOIN known ON known.id = input.id
  ), logged AS (
    INSERT INTO request_log (id, ${logColumns}, charge, notes)
    SELECT entry.id, ${logColumns}, coalesce(outcome.charged, 0),
      CASE WHEN outcome.state = 'released' THEN notes || 'hold_lost'::text ELSE notes END
    FROM json_populate_recordset(NULL::request_log, $4::json) AS entry JOIN outcome ON outcome.id = entry.hold_id
    WHERE outcome.state IN ('settled', 'released')
    ON CONFLICT (id) DO NOTHING
  )
  SELECT state, charged::text AS charged FROM outcome ORDER BY ord`

const settleTexts = {
  many: settleText(closeOfProcess, "many", false),
  manyNotified: settleText(closeOfProcess, "many", true),
  one: settleText(closeOfProcess, "one", true),
  job: settleText(closeOfJob, "one", true)
}

/**
 * Charges open holds of processes, or of jobs, and returns the state of each; log `rows` are written with their holds
 * or not at all. What writes webhooks takes PostgreSQL 18, 11 and 11 % of CPU more in batches of 1, 8 and 32: `many` leaves it out.
 */
export const settle = (
  charges: ReadonlyArray<Charge>,
  kind: keyof typeof settleTexts = "many",
  rows: ReadonlyArray<string> = []
): Query<Closed> => ({
  text: settleTexts[kind],
  values: [
    charges.map(({ id }) => id),
    charges.map(({ cost }) => cost),
    charges.map(({ org }) => org),
    `[${rows.join(",")}]`
  ],
  read: readClosed
})

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

const releaseTexts = { many: releaseText("many"), one: releaseText("one") }

/** Closes open holds without a charge, whoever they belong to, and returns the state of each. */
export const release = (holds: ReadonlyArray<string>, waiter: Waiter = "many"): Query<Closed> => ({
  text: releaseTexts[waiter],
  values: [holds],
  read: readClosed
})

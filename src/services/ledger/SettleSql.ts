import type { NanoUsd } from "../../domain/Money.ts"
import { lockTimeoutSql, type Query, type Row, type Waiter } from "../sql/Statement.ts"
import { lowCredits, notify, reachedCaps } from "../webhooks/CrossingSql.ts"
import { amountIn, isKeyOf, unexpectedRow } from "./LedgerRows.ts"

export interface Closing {
  readonly id: string
  readonly cost: NanoUsd | undefined
}

export interface Closed {
  readonly state: "open" | "settled" | "released" | "missing"
  readonly charged: NanoUsd | undefined
}

const states = { open: true, settled: true, released: true, missing: true } as const

const readClosed = (row: Row): Closed => {
  const { charged, state } = row
  if (!isKeyOf(states, state)) throw unexpectedRow(row)
  return { state, charged: charged === null ? undefined : amountIn(charged, row) }
}

const logColumns = `request_id, at, surface, status, code, org_id, key_id, address, user_agent, model, route, provider,
  preferred_route, stream, attempts, provider_request_id, prompt_tokens, completion_tokens, cached_tokens,
  cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, web_searches, hold_id, cost, first_byte_ms, total_ms`

const notices = notify("SELECT id FROM payers", `${lowCredits} UNION ALL ${reachedCaps}`)

const closeText = (waiter: Waiter, notifies: boolean) => `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS t (id, cost, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${lockTimeoutSql(waiter)}
      AND id IN (SELECT org_id FROM holds WHERE id IN (SELECT id FROM input)) ORDER BY id FOR NO KEY UPDATE
  ), closed AS (
    UPDATE holds SET
      state = CASE WHEN input.cost IS NULL THEN 'released' ELSE 'settled' END,
      charged = CASE WHEN input.cost IS NOT NULL THEN least(input.cost, holds.amount) END,
      closed_at = now()
    FROM input WHERE holds.id = input.id AND holds.closed_at IS NULL AND (SELECT count(*) FROM payers) > 0
    RETURNING holds.id, holds.org_id, holds.key_id, holds.amount, holds.state, holds.charged
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id)
    SELECT org_id, 'charge', -charged, id, key_id FROM closed WHERE state = 'settled'
  ), spent AS (
    INSERT INTO key_spend (key_id, day, spent)
    SELECT key_id, (now() AT TIME ZONE 'UTC')::date, sum(charged) FROM closed WHERE state = 'settled' GROUP BY key_id
    ON CONFLICT (key_id, day) DO UPDATE SET spent = key_spend.spent + excluded.spent
    RETURNING key_id, day, spent
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held, balance = organizations.balance - sums.charged
    FROM (
      SELECT org_id, sum(amount)::bigint AS held, coalesce(sum(charged), 0)::bigint AS charged
      FROM closed GROUP BY org_id
    ) AS sums
    WHERE organizations.id = sums.org_id
    RETURNING organizations.id, balance, organizations.held, notify_below, sums.charged
  ), ${notifies ? `${notices}, ` : ""}outcome AS (
    SELECT input.id, input.ord, coalesce(closed.state, holds.state, 'missing') AS state,
      coalesce(closed.charged, holds.charged) AS charged
    FROM input LEFT JOIN holds ON holds.id = input.id LEFT JOIN closed ON closed.id = input.id
  ), logged AS (
    INSERT INTO request_log (id, ${logColumns}, charge, notes)
    SELECT entry.id, ${logColumns}, coalesce(outcome.charged, 0),
      CASE WHEN outcome.state = 'released' THEN notes || 'hold_lost'::text ELSE notes END
    FROM json_populate_recordset(NULL::request_log, $3::json) AS entry JOIN outcome ON outcome.id = entry.hold_id
    WHERE outcome.state IN ('settled', 'released')
    ON CONFLICT (id) DO NOTHING
  )
  SELECT state, charged::text AS charged FROM outcome ORDER BY ord`
const closeForMany = closeText("many", false)
const closeAndNotify = { many: closeText("many", true), one: closeText("one", true) }

/**
 * Closes open holds and returns the state of each; log `rows` are written with their holds or not at all. What writes
 * webhooks makes a chat's statement a seventh slower, so it is left out where no organization has an endpoint.
 */
export const close = (
  batch: ReadonlyArray<Closing>,
  waiter: Waiter = "many",
  rows: ReadonlyArray<string> = [],
  notifies = false
): Query<Closed> => ({
  text: waiter === "many" && !notifies ? closeForMany : closeAndNotify[waiter],
  values: [batch.map(({ id }) => id), batch.map(({ cost }) => cost ?? null), `[${rows.join(",")}]`],
  read: readClosed
})

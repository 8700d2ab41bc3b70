import type { SqlClient, Statement } from "@effect/sql"
import type { Row } from "../sql/Statement.ts"
import { refundedByHold } from "./RefundSql.ts"
import { comparable, totalsInvariants } from "./TotalsInvariants.ts"

/** `div` rounds up exactly: a quotient of numerics has only some sixteen digits. */
const byRates = `
  div(
    (log.prompt_tokens - coalesce(log.cached_tokens, 0) - coalesce(log.cache_write_tokens, 0))
      * (tier ->> 'prompt')::numeric
    + coalesce(log.cached_tokens, 0) * (tier ->> 'cached_prompt')::numeric
    + (coalesce(log.cache_write_tokens, 0) - coalesce(log.cache_write_hour_tokens, 0)) * (tier ->> 'cache_write')::numeric
    + coalesce(log.cache_write_hour_tokens, 0) * (tier ->> 'cache_write_1h')::numeric
    + coalesce(log.completion_tokens, 0) * (tier ->> 'completion')::numeric
    + coalesce(log.web_searches, 0) * (list.rates ->> 'web_search')::numeric * 1000
    + 999999, 1000000)`

/** An answer without output that a filter or the model refused is free, and nothing else is. */
const charged = `
  CASE WHEN 'charge_waived' = ANY (log.notes) AND coalesce(log.completion_tokens, 0) = 0 THEN 0 ELSE ${byRates} END`

const addedUntil = "(SELECT added_until FROM monthly_charges_progress)"

export interface Invariant {
  readonly name: string
  readonly check: Statement.Statement<Row>
}

const checks = (sql: SqlClient.SqlClient): Readonly<Record<string, Statement.Statement<Row>>> => ({
  "a balance is the sum of the organization's entries": sql`
    SELECT organizations.id AS org_id, balance, coalesce(sums.total, 0) AS entries
    FROM organizations
    LEFT JOIN (SELECT org_id, sum(amount) AS total FROM ledger_entries GROUP BY org_id) AS sums ON sums.org_id = organizations.id
    WHERE balance <> coalesce(sums.total, 0)`,
  "what is held is the sum of the organization's open holds": sql`
    SELECT organizations.id AS org_id, held, coalesce(sums.total, 0) AS open_holds
    FROM organizations
    LEFT JOIN (
      SELECT org_id, sum(amount) AS total FROM all_holds WHERE state = 'open' GROUP BY org_id
    ) AS sums ON sums.org_id = organizations.id
    WHERE held <> coalesce(sums.total, 0) OR held < 0`,
  // One that left no row but its charge cannot have another.
  "a settled hold has exactly one charge, of what the hold says was charged": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.state, holds.charged, count(e.id)::int AS charges, sum(e.amount) AS entered
    FROM holds LEFT JOIN ledger_entries e ON e.hold_id = holds.id AND e.held IS NULL
    WHERE holds.state = 'settled'
    GROUP BY holds.id
    HAVING count(e.id) <> 1 OR sum(e.amount) <> -holds.charged`,
  "an open or released hold has no charge": sql`
    SELECT hold.id AS hold_id, hold.org_id, hold.state, e.id AS entry_id, e.amount
    FROM all_holds AS hold JOIN ledger_entries e ON e.hold_id = hold.id WHERE hold.state <> 'settled'`,
  "a hold is in one place": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.state FROM open_holds JOIN holds USING (id)
    UNION ALL
    SELECT holds.id, holds.org_id, holds.state FROM holds JOIN ledger_entries e ON e.hold_id = holds.id
    WHERE e.held IS NOT NULL`,
  "an open hold belongs to a process that was there": sql`
    SELECT open_holds.id AS hold_id, open_holds.org_id, open_holds.instance_id
    FROM open_holds LEFT JOIN instances ON instances.id = open_holds.instance_id
    WHERE open_holds.released_at IS NULL AND instances.id IS NULL`,
  "a charge belongs to its hold's organization and key": sql`
    SELECT e.id AS entry_id, e.org_id, e.key_id, holds.id AS hold_id
    FROM ledger_entries e LEFT JOIN holds ON holds.id = e.hold_id
    WHERE e.kind = 'charge' AND e.held IS NULL
      AND (holds.id IS NULL OR holds.org_id <> e.org_id OR holds.key_id <> e.key_id)`,
  "a charge never exceeds its hold, and is never negative": sql`SELECT id AS hold_id, org_id, amount, charged FROM all_holds WHERE charged > amount OR charged < 0`,
  "a hold belongs to the organization of its key": sql`
    SELECT hold.id AS hold_id, hold.org_id, hold.key_id
    FROM all_holds AS hold LEFT JOIN api_keys ON api_keys.id = hold.key_id
    WHERE api_keys.org_id IS DISTINCT FROM hold.org_id`,
  "a key's daily spend is the sum of its charges of that day that were not given back": sql`
    SELECT coalesce(s.key_id, c.key_id) AS key_id, coalesce(s.day, c.day)::text AS day, s.spent, c.charged
    FROM key_spend s FULL JOIN (
      SELECT e.key_id, (e.at AT TIME ZONE 'UTC')::date AS day, -sum(e.amount + coalesce(refund.amount, 0)) AS charged
      FROM ledger_entries e
      LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = e.hold_id
      WHERE e.kind = 'charge' GROUP BY 1, 2
    ) AS c ON c.key_id = s.key_id AND c.day = s.day
    WHERE coalesce(s.spent, 0) <> coalesce(c.charged, 0)`,
  "what is counted for an organization's cap is what its keys have spent from the beginning of the period on": sql`
    SELECT organizations.id AS org_id, cap_since::text, cap_spent, sum(key_spend.spent) AS spent
    FROM organizations
    LEFT JOIN api_keys ON api_keys.org_id = organizations.id
    LEFT JOIN key_spend ON key_spend.key_id = api_keys.id AND key_spend.day >= cap_since
    WHERE organizations.cap IS NOT NULL
    GROUP BY organizations.id HAVING cap_spent IS DISTINCT FROM coalesce(sum(key_spend.spent), 0)`,
  "refunds give back no more than their hold was charged": sql`
    SELECT refund.hold_id, refund.org_id, refund.amount, hold.charged
    FROM (${sql.literal(refundedByHold)}) AS refund
    -- Each hold by its indexes: joined, the view is read whole for every refund. OFFSET keeps it apart.
    LEFT JOIN LATERAL (SELECT org_id, charged FROM all_holds WHERE id = refund.hold_id OFFSET 0) AS hold ON true
    WHERE coalesce(hold.charged, 0) < refund.amount OR refund.least <= 0
      OR hold.org_id <> refund.org_id OR hold.org_id <> refund.other_org_id`,
  "a final result was paid for by a closed hold, or by a job's, of its organization": sql`
    SELECT kept.claim, kept.org_id, kept.endpoint, hold.id AS hold_id, hold.state
    FROM idempotency_keys kept JOIN all_holds AS hold ON hold.id = kept.hold_id
    WHERE kept.org_id <> hold.org_id OR (kept.state = 'done' AND hold.state = 'open' AND NOT hold.is_job)`,
  // A client that left was served, and a job is charged after its response.
  "a request that failed is not charged": sql`
    SELECT log.request_id, log.id AS log_id, log.org_id, log.status, log.code, hold.id AS hold_id, hold.charged
    FROM request_log log JOIN all_holds AS hold ON hold.id = log.hold_id
    LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = hold.id
    WHERE (log.status >= 400 AND log.status <> 499 OR log.code = 'stream_error')
      AND hold.charged > coalesce(refund.amount, 0)`,
  // Adjustments and reversals of payments may take what is held, so what they took is added back.
  "what is held was covered by the balance": sql`
    SELECT organizations.id AS org_id, balance, held, coalesce(taken.total, 0) AS corrected
    FROM organizations
    LEFT JOIN (
      SELECT org_id, sum(amount) AS total FROM ledger_entries
      WHERE kind IN ('adjustment', 'payment_reversal') AND amount < 0 GROUP BY org_id
    ) AS taken ON taken.org_id = organizations.id
    WHERE held > 0 AND balance - coalesce(taken.total, 0) < held`,
  "no charge took a balance below zero": sql`
    SELECT org_id, id AS entry_id, balance, corrected FROM (
      SELECT org_id, id, kind, sum(amount) OVER (PARTITION BY org_id ORDER BY id) AS balance,
        sum(amount) FILTER (WHERE kind IN ('adjustment', 'payment_reversal') AND amount < 0)
          OVER (PARTITION BY org_id ORDER BY id) AS corrected
      FROM ledger_entries
    ) AS running
    WHERE kind = 'charge' AND balance - coalesce(corrected, 0) < 0`,
  "a video that is not over has an open hold of its price, which belongs to no process": sql`
    SELECT videos.id AS video_id, videos.org_id, videos.price, holds.id AS hold_id, holds.state, holds.amount
    FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
    WHERE videos.step <> 'over'
      AND (holds.state IS DISTINCT FROM 'open' OR holds.instance_id IS NOT NULL OR holds.amount <> videos.price)`,
  "a completed video was charged its price": sql`
    SELECT videos.id AS video_id, videos.org_id, videos.price, holds.id AS hold_id, holds.state, holds.charged
    FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
    WHERE videos.status = 'completed' AND holds.charged IS DISTINCT FROM videos.price`,
  "a failed video was charged nothing": sql`
    SELECT videos.id AS video_id, videos.org_id, holds.id AS hold_id, holds.state, holds.charged
    FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
    WHERE videos.status = 'failed' AND holds.state IS DISTINCT FROM 'released'`,
  "a video was paid for by its own organization and key": sql`
    SELECT videos.id AS video_id, videos.org_id, videos.key_id, holds.id AS hold_id
    FROM videos JOIN holds ON holds.id = videos.hold_id
    WHERE holds.org_id <> videos.org_id OR holds.key_id <> videos.key_id`,
  "an open hold that belongs to no process is that of a video that is not over": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.amount, videos.id AS video_id, videos.status
    FROM holds LEFT JOIN videos ON videos.hold_id = holds.id
    WHERE holds.state = 'open' AND holds.instance_id IS NULL AND coalesce(videos.step, 'over') = 'over'`,
  "a payment has exactly one entry, of its amount and organization": sql`
    SELECT payment.id AS payment_id, payment.org_id, payment.amount, e.id AS entry_id, e.amount AS entered
    FROM payments AS payment LEFT JOIN ledger_entries e ON e.ref = 'stripe:' || payment.payment_intent
    WHERE payment.status = 'paid' AND (
      e.id IS DISTINCT FROM payment.entry_id OR e.kind <> 'top_up' OR e.amount <> payment.amount OR e.org_id <> payment.org_id
    )`,
  "what was taken back of a payment never exceeds it": sql`
    SELECT payment.id AS payment_id, payment.org_id, payment.amount, sum(taken) AS taken
    FROM payments AS payment JOIN payment_reversals AS reversal ON payment_id = payment.id
    GROUP BY payment.id
    HAVING sum(taken) > CASE payment.status WHEN 'paid' THEN payment.amount ELSE 0 END
      OR bool_or(taken > reversal.amount)`,
  // An operator's entry with a payment's reference counts as that payment.
  "the refunds and disputes of a payment are charged, up to its amount": sql`
    SELECT payment.id AS payment_id, e.org_id, payment.status, e.amount, sum(reversal.amount) AS reversed, sum(taken) AS taken
    FROM payments AS payment JOIN payment_reversals AS reversal ON payment_id = payment.id
    JOIN ledger_entries e ON e.kind = 'top_up' AND e.ref = 'stripe:' || payment.payment_intent
    GROUP BY payment.id, e.id
    HAVING sum(taken) <> least(e.amount, sum(reversal.amount))`,
  "the amount taken by a refund or dispute is the sum of its entries": sql`
    SELECT coalesce(reversal.id, entered.id) AS reversal_id, entered.org_id, taken, entered.amount AS entered
    FROM payment_reversals AS reversal FULL JOIN (
      SELECT substring(ref FROM '^stripe:([^:]+)') AS id, min(org_id) AS org_id, max(org_id) AS other_org_id,
        sum(amount) AS amount
      FROM ledger_entries WHERE kind = 'payment_reversal' GROUP BY 1
    ) AS entered ON entered.id = reversal.id
    LEFT JOIN payments ON payments.id = payment_id
    WHERE reversal.id IS NULL OR taken <> -coalesce(entered.amount, 0)
      OR entered.org_id <> payments.org_id OR entered.other_org_id <> payments.org_id`,
  ...totalsInvariants(sql),
  // Chats that were cut to their hold are excluded, and so are those that failed or were left before their charge.
  "a chat was charged its token counts by the rates that it came with": sql`
    SELECT log.id AS log_id, log.org_id, log.hold_id, log.charge, ${sql.literal(charged)} AS by_rates
    FROM request_log AS log
    JOIN price_lists AS list ON list.id = log.price_id
    CROSS JOIN LATERAL (
      SELECT tier FROM jsonb_array_elements(list.rates -> 'tiers') AS tier
      WHERE (tier ->> 'above')::bigint = 0 OR (tier ->> 'above')::bigint < log.prompt_tokens
      ORDER BY (tier ->> 'above')::bigint DESC LIMIT 1
    ) AS rated
    LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = log.hold_id
    WHERE log.surface = 'chat' AND log.hold_id IS NOT NULL AND log.prompt_tokens IS NOT NULL
      AND NOT log.notes && ARRAY['hold_exceeded', 'hold_lost', 'replayed']
      AND (log.charge > 0 OR log.status < 400 AND log.code IS DISTINCT FROM 'stream_error')
      AND log.charge + coalesce(refund.amount, 0) <> ${sql.literal(charged)}`,
  // Each statement begins where the one before ends, and the last ends at the balance.
  "what statements have added up of a month is what was charged in it": sql`
    SELECT coalesce(sums.org_id, charges.org_id) AS org_id, coalesce(sums.month, charges.month)::text AS month,
      sums.requests, charges.requests AS charges, sums.charge AS added, charges.charge AS charged
    FROM (
      SELECT org_id, month, sum(requests) AS requests, sum(charge) AS charge FROM monthly_charges GROUP BY 1, 2
    ) AS sums FULL JOIN (
      SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date AS month, count(*) AS requests, -sum(amount) AS charge
      FROM ledger_entries WHERE kind = 'charge' AND at < ${sql.literal(addedUntil)} GROUP BY 1, 2
    ) AS charges ON charges.org_id = sums.org_id AND charges.month = sums.month
    WHERE (sums.requests, sums.charge) IS DISTINCT FROM (charges.requests, charges.charge)`,
  "what is kept of a removed request is that of a charge which is to be added up": sql`
    SELECT kept.hold_id, e.at FROM removed_charge_details AS kept LEFT JOIN ledger_entries AS e ON e.hold_id = kept.hold_id
    WHERE e.at IS NULL OR e.at < ${sql.literal(addedUntil)}`,
  "a request that is to be counted is in the request log, and is counted once": sql`
    SELECT id AS log_id, count(*)::int AS times FROM uncounted_requests GROUP BY id
    HAVING count(*) > 1 OR NOT EXISTS (SELECT FROM request_log WHERE request_log.id = uncounted_requests.id)`,
  "the request log says what each hold was charged, less what was given back": sql`
    SELECT log.hold_id, log.log_id, log.charge AS logged, hold.charged, refund.amount AS refunded
    FROM (
      SELECT coalesce(hold_id, id) AS hold_id, min(id::text) AS log_id, sum(charge) AS charge FROM request_log
      WHERE at >= ${sql.literal(comparable)} AND (hold_id IS NOT NULL OR charge <> 0) GROUP BY 1
    ) AS log
    LEFT JOIN all_holds AS hold ON hold.id = log.hold_id
    LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = log.hold_id
    WHERE log.charge <> coalesce(hold.charged, 0) - coalesce(refund.amount, 0)`,
  // A request is received before it holds anything.
  "a charge has its row in the request log": sql`
    SELECT hold.id AS hold_id, hold.org_id, hold.charged
    FROM all_holds AS hold, usage_bounds
    WHERE hold.state = 'settled' AND hold.created_at >= greatest(logged_from, rows_from + interval '1 day')
      AND NOT EXISTS (SELECT FROM request_log WHERE request_log.hold_id = hold.id)`
})

/** By name, in the order of proof. */
export const invariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> =>
  Object.entries(checks(sql)).map(([name, check]) => ({ name, check }))

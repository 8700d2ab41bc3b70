import type { SqlClient, Statement } from "@effect/sql"
import { Record } from "effect"
import { orderedKinds, parentOf, partsOf, type TokenKindName, tokenKinds } from "../../domain/TokenKinds.ts"
import { totalColumns } from "../requests/RequestColumns.ts"
import { requestCounts } from "../requests/RequestCounts.ts"
import type { Row } from "../sql/SqlStatement.ts"
import { refundedByHold } from "./Refunds.ts"

/** SQL for the time from which both the usage totals and the request log are complete. */
export const comparable = "(SELECT greatest(filled_from, rows_from) FROM usage_bounds)"
const sums = totalColumns.map((name) => `sum(${name}) AS ${name}`).join(", ")
const [totalledColumns, countedColumns] = ["totals", "counted"].map((from) =>
  totalColumns.map((name) => `coalesce(${from}.${name}, 0)`).join(", ")
)
/**
 * The columns that identify a total. Models that were not sold at the time are counted together, without their names.
 */
const keyNames = [
  "org_id",
  "key_id",
  "CASE WHEN is_sold THEN model ELSE '' END AS model",
  "route",
  "provider",
  "surface",
  "status",
  "is_sold"
]

const parts = `
  SELECT p.* FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.at >= ${comparable} AND r.id NOT IN (SELECT id FROM uncounted_requests)`

const compareHours = (hourTable: string, rowTable: string, keyNames: ReadonlyArray<string>) => {
  const [keyColumns, keyPositions] = [keyNames.join(", "), keyNames.map((_, index) => index + 2).join(", ")]
  return `
    WITH totals AS (
      SELECT starts_at AS hour, ${keyColumns}, ${sums} FROM ${hourTable} WHERE starts_at >= ${comparable} GROUP BY 1, ${keyPositions}
    ), counted AS (
      SELECT hour, ${keyColumns}, ${sums} FROM (${rowTable}) AS rows GROUP BY 1, ${keyPositions}
    )
    SELECT *, totals.charge AS totalled, counted.charge AS counted FROM totals
    FULL JOIN counted USING (hour, ${keyNames.map((name) => name.replace(/^.* AS /, "")).join(", ")})
    WHERE (${totalledColumns}) IS DISTINCT FROM (${countedColumns})`
}

/**
 * Selects the counted rows that have tags. After 1000 tags of an organization in a day, further tags count as 'other'.
 */
const taggedRows = `
  SELECT hour, parts.org_id, key_id, model, route, provider, surface, status, is_sold, ${totalColumns.join(", ")},
    coalesce(admitted.tag, 'other') AS tag
  FROM (${parts}) AS parts LEFT JOIN usage_tags AS admitted
    ON admitted.day = usage_day(hour) AND admitted.org_id = parts.org_id AND admitted.tag = parts.tag
  WHERE parts.tag <> ''`

const taggedHours = `(
  SELECT usage_series.*, tag, hours.* FROM usage_tag_hours AS hours
  JOIN usage_tag_series AS tagged ON tagged.id = hours.series_id JOIN usage_series ON usage_series.id = tagged.series_id
) AS tagged_hours`

const compareDays = (dayTable: string, hourTable: string) => `
  WITH totals AS (SELECT series_id, starts_at, ${sums} FROM ${dayTable} GROUP BY 1, 2), counted AS (
    SELECT series_id, date_trunc('day', starts_at, 'UTC') AS starts_at, ${sums} FROM ${hourTable} GROUP BY 1, 2
  )
  SELECT series_id, starts_at AS day, totals.requests, totals.charge AS totalled, counted.charge AS counted
  FROM totals FULL JOIN counted USING (series_id, starts_at)
  WHERE (${totalledColumns}) IS DISTINCT FROM (${countedColumns})`

/** Compares the usage totals with the request log. */
export const totalsInvariants = (sql: SqlClient.SqlClient) => ({
  "an hour's totals are the sums of its requests": sql.unsafe<Row>(
    compareHours("usage_hours JOIN usage_series ON usage_series.id = series_id", parts, keyNames)
  ),
  "a day's totals are the sums of its hours": sql.unsafe<Row>(compareDays("usage_days", "usage_hours")),
  "an hour's totals of a tag are the sums of its requests": sql.unsafe<Row>(
    compareHours(taggedHours, taggedRows, [...keyNames, "tag"])
  ),
  "a day's totals of a tag are the sums of its hours": sql.unsafe<Row>(compareDays("usage_tag_days", "usage_tag_hours"))
})

const columns = Record.toEntries(requestCounts)

/** Returns SQL for the logged count of a token kind. Only the count of the prompt may be null: it was not counted. */
const countOf = (kind: TokenKindName): string => {
  const column = columns.find(([, { usage }]) => usage === tokenKinds[kind].usage)?.[0]
  return kind === "prompt" ? `log.${column}` : `coalesce(log.${column}, 0)`
}

/** Returns SQL for the rate of a token kind. A price list from before the kind existed has only the parent's rate. */
const rateOf = (kind: TokenKindName): string => {
  const parent = parentOf(kind)
  const rate = `(tier ->> '${tokenKinds[kind].name}')::numeric`
  return parent === undefined ? rate : `coalesce(${rate}, ${rateOf(parent)})`
}

/** Returns SQL for the tokens of a kind without those of its parts, which have rates of their own. */
const exclusiveCountOf = (kind: TokenKindName): string => `(${[kind, ...partsOf(kind)].map(countOf).join(" - ")})`

/** Uses `div`, which is exact. A quotient of numerics has only about sixteen digits. */
const priceByRates = `
  div(
    ${orderedKinds.map((kind) => `${exclusiveCountOf(kind)} * ${rateOf(kind)}`).join(" + ")}
    + coalesce(log.web_searches, 0) * (list.rates ->> 'web_search')::numeric * 1000
    + 999999, 1000000)`

/** SQL for the expected charge. It is zero only for an answer that a filter or the model refused without output. */
const expectedCharge = `
  CASE WHEN 'charge_waived' = ANY (log.notes) AND coalesce(log.completion_tokens, 0) = 0 THEN 0 ELSE ${priceByRates} END`

const summedUntil = "(SELECT added_until FROM monthly_charges_progress)"

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
  "the held amount is the sum of the organization's open holds": sql`
    SELECT organizations.id AS org_id, held, coalesce(sums.total, 0) AS open_holds
    FROM organizations
    LEFT JOIN (
      SELECT org_id, sum(amount) AS total FROM all_holds WHERE state = 'open' GROUP BY org_id
    ) AS sums ON sums.org_id = organizations.id
    WHERE held <> coalesce(sums.total, 0) OR held < 0`,
  // A settled hold of a request needs no check, because it is stored only in its charge (`held` is not null).
  "a settled hold has exactly one charge, of its charged amount": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.state, holds.charged, count(e.id)::int AS charges, sum(e.amount) AS entered
    FROM holds LEFT JOIN ledger_entries e ON e.hold_id = holds.id AND e.held IS NULL
    WHERE holds.state = 'settled'
    GROUP BY holds.id
    HAVING count(e.id) <> 1 OR sum(e.amount) <> -holds.charged`,
  "an open or released hold has no charge": sql`
    SELECT hold.id AS hold_id, hold.org_id, hold.state, e.id AS entry_id, e.amount
    FROM all_holds AS hold JOIN ledger_entries e ON e.hold_id = hold.id WHERE hold.state <> 'settled'`,
  "a hold is stored exactly once": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.state FROM open_holds JOIN holds USING (id)
    UNION ALL
    SELECT holds.id, holds.org_id, holds.state FROM holds JOIN ledger_entries e ON e.hold_id = holds.id
    WHERE e.held IS NOT NULL`,
  "an open hold belongs to a known instance": sql`
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
  "a key's daily spend is the sum of that day's charges less refunds": sql`
    SELECT coalesce(s.key_id, c.key_id) AS key_id, coalesce(s.day, c.day)::text AS day, s.spent, c.charged
    FROM key_spend s FULL JOIN (
      SELECT e.key_id, (e.at AT TIME ZONE 'UTC')::date AS day, -sum(e.amount + coalesce(refund.amount, 0)) AS charged
      FROM ledger_entries e
      LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = e.hold_id
      WHERE e.kind = 'charge' GROUP BY 1, 2
    ) AS c ON c.key_id = s.key_id AND c.day = s.day
    WHERE coalesce(s.spent, 0) <> coalesce(c.charged, 0)`,
  "an organization's cap spend is the sum of its keys' spend since the period began": sql`
    SELECT organizations.id AS org_id, cap_since::text, cap_spent, sum(key_spend.spent) AS spent
    FROM organizations
    LEFT JOIN api_keys ON api_keys.org_id = organizations.id
    LEFT JOIN key_spend ON key_spend.key_id = api_keys.id AND key_spend.day >= cap_since
    WHERE organizations.cap IS NOT NULL
    GROUP BY organizations.id HAVING cap_spent IS DISTINCT FROM coalesce(sum(key_spend.spent), 0)`,
  "refunds do not exceed the charge of their hold": sql`
    SELECT refund.hold_id, refund.org_id, refund.amount, hold.charged
    FROM (${sql.literal(refundedByHold)}) AS refund
    -- OFFSET makes the planner search each hold by index; a plain join reads the entire view for every refund.
    LEFT JOIN LATERAL (SELECT org_id, charged FROM all_holds WHERE id = refund.hold_id OFFSET 0) AS hold ON true
    WHERE coalesce(hold.charged, 0) < refund.amount OR refund.least <= 0
      OR hold.org_id <> refund.org_id OR hold.org_id <> refund.other_org_id`,
  "a final idempotent result has a closed hold, or a job's hold, of its organization": sql`
    SELECT kept.claim, kept.org_id, kept.endpoint, hold.id AS hold_id, hold.state
    FROM idempotency_keys kept JOIN all_holds AS hold ON hold.id = kept.hold_id
    WHERE kept.org_id <> hold.org_id OR (kept.state = 'done' AND hold.state = 'open' AND NOT hold.is_job)`,
  // Status 499 may be charged, because the client was served before it disconnected.
  "a request that failed is not charged": sql`
    SELECT log.request_id, log.id AS log_id, log.org_id, log.status, log.code, hold.id AS hold_id, hold.charged
    FROM request_log log JOIN all_holds AS hold ON hold.id = log.hold_id
    LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = hold.id
    WHERE (log.status >= 400 AND log.status <> 499 OR log.code = 'stream_error')
      AND hold.charged > coalesce(refund.amount, 0)`,
  // Adjustments and payment reversals may use held credit, so their amounts are added back.
  "the held amount is covered by the balance": sql`
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
  "an unfinished video has an open hold of its price without an instance": sql`
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
  "a video's hold belongs to its organization and key": sql`
    SELECT videos.id AS video_id, videos.org_id, videos.key_id, holds.id AS hold_id
    FROM videos JOIN holds ON holds.id = videos.hold_id
    WHERE holds.org_id <> videos.org_id OR holds.key_id <> videos.key_id`,
  "an open hold without an instance belongs to an unfinished video": sql`
    SELECT holds.id AS hold_id, holds.org_id, holds.amount, videos.id AS video_id, videos.status
    FROM holds LEFT JOIN videos ON videos.hold_id = holds.id
    WHERE holds.state = 'open' AND holds.instance_id IS NULL AND coalesce(videos.step, 'over') = 'over'`,
  "a payment has exactly one entry, of its amount and organization": sql`
    SELECT payment.id AS payment_id, payment.org_id, payment.amount, e.id AS entry_id, e.amount AS entered
    FROM payments AS payment LEFT JOIN ledger_entries e ON e.ref = 'stripe:' || payment.payment_intent
    WHERE payment.status = 'paid' AND (
      e.id IS DISTINCT FROM payment.entry_id OR e.kind <> 'top_up' OR e.amount <> payment.amount OR e.org_id <> payment.org_id
    )`,
  "reversals of a payment never exceed it": sql`
    SELECT payment.id AS payment_id, payment.org_id, payment.amount, sum(taken) AS taken
    FROM payments AS payment JOIN payment_reversals AS reversal ON payment_id = payment.id
    GROUP BY payment.id
    HAVING sum(taken) > CASE payment.status WHEN 'paid' THEN payment.amount ELSE 0 END
      OR bool_or(taken > reversal.amount)`,
  // An operator's entry with the reference of a payment counts as that payment.
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
  // Excludes chat requests that exceeded their hold, and those that failed or lost their client before the charge.
  "a chat's charge matches its token counts and recorded rates": sql`
    SELECT log.id AS log_id, log.org_id, log.hold_id, log.charge, ${sql.literal(expectedCharge)} AS by_rates
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
      AND log.charge + coalesce(refund.amount, 0) <> ${sql.literal(expectedCharge)}`,
  // Compares no balances, because the opening balance of a statement is the closing balance of the month before.
  "a month's statement totals are the sum of its charges": sql`
    SELECT coalesce(sums.org_id, charges.org_id) AS org_id, coalesce(sums.month, charges.month)::text AS month,
      sums.requests, charges.requests AS charges, sums.charge AS added, charges.charge AS charged
    FROM (
      SELECT org_id, month, sum(requests) AS requests, sum(charge) AS charge FROM monthly_charges GROUP BY 1, 2
    ) AS sums FULL JOIN (
      SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date AS month, count(*) AS requests, -sum(amount) AS charge
      FROM ledger_entries WHERE kind = 'charge' AND at < ${sql.literal(summedUntil)} GROUP BY 1, 2
    ) AS charges ON charges.org_id = sums.org_id AND charges.month = sums.month
    WHERE (sums.requests, sums.charge) IS DISTINCT FROM (charges.requests, charges.charge)`,
  "stored details of a removed request belong to a charge not yet in a statement": sql`
    SELECT kept.hold_id, e.at FROM removed_charge_details AS kept LEFT JOIN ledger_entries AS e ON e.hold_id = kept.hold_id
    WHERE e.at IS NULL OR e.at < ${sql.literal(summedUntil)}`,
  "a request queued for counting is in the request log exactly once": sql`
    SELECT id AS log_id, count(*)::int AS times FROM uncounted_requests GROUP BY id
    HAVING count(*) > 1 OR NOT EXISTS (SELECT FROM request_log WHERE request_log.id = uncounted_requests.id)`,
  "the request log has each hold's charge less refunds": sql`
    SELECT log.hold_id, log.log_id, log.charge AS logged, hold.charged, refund.amount AS refunded
    FROM (
      SELECT coalesce(hold_id, id) AS hold_id, min(id::text) AS log_id, sum(charge) AS charge FROM request_log
      WHERE at >= ${sql.literal(comparable)} AND (hold_id IS NOT NULL OR charge <> 0) GROUP BY 1
    ) AS log
    LEFT JOIN all_holds AS hold ON hold.id = log.hold_id
    LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = log.hold_id
    WHERE log.charge <> coalesce(hold.charged, 0) - coalesce(refund.amount, 0)`,
  // Adds a day to the bound, because a log row has the arrival time of its request, before its hold was created.
  "a charge has its row in the request log": sql`
    SELECT hold.id AS hold_id, hold.org_id, hold.charged
    FROM all_holds AS hold, usage_bounds
    WHERE hold.state = 'settled' AND hold.created_at >= greatest(logged_from, rows_from + interval '1 day')
      AND NOT EXISTS (SELECT FROM request_log WHERE request_log.hold_id = hold.id)`
})

/** Returns the invariants in the order of verification. */
export const invariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> =>
  Object.entries(checks(sql)).map(([name, check]) => ({ name, check }))

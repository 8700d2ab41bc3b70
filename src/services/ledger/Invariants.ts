import type { SqlClient } from "@effect/sql"
import { paymentInvariants } from "./PaymentInvariants.ts"
import { priceInvariants } from "./PriceInvariants.ts"
import { refundedByHold } from "./RefundSql.ts"
import { statementInvariants } from "./StatementInvariants.ts"
import { comparable, type Invariant, totalsInvariants } from "./TotalsInvariants.ts"

export const invariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> => [
  {
    name: "a balance is the sum of the organization's entries",
    check: sql`
      SELECT organizations.id AS org_id, balance, coalesce(sums.total, 0) AS entries
      FROM organizations
      LEFT JOIN (SELECT org_id, sum(amount) AS total FROM ledger_entries GROUP BY org_id) AS sums ON sums.org_id = organizations.id
      WHERE balance <> coalesce(sums.total, 0)`
  },
  {
    name: "what is held is the sum of the organization's open holds",
    check: sql`
      SELECT organizations.id AS org_id, held, coalesce(sums.total, 0) AS open_holds
      FROM organizations
      LEFT JOIN (
        SELECT org_id, sum(amount) AS total FROM all_holds WHERE state = 'open' GROUP BY org_id
      ) AS sums ON sums.org_id = organizations.id
      WHERE held <> coalesce(sums.total, 0) OR held < 0`
  },
  {
    // One that left no row but its charge cannot have another.
    name: "a settled hold has exactly one charge, of what the hold says was charged",
    check: sql`
      SELECT holds.id AS hold_id, holds.org_id, holds.state, holds.charged, count(e.id)::int AS charges, sum(e.amount) AS entered
      FROM holds LEFT JOIN ledger_entries e ON e.hold_id = holds.id AND e.held IS NULL
      WHERE holds.state = 'settled'
      GROUP BY holds.id
      HAVING count(e.id) <> 1 OR sum(e.amount) <> -holds.charged`
  },
  {
    name: "an open or released hold has no charge",
    check: sql`
      SELECT hold.id AS hold_id, hold.org_id, hold.state, e.id AS entry_id, e.amount
      FROM all_holds AS hold JOIN ledger_entries e ON e.hold_id = hold.id WHERE hold.state <> 'settled'`
  },
  {
    name: "a hold is in one place",
    check: sql`
      SELECT holds.id AS hold_id, holds.org_id, holds.state FROM open_holds JOIN holds USING (id)
      UNION ALL
      SELECT holds.id, holds.org_id, holds.state FROM holds JOIN ledger_entries e ON e.hold_id = holds.id
      WHERE e.held IS NOT NULL`
  },
  {
    name: "an open hold belongs to a process that was there",
    check: sql`
      SELECT open_holds.id AS hold_id, open_holds.org_id, open_holds.instance_id
      FROM open_holds LEFT JOIN instances ON instances.id = open_holds.instance_id
      WHERE open_holds.released_at IS NULL AND instances.id IS NULL`
  },
  {
    name: "a charge belongs to its hold's organization and key",
    check: sql`
      SELECT e.id AS entry_id, e.org_id, e.key_id, holds.id AS hold_id
      FROM ledger_entries e LEFT JOIN holds ON holds.id = e.hold_id
      WHERE e.kind = 'charge' AND e.held IS NULL
        AND (holds.id IS NULL OR holds.org_id <> e.org_id OR holds.key_id <> e.key_id)`
  },
  {
    name: "a charge never exceeds its hold, and is never negative",
    check: sql`SELECT id AS hold_id, org_id, amount, charged FROM all_holds WHERE charged > amount OR charged < 0`
  },
  {
    name: "a hold belongs to the organization of its key",
    check: sql`
      SELECT hold.id AS hold_id, hold.org_id, hold.key_id
      FROM all_holds AS hold LEFT JOIN api_keys ON api_keys.id = hold.key_id
      WHERE api_keys.org_id IS DISTINCT FROM hold.org_id`
  },
  {
    name: "a key's daily spend is the sum of its charges of that day that were not given back",
    check: sql`
      SELECT coalesce(s.key_id, c.key_id) AS key_id, coalesce(s.day, c.day)::text AS day, s.spent, c.charged
      FROM key_spend s FULL JOIN (
        SELECT e.key_id, (e.at AT TIME ZONE 'UTC')::date AS day, -sum(e.amount + coalesce(refund.amount, 0)) AS charged
        FROM ledger_entries e
        LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = e.hold_id
        WHERE e.kind = 'charge' GROUP BY 1, 2
      ) AS c ON c.key_id = s.key_id AND c.day = s.day
      WHERE coalesce(s.spent, 0) <> coalesce(c.charged, 0)`
  },
  {
    name: "what is counted for an organization's cap is what its keys have spent from the beginning of the period on",
    check: sql`
      SELECT organizations.id AS org_id, cap_since::text, cap_spent, sum(key_spend.spent) AS spent
      FROM organizations
      LEFT JOIN api_keys ON api_keys.org_id = organizations.id
      LEFT JOIN key_spend ON key_spend.key_id = api_keys.id AND key_spend.day >= cap_since
      WHERE organizations.cap IS NOT NULL
      GROUP BY organizations.id HAVING cap_spent IS DISTINCT FROM coalesce(sum(key_spend.spent), 0)`
  },
  {
    name: "refunds give back no more than their hold was charged",
    check: sql`
      SELECT refund.hold_id, refund.org_id, refund.amount, hold.charged
      FROM (${sql.literal(refundedByHold)}) AS refund
      -- Each hold by its indexes: joined, the view is read whole for every refund. OFFSET keeps it apart.
      LEFT JOIN LATERAL (SELECT org_id, charged FROM all_holds WHERE id = refund.hold_id OFFSET 0) AS hold ON true
      WHERE coalesce(hold.charged, 0) < refund.amount OR refund.least <= 0
        OR hold.org_id <> refund.org_id OR hold.org_id <> refund.other_org_id`
  },
  {
    name: "a final result was paid for by a closed hold, or by a job's, of its organization",
    check: sql`
      SELECT kept.claim, kept.org_id, kept.endpoint, hold.id AS hold_id, hold.state
      FROM idempotency_keys kept JOIN all_holds AS hold ON hold.id = kept.hold_id
      WHERE kept.org_id <> hold.org_id OR (kept.state = 'done' AND hold.state = 'open' AND NOT hold.is_job)`
  },
  {
    // A client that left was served, and a job is charged after its response.
    name: "a request that failed is not charged",
    check: sql`
      SELECT log.request_id, log.id AS log_id, log.org_id, log.status, log.code, hold.id AS hold_id, hold.charged
      FROM request_log log JOIN all_holds AS hold ON hold.id = log.hold_id
      LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = hold.id
      WHERE (log.status >= 400 AND log.status <> 499 OR log.code = 'stream_error')
        AND hold.charged > coalesce(refund.amount, 0)`
  },
  {
    // Adjustments and reversals of payments may take what is held, so what they took is added back.
    name: "what is held was covered by the balance",
    check: sql`
      SELECT organizations.id AS org_id, balance, held, coalesce(taken.total, 0) AS corrected
      FROM organizations
      LEFT JOIN (
        SELECT org_id, sum(amount) AS total FROM ledger_entries
        WHERE kind IN ('adjustment', 'payment_reversal') AND amount < 0 GROUP BY org_id
      ) AS taken ON taken.org_id = organizations.id
      WHERE held > 0 AND balance - coalesce(taken.total, 0) < held`
  },
  {
    name: "no charge took a balance below zero",
    check: sql`
      SELECT org_id, id AS entry_id, balance, corrected FROM (
        SELECT org_id, id, kind, sum(amount) OVER (PARTITION BY org_id ORDER BY id) AS balance,
          sum(amount) FILTER (WHERE kind IN ('adjustment', 'payment_reversal') AND amount < 0)
            OVER (PARTITION BY org_id ORDER BY id) AS corrected
        FROM ledger_entries
      ) AS running
      WHERE kind = 'charge' AND balance - coalesce(corrected, 0) < 0`
  },
  {
    name: "a video that is not over has an open hold of its price, which belongs to no process",
    check: sql`
      SELECT videos.id AS video_id, videos.org_id, videos.price, holds.id AS hold_id, holds.state, holds.amount
      FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
      WHERE videos.step <> 'over'
        AND (holds.state IS DISTINCT FROM 'open' OR holds.instance_id IS NOT NULL OR holds.amount <> videos.price)`
  },
  {
    name: "a completed video was charged its price",
    check: sql`
      SELECT videos.id AS video_id, videos.org_id, videos.price, holds.id AS hold_id, holds.state, holds.charged
      FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
      WHERE videos.status = 'completed' AND holds.charged IS DISTINCT FROM videos.price`
  },
  {
    name: "a failed video was charged nothing",
    check: sql`
      SELECT videos.id AS video_id, videos.org_id, holds.id AS hold_id, holds.state, holds.charged
      FROM videos LEFT JOIN holds ON holds.id = videos.hold_id
      WHERE videos.status = 'failed' AND holds.state IS DISTINCT FROM 'released'`
  },
  {
    name: "a video was paid for by its own organization and key",
    check: sql`
      SELECT videos.id AS video_id, videos.org_id, videos.key_id, holds.id AS hold_id
      FROM videos JOIN holds ON holds.id = videos.hold_id
      WHERE holds.org_id <> videos.org_id OR holds.key_id <> videos.key_id`
  },
  {
    name: "an open hold that belongs to no process is that of a video that is not over",
    check: sql`
      SELECT holds.id AS hold_id, holds.org_id, holds.amount, videos.id AS video_id, videos.status
      FROM holds LEFT JOIN videos ON videos.hold_id = holds.id
      WHERE holds.state = 'open' AND holds.instance_id IS NULL AND coalesce(videos.step, 'over') = 'over'`
  },
  ...paymentInvariants(sql),
  ...totalsInvariants(sql),
  ...priceInvariants(sql),
  ...statementInvariants(sql),
  {
    name: "a request that is to be counted is in the request log, and is counted once",
    check: sql`
      SELECT id AS log_id, count(*)::int AS times FROM uncounted_requests GROUP BY id
      HAVING count(*) > 1 OR NOT EXISTS (SELECT FROM request_log WHERE request_log.id = uncounted_requests.id)`
  },
  {
    name: "the request log says what each hold was charged, less what was given back",
    check: sql`
      SELECT log.hold_id, log.log_id, log.charge AS logged, hold.charged, refund.amount AS refunded
      FROM (
        SELECT coalesce(hold_id, id) AS hold_id, min(id::text) AS log_id, sum(charge) AS charge FROM request_log
        WHERE at >= ${sql.literal(comparable)} AND (hold_id IS NOT NULL OR charge <> 0) GROUP BY 1
      ) AS log
      LEFT JOIN all_holds AS hold ON hold.id = log.hold_id
      LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = log.hold_id
      WHERE log.charge <> coalesce(hold.charged, 0) - coalesce(refund.amount, 0)`
  },
  {
    // A request is received before it holds anything.
    name: "a charge has its row in the request log",
    check: sql`
      SELECT hold.id AS hold_id, hold.org_id, hold.charged
      FROM all_holds AS hold, usage_bounds
      WHERE hold.state = 'settled' AND hold.created_at >= greatest(logged_from, rows_from + interval '1 day')
        AND NOT EXISTS (SELECT FROM request_log WHERE request_log.hold_id = hold.id)`
  }
]

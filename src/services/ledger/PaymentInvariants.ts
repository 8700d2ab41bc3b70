import type { SqlClient } from "@effect/sql"
import type { Invariant } from "./TotalsInvariants.ts"

/** Payments, what took them back, and their entries agree. */
export const paymentInvariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> => [
  {
    name: "a payment has exactly one entry, of its amount and organization",
    check: sql`
      SELECT payment.id AS payment_id, payment.org_id, payment.amount, e.id AS entry_id, e.amount AS entered
      FROM payments AS payment LEFT JOIN ledger_entries e ON e.ref = 'stripe:' || payment.payment_intent
      WHERE payment.status = 'paid' AND (
        e.id IS DISTINCT FROM payment.entry_id OR e.kind <> 'top_up' OR e.amount <> payment.amount OR e.org_id <> payment.org_id
      )`
  },
  {
    name: "what was taken back of a payment never exceeds it",
    check: sql`
      SELECT payment.id AS payment_id, payment.org_id, payment.amount, sum(taken) AS taken
      FROM payments AS payment JOIN payment_reversals AS reversal ON payment_id = payment.id
      GROUP BY payment.id
      HAVING sum(taken) > CASE payment.status WHEN 'paid' THEN payment.amount ELSE 0 END
        OR bool_or(taken > reversal.amount)`
  },
  {
    // An operator's entry with a payment's reference counts as that payment.
    name: "the refunds and disputes of a payment are charged, up to its amount",
    check: sql`
      SELECT payment.id AS payment_id, e.org_id, payment.status, e.amount, sum(reversal.amount) AS reversed, sum(taken) AS taken
      FROM payments AS payment JOIN payment_reversals AS reversal ON payment_id = payment.id
      JOIN ledger_entries e ON e.kind = 'top_up' AND e.ref = 'stripe:' || payment.payment_intent
      GROUP BY payment.id, e.id
      HAVING sum(taken) <> least(e.amount, sum(reversal.amount))`
  },
  {
    name: "the amount taken by a refund or dispute is the sum of its entries",
    check: sql`
      SELECT coalesce(reversal.id, entered.id) AS reversal_id, entered.org_id, taken, entered.amount AS entered
      FROM payment_reversals AS reversal FULL JOIN (
        SELECT substring(ref FROM '^stripe:([^:]+)') AS id, min(org_id) AS org_id, max(org_id) AS other_org_id,
          sum(amount) AS amount
        FROM ledger_entries WHERE kind = 'payment_reversal' GROUP BY 1
      ) AS entered ON entered.id = reversal.id
      LEFT JOIN payments ON payments.id = payment_id
      WHERE reversal.id IS NULL OR taken <> -coalesce(entered.amount, 0)
        OR entered.org_id <> payments.org_id OR entered.other_org_id <> payments.org_id`
  }
]

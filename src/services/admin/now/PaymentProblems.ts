import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { NanoUsdFromRow, toUsdText } from "../../../domain/Money.ts"
import { TextOrNull } from "../../resources/Record.ts"
import { rowsOf } from "../../sql/Statement.ts"
import type { Attention } from "./Record.ts"

const maxOfAKind = 20

const Row = Schema.Struct({
  id: Schema.String,
  org: TextOrNull,
  orgName: TextOrNull,
  amount: Schema.NullOr(NanoUsdFromRow),
  detail: Schema.String
})
type Row = typeof Row.Type

const amountOf = ({ amount }: Row) => (amount === null ? "" : ` of ${toUsdText(amount)} USD`)

const placeOf = ({ id, org, orgName }: Row) => ({
  ...(org !== null && { org }),
  ...(orgName !== null && { org_name: orgName }),
  href: `#/payments/${id}`
})

/** Until it is given back whole, or entered by hand under its reference. */
const refused = (sql: SqlClient.SqlClient) =>
  Effect.map(
    rowsOf(Row)(sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, amount, problem AS detail
      FROM payments AS payment LEFT JOIN organizations ON organizations.id = org_id
      WHERE status = 'refused' AND NOT EXISTS (
        SELECT FROM ledger_entries AS entered WHERE entered.ref = 'stripe:' || payment.payment_intent
      ) AND CASE WHEN amount IS NULL
        THEN NOT EXISTS (
          SELECT FROM payment_reversals AS reversal
          WHERE payment_id = payment.id AND (reversal.amount > 0 OR foreign_amount IS NOT NULL)
        )
        ELSE amount > (
          SELECT coalesce(sum(reversal.amount), 0) FROM payment_reversals AS reversal WHERE payment_id = payment.id
        )
      END
      AND (org_id IS NOT NULL OR payment_intent IS NOT NULL)
      ORDER BY org_id IS NULL, payment.id DESC LIMIT ${maxOfAKind}`),
    (rows) =>
      rows.map(
        (row): Attention => ({
          kind: "payment_refused",
          title: `The payment ${row.id}${amountOf(row)} was not credited`,
          detail: row.detail,
          ...placeOf(row)
        })
      )
  )

const disputed = (sql: SqlClient.SqlClient) =>
  Effect.map(
    rowsOf(Row)(sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.id AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE is_open AND kind = 'dispute' ORDER BY payment.id DESC LIMIT ${maxOfAKind}`),
    (rows) =>
      rows.map(
        (row): Attention => ({
          kind: "payment_disputed",
          title: `The payment ${row.id}${amountOf(row)} is disputed`,
          detail: `Answer the dispute ${row.detail} at Stripe before its deadline.`,
          ...placeOf(row)
        })
      )
  )

const ForeignRow = Schema.Struct({ ...Row.fields, kind: Schema.String, reversal: Schema.String })

/** A payment that was not credited has nothing to charge back. */
const foreign = (sql: SqlClient.SqlClient) =>
  Effect.map(
    rowsOf(ForeignRow)(sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.kind,
        reversal.id AS reversal, foreign_amount AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE needs_amount AND payment.status = 'paid' ORDER BY payment.id DESC LIMIT ${maxOfAKind}`),
    (rows) =>
      rows.map(
        (row): Attention => ({
          kind: "payment_reversal_amount",
          title: `The ${row.kind} ${row.reversal} of ${row.detail} is not charged yet`,
          detail: `Stripe states no amount in USD. Enter it: gateway payments reverse ${row.id} ${row.reversal} USD.`,
          ...placeOf(row)
        })
      )
  )

export const paymentProblems = (sql: SqlClient.SqlClient) =>
  Effect.map(Effect.all([refused(sql), disputed(sql), foreign(sql)]), (found) => found.flat())

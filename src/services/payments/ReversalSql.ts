import type { SqlClient } from "@effect/sql"
import type { OrgId } from "../../domain/Organization.ts"
import type { Reversal } from "../../domain/Payment.ts"
import { lowCredits, notify } from "../webhooks/CrossingSql.ts"

/** Begins the references of payments and of what took them back. */
export const refOf = (id: string): string => `stripe:${id}`

export interface Reversing {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly org: OrgId
  /** Taken from the balance where it is above zero, given back where it is below. */
  readonly amount: bigint
  /** Entries of it before this one. */
  readonly entries: number
}

const notes = {
  refund: ["a refund of a payment", "a refund that failed"],
  dispute: ["a disputed payment", "a dispute that gave money back"]
} as const

/** Enters what a refund or a dispute takes or gives back, and adds it to what it has taken; the balance may go below zero. */
export const enterReversal = (sql: SqlClient.SqlClient, { amount, entries, id, kind, org }: Reversing) => sql`
  WITH moved AS (
    UPDATE organizations SET balance = balance - ${amount}::bigint WHERE id = ${org}
    RETURNING id, balance, held, notify_below, ${amount}::bigint AS charged
  ), ${sql.literal(notify("SELECT id FROM moved", lowCredits))}, entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT id, 'payment_reversal', -${amount}::bigint,
      ${refOf(id) + (entries === 0 ? "" : `:${entries + 1}`)}, ${notes[kind][amount > 0n ? 0 : 1]} FROM moved
  )
  UPDATE payment_reversals SET taken = taken + ${amount}::bigint, entries = entries + 1 WHERE id = ${id}`

/** Keeps refunds and disputes of a payment as the provider has them now. */
export const noteReversals = (sql: SqlClient.SqlClient, payment: string, all: ReadonlyArray<Reversal>) => sql`
  INSERT INTO payment_reversals (payment_id, id, kind, status, is_open, amount, created_at)
  SELECT ${payment}, * FROM unnest(
    ${all.map(({ id }) => id)}::text[], ${all.map(({ kind }) => kind)}::text[],
    ${all.map(({ status }) => status)}::text[], ${all.map(({ isOpen }) => isOpen)}::boolean[],
    ${all.map(({ amount }) => amount)}::bigint[], ${all.map(({ createdAt }) => createdAt)}::timestamptz[]
  )
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, is_open = excluded.is_open, amount = excluded.amount`

/** Of a refused payment, an entry that an operator made under its reference is what was paid. */
export const adoptEntry = (sql: SqlClient.SqlClient, payment: string) => sql`
  UPDATE payments SET status = 'paid', problem = NULL, entry_id = entered.id, amount = entered.amount
  FROM ledger_entries AS entered WHERE payments.id = ${payment} AND entered.kind = 'top_up'
    AND entered.ref = 'stripe:' || payments.payment_intent AND entered.org_id = payments.org_id`

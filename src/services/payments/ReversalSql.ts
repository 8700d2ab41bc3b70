import type { SqlClient } from "@effect/sql"
import type { OrgId } from "../../domain/Organization.ts"
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

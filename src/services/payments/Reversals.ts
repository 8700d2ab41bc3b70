import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { allocateReversals, type Reversal } from "../../domain/Payment.ts"
import { afterAllOf, rowsOf } from "../sql/SqlStatement.ts"

/** Returns the ledger reference of a payment, refund or dispute. */
export const refOf = (id: string): string => `stripe:${id}`

interface ReversalChange {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly org: OrgId
  /** A positive amount is taken from the balance, and a negative one is returned to it. */
  readonly amount: bigint
  /** The number of earlier entries of the reversal. */
  readonly entries: number
}

const notes = {
  refund: ["a refund of a payment", "a refund that failed"],
  dispute: ["a disputed payment", "a dispute that returned money"]
} as const

/** Writes a ledger entry for a refund or dispute and updates how much it has taken. The balance may become negative. */
const enterReversal = (sql: SqlClient.SqlClient, { amount, entries, id, kind, org }: ReversalChange) => sql`
  WITH moved AS (
    UPDATE organizations SET balance = balance - ${amount}::bigint WHERE id = ${org}
    RETURNING id
  ), notified AS (
    SELECT notify_of_low_credits(id, ${amount}::bigint) FROM moved
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT id, 'payment_reversal', -${amount}::bigint,
      ${refOf(id) + (entries === 0 ? "" : `:${entries + 1}`)}, ${notes[kind][amount > 0n ? 0 : 1]} FROM moved
  )
  UPDATE payment_reversals SET taken = taken + ${amount}::bigint, entries = entries + 1
  WHERE id = ${id} AND ${sql.literal(afterAllOf("notified"))}`

/**
 * Stores the current state of a payment's refunds and disputes. A USD amount that an operator entered is kept until the
 * provider reports one. If the amount in the other currency changes, the operator must enter the USD amount again.
 */
const storeReversals = (sql: SqlClient.SqlClient, payment: string, all: ReadonlyArray<Reversal>) => sql`
  INSERT INTO payment_reversals AS stored
    (payment_id, id, kind, status, is_open, amount, foreign_amount, needs_amount, created_at)
  SELECT ${payment}, id, kind, status, is_open, coalesce(amount, 0), foreign_amount, amount IS NULL, created_at
  FROM unnest(
    ${all.map(({ id }) => id)}::text[], ${all.map(({ kind }) => kind)}::text[],
    ${all.map(({ status }) => status)}::text[], ${all.map(({ isOpen }) => isOpen)}::boolean[],
    ${all.map(({ amount }) => amount ?? null)}::bigint[],
    ${all.map(({ foreignAmount }) => foreignAmount ?? null)}::text[],
    ${all.map(({ createdAt }) => createdAt)}::timestamptz[]
  ) AS found (id, kind, status, is_open, amount, foreign_amount, created_at)
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, is_open = excluded.is_open,
    foreign_amount = excluded.foreign_amount,
    amount = CASE WHEN excluded.needs_amount THEN stored.amount ELSE excluded.amount END,
    needs_amount = excluded.needs_amount
      AND (stored.needs_amount OR stored.foreign_amount IS DISTINCT FROM excluded.foreign_amount)`

/** Marks an organization as disputed, which refuses its new holds, while one of its payments has an open dispute. */
export const suspendDisputed = (sql: SqlClient.SqlClient, org: OrgId, suspendsDisputed: boolean) => sql`
  UPDATE organizations SET disputed_at = CASE WHEN disputed_at IS NULL THEN now() END
  WHERE id = ${org} AND (disputed_at IS NOT NULL) <> (${suspendsDisputed} AND EXISTS (
    SELECT FROM payment_reversals JOIN payments ON payments.id = payment_id
    WHERE is_open AND kind = 'dispute' AND payments.org_id = ${org}
  ))`

const ReversalRow = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("refund", "dispute"),
  amount: NanoUsdFromRow,
  createdAt: Schema.DateFromSelf,
  taken: NanoUsdFromRow,
  entries: Schema.Number,
  paid: NanoUsdFromRow,
  org: OrgId
})

/**
 * Stores the reversals that the provider returned, then adds ledger entries until the ledger matches all stored reversals.
 * A stored reversal that the provider no longer returns keeps its amount.
 */
export const applyReversals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  payment: string,
  listed: ReadonlyArray<Reversal>
) {
  yield* storeReversals(sql, payment, listed)
  const stored = yield* rowsOf(ReversalRow)(sql`
    SELECT reversal.id, kind, reversal.amount, reversal.created_at, taken, entries,
      payments.amount AS paid, payments.org_id AS org
    FROM payment_reversals AS reversal JOIN payments ON payments.id = payment_id
    WHERE payment_id = ${payment} AND payments.status = 'paid'`)
  const [first] = stored
  if (first === undefined) return
  const shares = allocateReversals(first.paid, stored)
  const changes = stored.flatMap(({ entries, id, kind, org, taken }) => {
    const amount = (shares.get(id) ?? 0n) - taken
    return amount === 0n ? [] : [{ id, kind, org, amount, entries }]
  })
  // Enters returned amounts first, so the sum taken never exceeds the payment.
  const ordered = changes.toSorted((a, b) => (a.amount < b.amount ? -1 : 1))
  yield* Effect.forEach(ordered, (change) => enterReversal(sql, change), { discard: true })
})

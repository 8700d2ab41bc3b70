import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type Reversal, shareOut } from "../../domain/Payment.ts"
import { rowsOf } from "../sql/Statement.ts"
import { lowCredits, notify } from "../webhooks/CrossingSql.ts"

/** Begins the references of payments and of what took them back. */
export const refOf = (id: string): string => `stripe:${id}`

interface Reversing {
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
const enterReversal = (sql: SqlClient.SqlClient, { amount, entries, id, kind, org }: Reversing) => sql`
  WITH moved AS (
    UPDATE organizations SET balance = balance - ${amount}::bigint WHERE id = ${org}
    RETURNING id, balance, held, notify_below, ${amount}::bigint AS charged
  ), ${sql.literal(notify("SELECT id FROM moved", lowCredits))}, entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT id, 'payment_reversal', -${amount}::bigint,
      ${refOf(id) + (entries === 0 ? "" : `:${entries + 1}`)}, ${notes[kind][amount > 0n ? 0 : 1]} FROM moved
  )
  UPDATE payment_reversals SET taken = taken + ${amount}::bigint, entries = entries + 1 WHERE id = ${id}`

/**
 * Stores a payment's refunds and disputes in their current state. An operator's USD amount stays until the provider states
 * one, and is needed again if the foreign amount changes.
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

/** Suspends new holds of an organization while a payment of it is disputed. */
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
 * Keeps what the provider lists now, and makes the ledger what all that is known comes to: one that it no longer lists
 * keeps its share.
 */
export const applyReversals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  payment: string,
  listed: ReadonlyArray<Reversal>
) {
  yield* storeReversals(sql, payment, listed)
  const known = yield* rowsOf(ReversalRow)(sql`
    SELECT reversal.id, kind, reversal.amount, reversal.created_at, taken, entries,
      payments.amount AS paid, payments.org_id AS org
    FROM payment_reversals AS reversal JOIN payments ON payments.id = payment_id
    WHERE payment_id = ${payment} AND payments.status = 'paid'`)
  const [first] = known
  if (first === undefined) return
  const shares = shareOut(first.paid, known)
  const changes = known.flatMap(({ entries, id, kind, org, taken }) => {
    const amount = (shares.get(id) ?? 0n) - taken
    return amount === 0n ? [] : [{ id, kind, org, amount, entries }]
  })
  // What is given back comes first, so that no more than the payment is ever taken.
  const ordered = changes.toSorted((a, b) => (a.amount < b.amount ? -1 : 1))
  yield* Effect.forEach(ordered, (change) => enterReversal(sql, change), { discard: true })
})

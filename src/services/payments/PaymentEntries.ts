import type { SqlClient } from "@effect/sql"
import { Data, Effect, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { allocateReversals, type Reversal } from "../../domain/Payment.ts"
import type { LedgerAdmin, TopUp } from "../ledger/LedgerAdmin.ts"
import { afterAllOf, lockName, rowsOf } from "../sql/SqlStatement.ts"

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

// If an operator enters a top-up with a payment's reference, the top-up counts as the credit of that payment. Refunds and
// disputes of the payment are then taken from the top-up's organization.

/** Locks the payment and its reversals until the transaction ends. */
export const lockPayment = (sql: SqlClient.SqlClient, paymentIntent: string) => lockName(sql, refOf(paymentIntent))

const EntryOwner = Schema.Struct({ orgId: OrgId })

/** Returns the organization of the ledger entry with the payment's reference. */
export const findEntered = (sql: SqlClient.SqlClient, paymentIntent: string) =>
  Effect.map(
    rowsOf(EntryOwner)(sql`SELECT org_id FROM ledger_entries WHERE kind = 'top_up' AND ref = ${refOf(paymentIntent)}`),
    ([entry]) => entry?.orgId
  )

/**
 * If an operator entered the payment by hand, as a top-up with the reference `stripe:<payment intent>`, marks it as paid by
 * that top-up. Returns the top-up's organization; undefined if there is no such top-up or the payment is already paid.
 */
export const adoptEntry = (sql: SqlClient.SqlClient, payment: string) =>
  Effect.map(
    rowsOf(EntryOwner)(sql`
      UPDATE payments SET status = 'paid', problem = NULL, org_id = entered.org_id, amount = entered.amount,
        entry_id = entered.id, paid_at = coalesce(paid_at, entered.at), version = version + 1
      FROM ledger_entries AS entered
      WHERE payments.id = ${payment} AND payments.status <> 'paid'
        AND entered.kind = 'top_up' AND entered.ref = 'stripe:' || payments.payment_intent
      RETURNING payments.org_id`),
    ([entry]) => entry?.orgId
  )

const RefusedPayment = Schema.Struct({ id: Schema.String, orgId: Schema.NullOr(OrgId) })

/**
 * Marks a refused payment as paid by the top-up with its reference, and takes its refunds and disputes from the top-up's
 * organization. An open dispute now suspends that organization instead of the one that started the payment.
 */
export const adoptRefused = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  paymentIntent: string,
  suspendsDisputed: boolean
) {
  yield* lockPayment(sql, paymentIntent)
  const refused = yield* rowsOf(RefusedPayment)(sql`
    SELECT id, org_id FROM payments WHERE payment_intent = ${paymentIntent} AND status = 'refused'`)
  for (const { id, orgId } of refused) {
    const payer = yield* adoptEntry(sql, id)
    if (payer === undefined) continue
    yield* applyReversals(sql, id, [])
    for (const org of new Set([payer, orgId])) if (org !== null) yield* suspendDisputed(sql, org, suspendsDisputed)
  }
})

/** Stores a payment that has no payment page, such as an invoice, if an operator entered a top-up with its reference. */
export const storeEntered = (sql: SqlClient.SqlClient, payment: string, paymentIntent: string) => sql`
  INSERT INTO payments (id, org_id, amount, status, payment_intent, entry_id, paid_at)
  SELECT ${payment}, org_id, amount, 'paid', ${paymentIntent}, id, at FROM ledger_entries
  WHERE kind = 'top_up' AND ref = ${refOf(paymentIntent)} ON CONFLICT DO NOTHING`

/** Ignores spaces of a copied reference. Otherwise a payment could be credited twice, and its refunds would not be taken. */
const paymentRefForm = /^\s*stripe:\s*(\S+)\s*$/i

/** Returns a function that enters a top-up. With the reference of a refused payment, the top-up credits that payment. */
export const makeEnter =
  (sql: SqlClient.SqlClient, topUp: LedgerAdmin["Type"]["topUp"], suspendsDisputed: boolean) =>
  (payment: TopUp): ReturnType<typeof topUp> => {
    const [, paymentIntent] = paymentRefForm.exec(payment.ref ?? "") ?? []
    if (paymentIntent === undefined) return topUp(payment)
    return Effect.gen(function* () {
      yield* lockPayment(sql, paymentIntent)
      const result = yield* topUp({ ...payment, ref: refOf(paymentIntent) })
      yield* adoptRefused(sql, paymentIntent, suspendsDisputed)
      return result
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die), Effect.uninterruptible)
  }

class ForeignReversalNotFound extends Data.TaggedError("ForeignReversalNotFound")<{
  readonly payment: string
  readonly id: string
}> {
  override get message() {
    return `The payment ${this.payment} has no refund or dispute ${this.id} in a currency other than USD.`
  }
}

/** Returns a function that sets the USD amount of a refund or dispute in another currency. */
export const makeEnterReversal =
  (sql: SqlClient.SqlClient) =>
  (payment: string, id: string, amount: NanoUsd): Effect.Effect<void, ForeignReversalNotFound> =>
    Effect.gen(function* () {
      const [row] = yield* rowsOf(Schema.Struct({ paymentIntent: Schema.NullOr(Schema.String) }))(sql`
        SELECT payment_intent FROM payments WHERE id = ${payment}`)
      yield* lockPayment(sql, row?.paymentIntent ?? payment)
      const changed = yield* sql`
        UPDATE payment_reversals SET amount = ${amount}::bigint, needs_amount = false
        WHERE id = ${id} AND payment_id = ${payment} AND foreign_amount IS NOT NULL RETURNING id`
      if (changed.length === 0) return yield* new ForeignReversalNotFound({ payment, id })
      yield* sql`UPDATE payments SET version = version + 1 WHERE id = ${payment}`
      yield* applyReversals(sql, payment, [])
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die), Effect.uninterruptible)

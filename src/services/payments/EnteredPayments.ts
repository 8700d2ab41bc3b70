import type { SqlClient } from "@effect/sql"
import { Data, Effect, Schema } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { LedgerAdmin, TopUp } from "../ledger/LedgerAdmin.ts"
import { lockName, rowsOf } from "../sql/SqlStatement.ts"
import { applyReversals, refOf, suspendDisputed } from "./Reversals.ts"

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

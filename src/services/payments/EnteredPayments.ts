import type { SqlClient } from "@effect/sql"
import { Data, Effect, Schema } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { LedgerAdmin, TopUp } from "../ledger/LedgerAdmin.ts"
import { lockName, rowsOf } from "../sql/Statement.ts"
import { applyReversals, refOf, suspendDisputed } from "./Reversals.ts"

// A top-up that an operator enters with a payment's reference counts as that payment. Its organization is the payer, and is
// charged for refunds and disputes.

/** Until the transaction ends, no other one can enter the payment or its reversals. */
export const lockPayment = (sql: SqlClient.SqlClient, paymentIntent: string) => lockName(sql, refOf(paymentIntent))

const Entered = Schema.Struct({ orgId: OrgId })

/** Returns the organization whose entry has the payment's reference. */
export const findEntered = (sql: SqlClient.SqlClient, paymentIntent: string) =>
  Effect.map(
    rowsOf(Entered)(sql`SELECT org_id FROM ledger_entries WHERE kind = 'top_up' AND ref = ${refOf(paymentIntent)}`),
    ([entered]) => entered?.orgId
  )

/** Marks an unpaid payment as paid by the entry with its reference. Returns that entry's organization, if there is one. */
export const adoptEntry = (sql: SqlClient.SqlClient, payment: string) =>
  Effect.map(
    rowsOf(Entered)(sql`
      UPDATE payments SET status = 'paid', problem = NULL, org_id = entered.org_id, amount = entered.amount,
        entry_id = entered.id, paid_at = coalesce(paid_at, entered.at), version = version + 1
      FROM ledger_entries AS entered
      WHERE payments.id = ${payment} AND payments.status <> 'paid'
        AND entered.kind = 'top_up' AND entered.ref = 'stripe:' || payments.payment_intent
      RETURNING payments.org_id`),
    ([entered]) => entered?.orgId
  )

const Refused = Schema.Struct({ id: Schema.String, orgId: Schema.NullOr(OrgId) })

/**
 * Adopts the entry of a refused payment and charges the payment's known refunds and disputes. An open dispute suspends the
 * organization that pays from now on, and no longer the one that was to pay.
 */
export const adoptRefused = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  paymentIntent: string,
  suspendsDisputed: boolean
) {
  yield* lockPayment(sql, paymentIntent)
  const refused = yield* rowsOf(Refused)(sql`
    SELECT id, org_id FROM payments WHERE payment_intent = ${paymentIntent} AND status = 'refused'`)
  for (const { id, orgId } of refused) {
    const payer = yield* adoptEntry(sql, id)
    if (payer === undefined) continue
    yield* applyReversals(sql, id, [])
    for (const org of new Set([payer, orgId])) if (org !== null) yield* suspendDisputed(sql, org, suspendsDisputed)
  }
})

/** Stores a payment without a page, such as an invoice, from its entry. Does nothing if there is no entry. */
export const storeEntered = (sql: SqlClient.SqlClient, payment: string, paymentIntent: string) => sql`
  INSERT INTO payments (id, org_id, amount, status, payment_intent, entry_id, paid_at)
  SELECT ${payment}, org_id, amount, 'paid', ${paymentIntent}, id, at FROM ledger_entries
  WHERE kind = 'top_up' AND ref = ${refOf(paymentIntent)} ON CONFLICT DO NOTHING`

/** Copied references may have spaces: with them the payment could be credited twice, and would not be charged for refunds. */
const paymentRef = /^\s*stripe:\s*(\S+)\s*$/i

/** Enters a top-up. With the reference of a refused payment, it becomes that payment's entry. */
export const makeEnter =
  (sql: SqlClient.SqlClient, topUp: LedgerAdmin["Type"]["topUp"], suspendsDisputed: boolean) =>
  (payment: TopUp): ReturnType<typeof topUp> => {
    const [, paymentIntent] = paymentRef.exec(payment.ref ?? "") ?? []
    if (paymentIntent === undefined) return topUp(payment)
    return Effect.gen(function* () {
      yield* lockPayment(sql, paymentIntent)
      const entered = yield* topUp({ ...payment, ref: refOf(paymentIntent) })
      yield* adoptRefused(sql, paymentIntent, suspendsDisputed)
      return entered
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die), Effect.uninterruptible)
  }

export class NoForeignReversal extends Data.TaggedError("NoForeignReversal")<{
  readonly payment: string
  readonly id: string
}> {
  override get message() {
    return `The payment ${this.payment} has no refund or dispute ${this.id} in a currency other than USD.`
  }
}

/** Sets the USD amount of a refund or dispute in another currency. */
export const makeEnterReversal =
  (sql: SqlClient.SqlClient) =>
  (payment: string, id: string, amount: NanoUsd): Effect.Effect<void, NoForeignReversal> =>
    Effect.gen(function* () {
      const [found] = yield* rowsOf(Schema.Struct({ paymentIntent: Schema.NullOr(Schema.String) }))(sql`
        SELECT payment_intent FROM payments WHERE id = ${payment}`)
      yield* lockPayment(sql, found?.paymentIntent ?? payment)
      const changed = yield* sql`
        UPDATE payment_reversals SET amount = ${amount}::bigint, needs_amount = false
        WHERE id = ${id} AND payment_id = ${payment} AND foreign_amount IS NOT NULL RETURNING id`
      if (changed.length === 0) return yield* new NoForeignReversal({ payment, id })
      yield* sql`UPDATE payments SET version = version + 1 WHERE id = ${payment}`
      yield* applyReversals(sql, payment, [])
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die), Effect.uninterruptible)

import { Option, Schema } from "effect"
import { zero } from "../domain/Money.ts"
import { type CheckoutSession, fromCents, type Reversal } from "../domain/Payment.ts"

const Reference = Schema.NullishOr(
  Schema.Union(Schema.String, Schema.Struct({ id: Schema.String, status: Schema.NullishOr(Schema.String) }))
)

const idOf = (reference: typeof Reference.Type): string | undefined =>
  typeof reference === "string" ? reference : (reference?.id ?? undefined)

export const Session = Schema.Struct({
  id: Schema.String,
  url: Schema.optional(Schema.NullOr(Schema.String)),
  status: Schema.NullishOr(Schema.String),
  payment_status: Schema.String,
  amount_total: Schema.NullishOr(Schema.Int),
  currency: Schema.NullishOr(Schema.String),
  payment_intent: Reference,
  metadata: Schema.NullishOr(Schema.Record({ key: Schema.String, value: Schema.String }))
})

export const Refund = Schema.Struct({
  id: Schema.String,
  amount: Schema.Int,
  status: Schema.NullishOr(Schema.String),
  payment_intent: Reference,
  created: Schema.Int
})

export const Dispute = Schema.Struct({
  id: Schema.String,
  amount: Schema.Int,
  status: Schema.String,
  payment_intent: Reference,
  created: Schema.Int,
  /** What was taken from the account for it, below zero, and given back. */
  balance_transactions: Schema.Array(Schema.Struct({ amount: Schema.Int, currency: Schema.String }))
})

/** What an intent is once its debit has failed; told only where it was asked for with its session. */
const unpaidIntents = new Set(["requires_payment_method", "canceled"])

const hasFailed = ({ payment_intent: intent, payment_status, status }: typeof Session.Type): boolean => {
  if (status !== "complete" || payment_status !== "unpaid" || typeof intent === "string") return false
  return unpaidIntents.has(intent?.status ?? "")
}

export const sessionOf = (session: typeof Session.Type): CheckoutSession => ({
  id: session.id,
  url: session.url ?? undefined,
  isPaid: session.payment_status === "paid",
  isExpired: session.status === "expired",
  hasFailed: hasFailed(session),
  amount: Option.getOrUndefined(Option.map(Option.fromNullable(session.amount_total), fromCents)),
  currency: session.currency ?? undefined,
  paymentIntent: idOf(session.payment_intent),
  payment: session.metadata?.["payment"]
})

const failed = new Set(["failed", "canceled"])

const refundOf = ({ amount, created, id, status }: typeof Refund.Type): Reversal => {
  const state = status ?? "pending"
  return {
    id,
    kind: "refund",
    status: state,
    isOpen: state === "pending" || state === "requires_action",
    amount: failed.has(state) ? zero : fromCents(amount),
    createdAt: new Date(created * 1000)
  }
}

const closed = new Set(["won", "lost", "warning_closed", "charge_refunded", "prevented"])

/** In cents of the disputed currency; an account in another currency tells only whether there is anything. */
const withdrawn = ({ amount, balance_transactions: moves }: typeof Dispute.Type): number => {
  const taken = -moves.reduce((sum, move) => sum + move.amount, 0)
  if (taken <= 0) return 0
  if (moves.every(({ currency }) => currency === "usd")) return Math.min(taken, amount)
  return moves.some((move) => move.amount > 0) ? 0 : amount
}

const disputeOf = (dispute: typeof Dispute.Type): Reversal => ({
  id: dispute.id,
  kind: "dispute",
  status: dispute.status,
  isOpen: !closed.has(dispute.status),
  amount: fromCents(withdrawn(dispute)),
  createdAt: new Date(dispute.created * 1000)
})

/** Undefined where it is of no payment intent. */
const found = (reversal: Reversal, reference: typeof Reference.Type) => {
  const paymentIntent = idOf(reference)
  return paymentIntent === undefined ? [] : [{ ...reversal, paymentIntent }]
}

export const foundRefund = (refund: typeof Refund.Type) => found(refundOf(refund), refund.payment_intent)
export const foundDispute = (dispute: typeof Dispute.Type) => found(disputeOf(dispute), dispute.payment_intent)

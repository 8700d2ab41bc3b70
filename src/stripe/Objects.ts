import { Option, Schema } from "effect"
import { type NanoUsd, zero } from "../domain/Money.ts"
import { type CheckoutSession, fromCents, maxCents, type Reversal } from "../domain/Payment.ts"
import { ProviderText, ProviderTime } from "../services/payments/PaymentProvider.ts"

/** In the smallest unit of its currency. */
const Amount = Schema.Int.pipe(Schema.between(0, maxCents))
const Currency = Schema.String.pipe(Schema.pattern(/^[a-z]{3,12}$/))

/** A change of the account's balance; negative for a loss. */
const BalanceTransaction = Schema.Struct({
  amount: Schema.Int.pipe(Schema.between(-maxCents, maxCents)),
  currency: Currency
})

/** An object if it was expanded, else an id. */
const Intent = Schema.NullishOr(
  Schema.Union(ProviderText, Schema.Struct({ id: ProviderText, status: Schema.NullishOr(Schema.String) }))
)

const idOf = (intent: typeof Intent.Type): string | undefined =>
  typeof intent === "string" ? intent : (intent?.id ?? undefined)

export const Session = Schema.Struct({
  id: ProviderText,
  url: Schema.optional(Schema.NullOr(Schema.String)),
  status: Schema.NullishOr(Schema.String),
  payment_status: Schema.String,
  amount_total: Schema.NullishOr(Amount),
  currency: Schema.NullishOr(Currency),
  payment_intent: Intent,
  metadata: Schema.NullishOr(Schema.Record({ key: Schema.String, value: Schema.String }))
})

export const Refund = Schema.Struct({
  id: ProviderText,
  amount: Amount,
  currency: Currency,
  status: Schema.NullishOr(ProviderText),
  payment_intent: Intent,
  balance_transaction: Schema.NullishOr(Schema.Union(Schema.String, BalanceTransaction)),
  created: ProviderTime
})
type Refund = typeof Refund.Type

export const Dispute = Schema.Struct({
  id: ProviderText,
  amount: Amount,
  currency: Currency,
  status: ProviderText,
  payment_intent: Intent,
  created: ProviderTime,
  /** What was taken from the account for it, below zero, and given back. */
  balance_transactions: Schema.Array(BalanceTransaction)
})
type Dispute = typeof Dispute.Type

/** What an intent is once its debit has failed; told only where it was asked for with its session. */
const unpaidIntents = new Set(["requires_payment_method", "canceled"])

const hasFailed = ({ payment_intent: intent, payment_status, status }: typeof Session.Type): boolean => {
  if (status !== "complete" || payment_status !== "unpaid" || typeof intent === "string") return false
  return unpaidIntents.has(intent?.status ?? "")
}

/** A session that was not made here may have any text here. */
const decodePayment = Schema.decodeUnknownOption(ProviderText)

export const sessionOf = (session: typeof Session.Type): CheckoutSession => ({
  id: session.id,
  url: session.url ?? undefined,
  isPaid: session.payment_status === "paid",
  isExpired: session.status === "expired",
  hasFailed: hasFailed(session),
  amount: Option.getOrUndefined(Option.map(Option.fromNullable(session.amount_total), fromCents)),
  currency: session.currency ?? undefined,
  paymentIntent: idOf(session.payment_intent),
  payment: Option.getOrUndefined(decodePayment(session.metadata?.["payment"]))
})

const failed = new Set(["failed", "canceled"])

/**
 * Currencies whose amounts Stripe states without decimals or with three, as its documentation lists them. `Intl` follows what
 * is usual in cash: it has no decimals for HUF and IDR, which Stripe states in hundredths.
 */
const withoutDecimals = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" "))
const withThreeDecimals = new Set(["bhd", "jod", "kwd", "omr", "tnd"])

const decimalsOf = (currency: string): number =>
  withoutDecimals.has(currency) ? 0 : withThreeDecimals.has(currency) ? 3 : 2

/** As `1500 JPY`, `15.00 EUR`. */
const textOf = (amount: number, currency: string): string => {
  const decimals = decimalsOf(currency)
  return `${(amount / 10 ** decimals).toFixed(decimals)} ${currency.toUpperCase()}`
}

type Amounts = Pick<Reversal, "amount" | "foreignAmount">

const amountInUsd = (amount: NanoUsd): Amounts => ({ amount, foreignAmount: undefined })
const noAmount = amountInUsd(zero)

/** Whether a refund's amount in USD depends on the change of the account's balance. */
export const needsBalanceTransaction = ({ currency, status }: Refund): boolean =>
  currency !== "usd" && !failed.has(status ?? "")

const refundAmounts = (refund: Refund): Amounts => {
  const { amount, balance_transaction: move, currency, status } = refund
  if (failed.has(status ?? "")) return noAmount
  if (currency === "usd") return amountInUsd(fromCents(amount))
  const isInUsd = typeof move === "object" && move?.currency === "usd"
  return {
    amount: isInUsd ? fromCents(Math.max(0, -move.amount)) : undefined,
    foreignAmount: textOf(amount, currency)
  }
}

const refundOf = (refund: Refund): Reversal => {
  const status = refund.status ?? "pending"
  return {
    id: refund.id,
    kind: "refund",
    status,
    isOpen: status === "pending" || status === "requires_action",
    ...refundAmounts(refund),
    createdAt: new Date(refund.created * 1000)
  }
}

const closed = new Set(["won", "lost", "warning_closed", "charge_refunded", "prevented"])

/** If the account's balance is not in USD, its changes show only whether money was withdrawn. */
const disputeAmounts = ({ amount, balance_transactions: moves, currency }: Dispute): Amounts => {
  const inUsd = moves.every((move) => move.currency === "usd")
  const moved = -moves.reduce((sum, move) => sum + move.amount, 0)
  if (moved <= 0 || (!inUsd && moves.some((move) => move.amount > 0))) return noAmount
  if (currency === "usd") return amountInUsd(fromCents(inUsd ? Math.min(moved, amount) : amount))
  const isKnown = inUsd && moved <= maxCents
  return { amount: isKnown ? fromCents(moved) : undefined, foreignAmount: textOf(amount, currency) }
}

const disputeOf = (dispute: Dispute): Reversal => ({
  id: dispute.id,
  kind: "dispute",
  status: dispute.status,
  isOpen: !closed.has(dispute.status),
  ...disputeAmounts(dispute),
  createdAt: new Date(dispute.created * 1000)
})

/** Undefined where it is of no payment intent. */
const found = (reversal: Reversal, intent: typeof Intent.Type) => {
  const paymentIntent = idOf(intent)
  return paymentIntent === undefined ? [] : [{ ...reversal, paymentIntent }]
}

export const foundRefund = (refund: Refund) => found(refundOf(refund), refund.payment_intent)
export const foundDispute = (dispute: Dispute) => found(disputeOf(dispute), dispute.payment_intent)

import { Effect, Layer, Option, Schema } from "effect"
import { type NanoUsd, zero } from "../domain/Money.ts"
import { type CheckoutSession, fromCents, maxCents, type Reversal } from "../domain/Payment.ts"
import {
  type CheckoutOrder,
  PaymentProvider,
  PaymentProviderFailed,
  ProviderText,
  ProviderTime
} from "../services/payments/PaymentProvider.ts"
import { type ClientOptions, type Listing, makeClient, type Query } from "./StripeClient.ts"

/** In the smallest unit of the currency. */
const Amount = Schema.Int.pipe(Schema.between(0, maxCents))
const Currency = Schema.String.pipe(Schema.pattern(/^[a-z]{3,12}$/))

/** A change of the Stripe account's balance. Negative amounts are withdrawals. */
const BalanceTransaction = Schema.Struct({
  amount: Schema.Int.pipe(Schema.between(-maxCents, maxCents)),
  currency: Currency
})

/** An object if the field is expanded, otherwise an id. */
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
  /** Withdrawals for the dispute, with negative amounts, and their returns. */
  balance_transactions: Schema.Array(BalanceTransaction)
})
type Dispute = typeof Dispute.Type

/** The statuses that a payment intent has after a failed debit. */
const unpaidStatuses = new Set(["requires_payment_method", "canceled"])

const hasFailed = ({ payment_intent: intent, payment_status, status }: typeof Session.Type): boolean => {
  if (status !== "complete" || payment_status !== "unpaid" || typeof intent === "string") return false
  return unpaidStatuses.has(intent?.status ?? "")
}

/** Tolerates invalid values, because another program may have created the session with any text as its payment id. */
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

const failedStatuses = new Set(["failed", "canceled"])

/**
 * From Stripe's documentation. `Intl` differs: for example, it has no decimals for HUF and IDR, whose amounts Stripe states in
 * hundredths.
 */
const zeroDecimalCurrencies = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" "))
const threeDecimalCurrencies = new Set(["bhd", "jod", "kwd", "omr", "tnd"])

const decimalsOf = (currency: string): number =>
  zeroDecimalCurrencies.has(currency) ? 0 : threeDecimalCurrencies.has(currency) ? 3 : 2

/** Returns a text such as `1500 JPY` or `15.00 EUR`. */
const toAmountText = (amount: number, currency: string): string => {
  const decimals = decimalsOf(currency)
  return `${(amount / 10 ** decimals).toFixed(decimals)} ${currency.toUpperCase()}`
}

type Amounts = Pick<Reversal, "amount" | "foreignAmount">

const usdAmount = (amount: NanoUsd): Amounts => ({ amount, foreignAmount: undefined })
const noAmount = usdAmount(zero)

/** Returns whether only the balance transaction has the refund's USD amount. */
const needsBalanceTransaction = ({ currency, status }: Refund): boolean =>
  currency !== "usd" && !failedStatuses.has(status ?? "")

const refundAmounts = (refund: Refund): Amounts => {
  const { amount, balance_transaction: transaction, currency, status } = refund
  if (failedStatuses.has(status ?? "")) return noAmount
  if (currency === "usd") return usdAmount(fromCents(amount))
  const isInUsd = typeof transaction === "object" && transaction?.currency === "usd"
  return {
    amount: isInUsd ? fromCents(Math.max(0, -transaction.amount)) : undefined,
    foreignAmount: toAmountText(amount, currency)
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

const closedStatuses = new Set(["won", "lost", "warning_closed", "charge_refunded", "prevented"])

/**
 * If the account's balance is in another currency, its transactions show whether money was withdrawn but not the USD amount.
 */
const disputeAmounts = ({ amount, balance_transactions: transactions, currency }: Dispute): Amounts => {
  const areInUsd = transactions.every((transaction) => transaction.currency === "usd")
  const withdrawn = -transactions.reduce((sum, transaction) => sum + transaction.amount, 0)
  if (withdrawn <= 0 || (!areInUsd && transactions.some((transaction) => transaction.amount > 0))) return noAmount
  if (currency === "usd") return usdAmount(fromCents(areInUsd ? Math.min(withdrawn, amount) : amount))
  const isKnown = areInUsd && withdrawn <= maxCents
  return { amount: isKnown ? fromCents(withdrawn) : undefined, foreignAmount: toAmountText(amount, currency) }
}

const disputeOf = (dispute: Dispute): Reversal => ({
  id: dispute.id,
  kind: "dispute",
  status: dispute.status,
  isOpen: !closedStatuses.has(dispute.status),
  ...disputeAmounts(dispute),
  createdAt: new Date(dispute.created * 1000)
})

/** Omits a reversal without a payment intent. */
const toFoundReversals = (reversal: Reversal, intent: typeof Intent.Type) => {
  const paymentIntent = idOf(intent)
  return paymentIntent === undefined ? [] : [{ ...reversal, paymentIntent }]
}

export const toRefundReversals = (refund: Refund) => toFoundReversals(refundOf(refund), refund.payment_intent)
export const toDisputeReversals = (dispute: Dispute) => toFoundReversals(disputeOf(dispute), dispute.payment_intent)

const orderForm = ({ cancelUrl, cents, org, payment, successUrl }: CheckoutOrder) => {
  const metadata = { payment, organization: org }
  const price = { currency: "usd", unit_amount: cents, product_data: { name: "API credits" } }
  return {
    mode: "payment",
    client_reference_id: payment,
    line_items: [{ quantity: 1, price_data: price }],
    metadata,
    payment_intent_data: { metadata },
    success_url: successUrl,
    cancel_url: cancelUrl
  }
}

const createdSince = (since: Date) => ({ created: { gte: Math.floor(since.getTime() / 1000) } })

/** Fails if an object could not be decoded, because the payment's ledger entries would be wrong without it. */
const requireAll = <A>({ items, unreadable }: Listing<A>): Effect.Effect<ReadonlyArray<A>, PaymentProviderFailed> =>
  unreadable.length === 0
    ? Effect.succeed(items)
    : new PaymentProviderFailed({ message: `Stripe objects could not be decoded: ${unreadable.join(", ")}.` })

/** Logs and skips objects that could not be decoded, so they don't block other payments. */
const skipUnreadable =
  <A, B>(itemsOf: (item: A) => ReadonlyArray<B>) =>
  ({ items, unreadable }: Listing<A>) =>
    Effect.as(
      Effect.forEach(
        unreadable,
        (object) => Effect.logWarning(`Skipped a Stripe object that could not be decoded: ${object}.`),
        { discard: true }
      ),
      { items: items.flatMap(itemsOf), unreadable: unreadable.length }
    )

/** Implements `PaymentProvider` with Stripe Checkout. */
export const layer = (options: ClientOptions) =>
  Layer.scoped(
    PaymentProvider,
    Effect.gen(function* () {
      const { call, find, list } = yield* makeClient(options)
      const sessions = (query: Query) =>
        list(Session, "/v1/checkout/sessions", { ...query, expand: ["data.payment_intent"] })
      const refunds = (query: Query) => list(Refund, "/v1/refunds", query)
      const disputes = (query: Query) => list(Dispute, "/v1/disputes", query)

      /** Fetches the balance transaction of a refund in another currency, which has its USD amount. */
      const withBalanceTransaction = (refund: typeof Refund.Type) =>
        needsBalanceTransaction(refund)
          ? Effect.map(
              find(Refund, `/v1/refunds/${encodeURIComponent(refund.id)}`, { expand: ["balance_transaction"] }),
              (expanded) => expanded ?? refund
            )
          : Effect.succeed(refund)

      return PaymentProvider.of({
        createSession: (order) =>
          Effect.map(
            call(Session, {
              path: "/v1/checkout/sessions",
              post: { form: orderForm(order), idempotencyKey: order.payment }
            }),
            sessionOf
          ),
        session: (id) =>
          Effect.map(
            find(Session, `/v1/checkout/sessions/${encodeURIComponent(id)}`, { expand: ["payment_intent"] }),
            (session) => (session === undefined ? undefined : sessionOf(session))
          ),
        sessionOf: (paymentIntent) =>
          sessions({ payment_intent: paymentIntent }).pipe(
            Effect.flatMap(requireAll),
            Effect.map(([session]) => (session === undefined ? undefined : sessionOf(session)))
          ),
        reversals: Effect.fnUntraced(function* (paymentIntent) {
          const query = { payment_intent: paymentIntent }
          const [listedRefunds, listedDisputes] = yield* Effect.all([
            Effect.flatMap(refunds(query), requireAll),
            Effect.flatMap(disputes(query), requireAll)
          ])
          const expandedRefunds = yield* Effect.forEach(listedRefunds, withBalanceTransaction)
          return [...expandedRefunds.flatMap(toRefundReversals), ...listedDisputes.flatMap(toDisputeReversals)]
        }),
        sessionsSince: (since) =>
          Effect.flatMap(
            sessions(createdSince(since)),
            skipUnreadable((session) => [sessionOf(session)])
          ),
        reversalsSince: Effect.fnUntraced(function* (since) {
          const query = createdSince(since)
          const refundReversals = yield* Effect.flatMap(refunds(query), skipUnreadable(toRefundReversals))
          const disputeReversals = yield* Effect.flatMap(disputes(query), skipUnreadable(toDisputeReversals))
          const unreadable = refundReversals.unreadable + disputeReversals.unreadable
          return { items: [...refundReversals.items, ...disputeReversals.items], unreadable }
        })
      })
    })
  )

import { Effect, Layer } from "effect"
import { type CheckoutOrder, PaymentProvider, PaymentProviderFailed } from "../services/payments/PaymentProvider.ts"
import { type ClientOptions, type Listing, makeClient, type Query } from "./StripeClient.ts"
import {
  Dispute,
  needsBalanceTransaction,
  Refund,
  Session,
  sessionOf,
  toDisputeReversals,
  toRefundReversals
} from "./StripeObjects.ts"

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

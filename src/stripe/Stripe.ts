import { Effect, Layer } from "effect"
import { type CheckoutOrder, PaymentProvider, PaymentProviderFailed } from "../services/payments/PaymentProvider.ts"
import { type ClientOptions, type Listing, makeClient, type Query } from "./Client.ts"
import { Dispute, foundDispute, foundRefund, needsBalanceTransaction, Refund, Session, sessionOf } from "./Objects.ts"

const orderForm = ({ cents, org, payment, returnUrl }: CheckoutOrder) => {
  const metadata = { payment, organization: org }
  const price = { currency: "usd", unit_amount: cents, product_data: { name: "API credits" } }
  return {
    mode: "payment",
    client_reference_id: payment,
    line_items: [{ quantity: 1, price_data: price }],
    metadata,
    payment_intent_data: { metadata },
    success_url: returnUrl,
    cancel_url: returnUrl
  }
}

const createdSince = (since: Date) => ({ created: { gte: Math.floor(since.getTime() / 1000) } })

/** With only some of a payment's objects, its entries would be wrong. */
const requireAll = <A>({ items, unreadable }: Listing<A>): Effect.Effect<ReadonlyArray<A>, PaymentProviderFailed> =>
  unreadable.length === 0
    ? Effect.succeed(items)
    : new PaymentProviderFailed({ message: `Objects of Stripe cannot be read: ${unreadable.join(", ")}.` })

/** An unreadable object of one payment must not stop the others. */
const skipUnreadable =
  <A, B>(itemsOf: (item: A) => ReadonlyArray<B>) =>
  ({ items, unreadable }: Listing<A>) =>
    Effect.as(
      Effect.forEach(
        unreadable,
        (object) => Effect.logWarning(`Skipped an object of Stripe that cannot be read: ${object}.`),
        { discard: true }
      ),
      { items: items.flatMap(itemsOf), unreadable: unreadable.length }
    )

/** Payments by pages of Stripe Checkout. */
export const layer = (options: ClientOptions) =>
  Layer.scoped(
    PaymentProvider,
    Effect.gen(function* () {
      const { call, find, list } = yield* makeClient(options)
      const sessions = (query: Query) =>
        list(Session, "/v1/checkout/sessions", { ...query, expand: ["data.payment_intent"] })
      const refunds = (query: Query) => list(Refund, "/v1/refunds", query)
      const disputes = (query: Query) => list(Dispute, "/v1/disputes", query)

      /** Only refunds in other currencies need this extra call. */
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
          const [refunded, disputed] = yield* Effect.all([
            Effect.flatMap(refunds(query), requireAll),
            Effect.flatMap(disputes(query), requireAll)
          ])
          const moved = yield* Effect.forEach(refunded, withBalanceTransaction)
          return [...moved.flatMap(foundRefund), ...disputed.flatMap(foundDispute)]
        }),
        sessionsSince: (since) =>
          Effect.flatMap(
            sessions(createdSince(since)),
            skipUnreadable((session) => [sessionOf(session)])
          ),
        reversalsSince: Effect.fnUntraced(function* (since) {
          const query = createdSince(since)
          const refunded = yield* Effect.flatMap(refunds(query), skipUnreadable(foundRefund))
          const disputed = yield* Effect.flatMap(disputes(query), skipUnreadable(foundDispute))
          const unreadable = refunded.unreadable + disputed.unreadable
          return { items: [...refunded.items, ...disputed.items], unreadable }
        })
      })
    })
  )

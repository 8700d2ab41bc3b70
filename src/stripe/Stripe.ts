import { Effect, Layer } from "effect"
import { type CheckoutOrder, PaymentProvider } from "../services/payments/PaymentProvider.ts"
import { type ClientOptions, makeClient } from "./Client.ts"
import { Dispute, foundDispute, foundRefund, Refund, Session, sessionOf } from "./Objects.ts"

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

/** Payments by pages of Stripe Checkout. */
export const layer = (options: ClientOptions) =>
  Layer.scoped(
    PaymentProvider,
    Effect.gen(function* () {
      const { call, find, list } = yield* makeClient(options)
      const sessions = (query: Parameters<typeof list>[2]) =>
        Effect.map(list(Session, "/v1/checkout/sessions", { ...query, expand: ["data.payment_intent"] }), (all) =>
          all.map(sessionOf)
        )
      const refunds = (query: Parameters<typeof list>[2]) => list(Refund, "/v1/refunds", query)
      const disputes = (query: Parameters<typeof list>[2]) => list(Dispute, "/v1/disputes", query)

      const reversals = Effect.fnUntraced(function* (query: Parameters<typeof list>[2]) {
        const [refunded, disputed] = yield* Effect.all([refunds(query), disputes(query)])
        return [...refunded.flatMap(foundRefund), ...disputed.flatMap(foundDispute)]
      })

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
        sessionOf: (paymentIntent) => Effect.map(sessions({ payment_intent: paymentIntent }), ([session]) => session),
        reversals: (paymentIntent) => reversals({ payment_intent: paymentIntent }),
        sessionsSince: (since) => sessions(createdSince(since)),
        reversalsSince: (since) => reversals(createdSince(since))
      })
    })
  )

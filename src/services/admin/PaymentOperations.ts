import { Effect, identity } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import { Payment } from "../payments/PaymentRecord.ts"
import { Payments } from "../payments/Payments.ts"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { Organizations } from "./Organizations.ts"

const payments = auditResource({
  name: "payments",
  record: Payment,
  find: (scope, id) => Effect.flatMap(Payments, ({ find }) => find(scope, id))
})

/** Stores the payment first, then creates its page. If the page could not be created, a replay of this operation creates it. */
export const checkout = operation(
  "Create a payment page for an organization's credits",
  (order: { readonly organization: string; readonly amount: NanoUsd }) =>
    Effect.gen(function* () {
      const { begin, checkout } = yield* Payments
      const { scope } = yield* CurrentActor
      const payment = Effect.flatMap(
        Effect.flatMap(Organizations, ({ findLocked }) => findLocked(scope, order.organization)),
        ({ id }) => begin({ org: id, amount: order.amount })
      )
      const { record } = yield* payments.create("checkout", order, payment, identity)
      return yield* checkout(scope, record.id)
    })
)

/** An operator enters the amount if the provider reports it only in another currency. */
export const reverse = operation(
  "Enter the USD amount of a refund or dispute that is in another currency",
  (input: { readonly id: string; readonly reversal: string; readonly amount: NanoUsd }) =>
    Effect.gen(function* () {
      const { enterReversal, find } = yield* Payments
      return yield* payments.change("reverse", input.id, input, (scope, id) =>
        Effect.zipRight(enterReversal(id, input.reversal, input.amount), find(scope, id))
      )
    })
)

/** Not audited, because `checkout` was audited when the payment began. */
export const resume = operation("Get the payment page of an open payment", (id: string) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    return yield* (yield* Payments).checkout(scope, id)
  })
)

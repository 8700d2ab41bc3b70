import { Effect, identity } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import { Payment } from "../payments/Payment.ts"
import { Payments } from "../payments/Payments.ts"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./Operation.ts"
import { Organizations } from "./Organizations.ts"

const payments = auditResource({
  name: "payments",
  record: Payment,
  find: (scope, id) => Effect.flatMap(Payments, ({ find }) => find(scope, id))
})

/** The payment is in the database before its page is asked for, which is repeated with a repeated key. */
export const checkout = operation(
  "Make a page where an organization pays for credits",
  (given: { readonly organization: string; readonly amount: NanoUsd }) =>
    Effect.gen(function* () {
      const { begin, checkout } = yield* Payments
      const { scope } = yield* CurrentActor
      const begun = Effect.flatMap(
        Effect.flatMap(Organizations, ({ keep }) => keep(scope, given.organization)),
        ({ id }) => begin({ org: id, amount: given.amount })
      )
      const { record } = yield* payments.create("checkout", given, begun, identity)
      return yield* checkout(scope, record.id)
    })
)

/** The provider states it in another currency only, so an operator looks the USD amount up. */
export const reverse = operation(
  "Enter the USD amount of a refund or dispute in another currency",
  (given: { readonly id: string; readonly reversal: string; readonly amount: NanoUsd }) =>
    Effect.gen(function* () {
      const { enterReversal, find } = yield* Payments
      return yield* payments.change("reverse", given.id, given, (scope, id) =>
        Effect.zipRight(enterReversal(id, given.reversal, given.amount), find(scope, id))
      )
    })
)

/** The audit has the payment from when it was begun. */
export const resume = operation("Find the page where an open payment is made", (id: string) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    return yield* (yield* Payments).checkout(scope, id)
  })
)

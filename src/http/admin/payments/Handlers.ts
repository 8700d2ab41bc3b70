import { HttpApiBuilder } from "@effect/platform"
import { Effect, identity } from "effect"
import { GatewayBusy, InvalidRequest } from "../../../domain/Failure.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import * as Operations from "../../../services/admin/PaymentOperations.ts"
import type { Payment } from "../../../services/payments/Payment.ts"
import type { PaymentProviderFailed } from "../../../services/payments/PaymentProvider.ts"
import { Payments } from "../../../services/payments/Payments.ts"
import { AdminApi } from "../AdminApi.ts"
import { conflict, invalid, notFound } from "../Fields.ts"
import { filtersOf } from "../Filters.ts"
import { cutPage, defaultListed, wrongCursor } from "../Page.ts"

const wellFormedId = /^pay_[0-9a-f]{32}$/

const needsOrganization = new InvalidRequest({
  message: "`organization` must be an id or a name.",
  param: "organization"
})

const noPage = {
  PaymentNotFound: notFound,
  PaymentOver: conflict(null),
  PaymentMade: conflict(null),
  PayerDeleted: conflict(null),
  PaymentProviderFailed: ({ message }: PaymentProviderFailed) =>
    Effect.zipRight(Effect.logWarning(`There is no page for a payment: ${message}`), new GatewayBusy())
}

export const PaymentsHandlers = HttpApiBuilder.group(
  AdminApi,
  "payments",
  Effect.fnUntraced(function* (handlers) {
    const payments = yield* Payments
    return handlers
      .handle("checkout", ({ payload: { amount_usd: amount, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const payer = organization ?? scope.org
          if (payer === undefined) return yield* needsOrganization
          return yield* Operations.checkout.run({ organization: payer, amount })
        }).pipe(
          Effect.catchTags({
            OrganizationNotFound: invalid("organization"),
            AmountRefused: ({ problem }) =>
              new InvalidRequest({ message: `\`amount_usd\` ${problem}.`, param: "amount_usd" }),
            TooManyOpen: invalid(null),
            ...noPage
          })
        )
      )
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !wellFormedId.test(after)) return yield* wrongCursor
          const { scope } = yield* CurrentActor
          const rows = yield* payments.page(scope, { ...(yield* filtersOf(given)), after, limit: limit + 1 })
          return cutPage(rows, limit, identity<Payment>, ({ id }) => id)
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.flatMap(CurrentActor, ({ scope }) => payments.find(scope, id)).pipe(
          Effect.catchTag("PaymentNotFound", notFound)
        )
      )
      .handle("reverse", ({ path: { id, reversal }, payload: { amount_usd: amount } }) =>
        Effect.gen(function* () {
          yield* Operations.reverse.run({ id, reversal, amount })
          const { scope } = yield* CurrentActor
          return yield* payments.find(scope, id)
        }).pipe(Effect.catchTags({ NoForeignReversal: notFound, PaymentNotFound: notFound }))
      )
      .handle("resume", ({ path: { id } }) => Effect.catchTags(Operations.resume.run(id), noPage))
  })
)

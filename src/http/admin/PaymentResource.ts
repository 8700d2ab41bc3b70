import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Schema } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Operations from "../../services/admin/PaymentOperations.ts"
import type { PaymentProviderFailed } from "../../services/payments/PaymentProvider.ts"
import { Payment, PublicPayment } from "../../services/payments/PaymentRecord.ts"
import { Payments } from "../../services/payments/Payments.ts"
import { body, field, optionalField } from "../../services/resources/ResourceInput.ts"
import { response } from "../errors/ErrorMessages.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, WriteAccess } from "./AdminAccess.ts"
import {
  cutPage,
  defaultLimit,
  filtersOf,
  invalidCursor,
  organizationParameter,
  pageOf,
  pageParameters,
  spanParameters
} from "./AdminLists.ts"
import { conflict, invalid, notFound, organizationReference, usd } from "./Fields.ts"

const CheckoutPage = Schema.Struct({
  id: Schema.String.annotations({ description: "The payment's id, `pay_…`." }),
  url: Schema.String.annotations({ description: "The URL of the payment page for the customer's browser." })
}).annotations({ identifier: "CheckoutPage" })

const PageUnavailable = response(
  "Stripe did not respond, or the payment page is not ready yet: try again. Or the Stripe key belongs to another account.",
  "GatewayBusy"
)

const checkoutEndpoint = HttpApiEndpoint.post("checkout", "/checkout")
  .setPayload(
    body({
      organization: optionalField(
        "organization",
        ...organizationReference,
        "The paying organization's id or name. The default for members is their own organization."
      ),
      amount_usd: field("amount_usd", ...usd.positive, "The amount to pay and credit, in whole cents.")
    })
  )
  .addSuccess(CheckoutPage, { status: 201 })
  .addError(PageUnavailable)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.checkout.summary)
  .annotateContext(exposeToMembers(CheckoutPage))

const MemberPayment = Payment.pick(
  "id",
  "created_at",
  "org",
  "org_name",
  "status",
  "amount_usd",
  "reversed_usd",
  "disputed",
  "paid_at"
)
const memberParameters = ["limit", "after", "organization", "status", "since", "until"]

const listEndpoint = HttpApiEndpoint.get("list", "/payments")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      status: queryParameter(
        "status",
        ...oneOf(...Payment.fields.status.literals),
        "The payment's status. The default is all."
      ),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(Payment, "Payments"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List payments, newest first")
  .annotateContext(exposeToMembers(pageOf(MemberPayment, "MemberPayments"), { parameters: memberParameters }))

const payment = Schema.Struct({ id: Schema.String.annotations({ description: "A payment's id, `pay_…`." }) })

const showEndpoint = HttpApiEndpoint.get("show", "/payments/:id")
  .setPath(payment)
  .addSuccess(PublicPayment)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a payment with its reversals and Stripe events")
  .annotateContext(
    exposeToMembers(
      Schema.Struct({
        ...MemberPayment.fields,
        receipt: PublicPayment.fields.receipt,
        reversals: PublicPayment.fields.reversals
      })
    )
  )

const resumeEndpoint = HttpApiEndpoint.post("resume", "/payments/:id/checkout")
  .setPath(payment)
  .addSuccess(CheckoutPage)
  .addError(PageUnavailable)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.resume.summary)
  .annotateContext(exposeToMembers(CheckoutPage))

const reverseEndpoint = HttpApiEndpoint.post("reverse", "/payments/:id/reversals/:reversal")
  .setPath(
    Schema.Struct({
      ...payment.fields,
      reversal: Schema.String.annotations({ description: "A refund's id, `re_…`, or a dispute's, `du_…`." })
    })
  )
  .setPayload(
    body({
      amount_usd: field(
        "amount_usd",
        ...usd.nonNegative,
        "The amount to take from the balance, in USD. 0 takes nothing."
      )
    })
  )
  .addSuccess(PublicPayment)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reverse.summary)

export const PaymentsGroup = HttpApiGroup.make("payments")
  .add(checkoutEndpoint)
  .add(listEndpoint)
  .add(showEndpoint)
  .add(resumeEndpoint)
  .add(reverseEndpoint)
  .addError(ChangeErrors)

const wellFormedId = /^pay_[0-9a-f]{32}$/

const pageRefusals = {
  PaymentNotFound: notFound,
  PaymentClosed: conflict(null),
  PaymentCompleted: conflict(null),
  PayerDeleted: conflict(null),
  PaymentProviderFailed: ({ message }: PaymentProviderFailed) =>
    Effect.zipRight(Effect.logWarning(`Could not create a payment page: ${message}`), new GatewayBusy())
}

export const PaymentsHandlers = HttpApiBuilder.group(
  adminApiOf(PaymentsGroup),
  "payments",
  Effect.fnUntraced(function* (handlers) {
    const payments = yield* Payments
    return handlers
      .handle("checkout", ({ payload: { amount_usd: amount, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const payer = organization ?? scope.org
          if (payer === undefined)
            return yield* invalid("organization")({ message: "`organization` must be an id or a name." })
          return yield* Operations.checkout.run({ organization: payer, amount })
        }).pipe(
          Effect.catchTags({
            OrganizationNotFound: invalid("organization"),
            AmountRefused: ({ problem }) => invalid("amount_usd")({ message: `\`amount_usd\` ${problem}.` }),
            TooManyOpenPayments: invalid(null),
            ...pageRefusals
          })
        )
      )
      .handle("list", ({ urlParams: { after, limit = defaultLimit, ...filters } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !wellFormedId.test(after)) return yield* invalidCursor
          const { scope } = yield* CurrentActor
          const rows = yield* payments.page(scope, { ...(yield* filtersOf(filters)), after, limit: limit + 1 })
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
        }).pipe(Effect.catchTags({ ForeignReversalNotFound: notFound, PaymentNotFound: notFound }))
      )
      .handle("resume", ({ path: { id } }) => Effect.catchTags(Operations.resume.run(id), pageRefusals))
  })
)

import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Schema } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Operations from "../../services/admin/PaymentOperations.ts"
import { Payment, ShownPayment } from "../../services/payments/Payment.ts"
import type { PaymentProviderFailed } from "../../services/payments/PaymentProvider.ts"
import { Payments } from "../../services/payments/Payments.ts"
import { body, field, optionalField } from "../../services/resources/BodyFields.ts"
import { onWire } from "../errors/Schemas.ts"
import { oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import { conflict, invalid, notFound, organizationReference, usd } from "./Fields.ts"
import { filtersOf, organizationParameter, spanParameters } from "./Filters.ts"
import { membersSee } from "./Members.ts"
import { cutPage, defaultListed, pageOf, pageParameters, wrongCursor } from "./Page.ts"

const CheckoutPage = Schema.Struct({
  id: Schema.String.annotations({ description: "The payment's id, `pay_…`." }),
  url: Schema.String.annotations({ description: "Where to send the customer's browser." })
}).annotations({ identifier: "CheckoutPage" })

const NoPageNow = onWire(503, GatewayBusy).annotations({
  description:
    "Stripe could not be asked, or the page may be being made: try again. Or this key of Stripe does not know the page."
})

const checkout = HttpApiEndpoint.post("checkout", "/checkout")
  .setPayload(
    body({
      organization: optionalField(
        "organization",
        ...organizationReference,
        "Who pays: an id or a name; of a member its own organization, if left out."
      ),
      amount_usd: field("amount_usd", ...usd.positive, "What is paid and credited, in whole cents.")
    })
  )
  .addSuccess(CheckoutPage, { status: 201 })
  .addError(NoPageNow)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.checkout.summary)
  .annotateContext(membersSee(CheckoutPage))

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
const ofMembers = ["limit", "after", "organization", "status", "since", "until"]

const list = HttpApiEndpoint.get("list", "/payments")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      status: parameter("status", ...oneOf(...Payment.fields.status.literals), "Where they stand; all if left out."),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(Payment, "Payments"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List payments, newest first")
  .annotateContext(membersSee(pageOf(MemberPayment, "MemberPayments"), { parameters: ofMembers }))

const payment = Schema.Struct({ id: Schema.String.annotations({ description: "A payment's id, `pay_…`." }) })

const show = HttpApiEndpoint.get("show", "/payments/:id")
  .setPath(payment)
  .addSuccess(ShownPayment)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a payment, what was taken back of it, and the events that told of it")
  .annotateContext(membersSee(Schema.Struct({ ...MemberPayment.fields, reversals: ShownPayment.fields.reversals })))

const resume = HttpApiEndpoint.post("resume", "/payments/:id/checkout")
  .setPath(payment)
  .addSuccess(CheckoutPage)
  .addError(NoPageNow)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.resume.summary)
  .annotateContext(membersSee(CheckoutPage))

const reverse = HttpApiEndpoint.post("reverse", "/payments/:id/reversals/:reversal")
  .setPath(
    Schema.Struct({
      ...payment.fields,
      reversal: Schema.String.annotations({ description: "A refund's id, `re_…`, or a dispute's, `du_…`." })
    })
  )
  .setPayload(body({ amount_usd: field("amount_usd", ...usd.nonNegative, "Its amount in USD; 0 charges nothing.") }))
  .addSuccess(ShownPayment)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reverse.summary)

export const PaymentsGroup = HttpApiGroup.make("payments")
  .add(checkout)
  .add(list)
  .add(show)
  .add(resume)
  .add(reverse)
  .addError(ChangeErrors)

const wellFormedId = /^pay_[0-9a-f]{32}$/

const noPage = {
  PaymentNotFound: notFound,
  PaymentOver: conflict(null),
  PaymentMade: conflict(null),
  PayerDeleted: conflict(null),
  PaymentProviderFailed: ({ message }: PaymentProviderFailed) =>
    Effect.zipRight(Effect.logWarning(`There is no page for a payment: ${message}`), new GatewayBusy())
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

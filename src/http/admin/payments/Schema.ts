import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { GatewayBusy } from "../../../domain/Failure.ts"
import * as Operations from "../../../services/admin/PaymentOperations.ts"
import { Payment, ShownPayment } from "../../../services/payments/Payment.ts"
import { body, field, optionalField, Text, usdWhere } from "../../../services/resources/BodyFields.ts"
import { onWire } from "../../errors/Schemas.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { usdProblem } from "../Fields.ts"
import { organizationParameter, spanParameters } from "../Filters.ts"
import { membersSee, OpenToMembers } from "../Members.ts"
import { pageOf, pageParameters } from "../Page.ts"

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
        Text,
        "must be an id or a name",
        "Who pays: an id or a name; of a member its own organization, if left out."
      ),
      amount_usd: field(
        "amount_usd",
        usdWhere((amount) => amount > 0n),
        usdProblem.positive,
        "What is paid and credited, in whole cents."
      )
    })
  )
  .addSuccess(CheckoutPage, { status: 201 })
  .addError(NoPageNow)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.checkout.summary)
  .annotate(OpenToMembers, membersSee(CheckoutPage))

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
      status: parameter(
        "status",
        Payment.fields.status,
        `must be one of ${Payment.fields.status.literals.join(", ")}`,
        "Where they stand; all if left out."
      ),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(Payment, "Payments"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List payments, newest first")
  .annotate(OpenToMembers, membersSee(pageOf(MemberPayment, "MemberPayments"), { parameters: ofMembers }))

const payment = Schema.Struct({ id: Schema.String.annotations({ description: "A payment's id, `pay_…`." }) })

const show = HttpApiEndpoint.get("show", "/payments/:id")
  .setPath(payment)
  .addSuccess(ShownPayment)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a payment, what was taken back of it, and the events that told of it")
  .annotate(
    OpenToMembers,
    membersSee(Schema.Struct({ ...MemberPayment.fields, reversals: ShownPayment.fields.reversals }))
  )

const resume = HttpApiEndpoint.post("resume", "/payments/:id/checkout")
  .setPath(payment)
  .addSuccess(CheckoutPage)
  .addError(NoPageNow)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.resume.summary)
  .annotate(OpenToMembers, membersSee(CheckoutPage))

const reverse = HttpApiEndpoint.post("reverse", "/payments/:id/reversals/:reversal")
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
        usdWhere((amount) => amount >= 0n),
        usdProblem.nonNegative,
        "Its amount in USD; 0 charges nothing."
      )
    })
  )
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

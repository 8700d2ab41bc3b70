import { Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { documentFields } from "../statements/Seller.ts"

export const Payment = Schema.Struct({
  id: Schema.String,
  created_at: UnixSeconds,
  org: Schema.NullOr(OrgId).annotations({ description: "Null for a payment that this gateway did not start." }),
  org_name: TextOrNull,
  status: Schema.Literal("open", "paid", "failed", "expired", "refused").annotations({
    description: "Refused: paid but not credited, for the reason in `problem`."
  }),
  amount_usd: Schema.NullOr(Usd).annotations({
    description:
      "The requested amount. For a refused payment, the paid amount, or null if it was paid in another currency."
  }),
  reversed_usd: Usd.annotations({ description: "The total of refunds and disputes." }),
  disputed: Schema.Boolean.annotations({ description: "Whether a dispute is open." }),
  paid_at: TimeOrNull,
  problem: TextOrNull,
  session: TextOrNull,
  payment_intent: TextOrNull,
  entry: TextOrNull.annotations({ description: "The id of its ledger entry." })
}).annotations({ identifier: "Payment" })
export type Payment = typeof Payment.Type

// Deadlines, counted from the start of a payment: until the request for its page may begin, until the statement that stores
// the page may begin, and until others wait for a page. The request takes up to 30 seconds, and the statement up to 15.
export const secondsToRequestPage = 60
export const secondsToStorePage = secondsToRequestPage + 45
export const secondsToAwaitPage = secondsToStorePage + 15

/** SQL: how much of a `payment` was taken back. */
export const reversedSql =
  "(SELECT coalesce(sum(taken), 0)::bigint FROM payment_reversals WHERE payment_id = payment.id)"

/** SQL: whether a dispute of a `payment` is open. */
export const disputedSql = `EXISTS (
    SELECT FROM payment_reversals WHERE payment_id = payment.id AND kind = 'dispute' AND is_open
  )`

/** The columns of `Payment`, for a table or alias `payment`. */
export const paymentColumns = `payment.id, payment.created_at, payment.org_id AS org, payment.status,
  (SELECT name FROM organizations WHERE organizations.id = payment.org_id) AS org_name,
  payment.amount AS amount_usd, payment.paid_at, payment.problem, payment.session, payment.payment_intent,
  payment.entry_id AS entry,
  ${reversedSql} AS reversed_usd, ${disputedSql} AS disputed`

export const PaymentReversal = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("refund", "dispute"),
  status: Schema.String,
  amount_usd: Schema.NullOr(Usd).annotations({
    description: "The amount in USD, or null while only `foreign_amount` is known."
  }),
  foreign_amount: TextOrNull.annotations({ description: "The amount in another currency, such as `1500 JPY`." }),
  taken_usd: Usd.annotations({ description: "The part that was taken from the balance." }),
  created_at: UnixSeconds
}).annotations({ identifier: "PaymentReversal" })
export type PaymentReversal = typeof PaymentReversal.Type

export const PaymentEvent = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  created_at: UnixSeconds,
  received_at: UnixSeconds
}).annotations({ identifier: "PaymentEvent" })

/** How the credits of a receipt were added. */
const PaymentMethod = Schema.Literal("stripe", "entered").annotations({
  description:
    "`stripe`: paid on a payment page of Stripe. `entered`: credited by the operator, with or without a payment."
})

/** Credits that were paid, or that an operator entered. */
export const Receipt = Schema.Struct({
  number: Schema.String.annotations({ description: "The receipt's unique number. It never changes." }),
  ...documentFields,
  org: OrgId,
  org_name: Schema.String,
  payment: TextOrNull.annotations({ description: "The payment's id, or null for credits without a payment." }),
  paid_at: UnixSeconds.annotations({
    jsonSchema: { type: "integer", description: "When the credits were paid. For `entered`, when they were credited." }
  }),
  amount_usd: Usd,
  method: PaymentMethod,
  reference: TextOrNull.annotations({ description: "The reference of the ledger entry." }),
  reversed_usd: Payment.fields.reversed_usd,
  disputed: Payment.fields.disputed,
  reversals: Schema.Array(PaymentReversal)
}).annotations({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

export const PublicPayment = Schema.Struct({
  ...Payment.fields,
  receipt: Schema.NullOr(Receipt).annotations({ description: "Null unless the payment was credited." }),
  reversals: Schema.Array(PaymentReversal),
  events: Schema.Array(PaymentEvent)
}).annotations({ identifier: "ShownPayment" })
export type PublicPayment = typeof PublicPayment.Type

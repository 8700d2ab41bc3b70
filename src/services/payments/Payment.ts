import { Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

export const Payment = Schema.Struct({
  id: Schema.String,
  created_at: UnixSeconds,
  org: Schema.NullOr(OrgId).annotations({ description: "Null where money came that nobody asked for here." }),
  org_name: TextOrNull,
  status: Schema.Literal("open", "paid", "failed", "expired", "refused").annotations({
    description: "Refused: money came and was not credited, for the reason in `problem`."
  }),
  amount_usd: Schema.NullOr(Usd).annotations({
    description: "What was asked for; of a refused payment what was paid, null in another currency."
  }),
  reversed_usd: Usd.annotations({ description: "What refunds and disputes have taken back." }),
  disputed: Schema.Boolean.annotations({ description: "Whether a dispute of it is open." }),
  paid_at: TimeOrNull,
  problem: TextOrNull,
  session: TextOrNull,
  payment_intent: TextOrNull,
  entry: TextOrNull.annotations({ description: "Its entry of the ledger." })
}).annotations({ identifier: "Payment" })
export type Payment = typeof Payment.Type

/**
 * After a payment was begun: until when its page may be asked for, until when it may be kept, and until when one is
 * waited for. Asking ends in half a minute; a statement that keeps a page may begin in time and take up to 15 seconds.
 */
export const secondsToAskForPage = 60
export const secondsToKeepPage = secondsToAskForPage + 45
export const secondsToAwaitPage = secondsToKeepPage + 15

/** Of a table or an alias `payment`. */
export const paymentColumns = `payment.id, payment.created_at, payment.org_id AS org, payment.status,
  (SELECT name FROM organizations WHERE organizations.id = payment.org_id) AS org_name,
  payment.amount AS amount_usd, payment.paid_at, payment.problem, payment.session, payment.payment_intent,
  payment.entry_id AS entry,
  (SELECT coalesce(sum(taken), 0)::bigint FROM payment_reversals WHERE payment_id = payment.id) AS reversed_usd,
  EXISTS (
    SELECT FROM payment_reversals WHERE payment_id = payment.id AND kind = 'dispute' AND is_open
  ) AS disputed`

export const PaymentReversal = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("refund", "dispute"),
  status: Schema.String,
  amount_usd: Schema.NullOr(Usd).annotations({
    description: "Its amount in USD; null while only `foreign_amount` is known."
  }),
  foreign_amount: TextOrNull.annotations({ description: "Its amount in another currency, such as `1500 JPY`." }),
  taken_usd: Usd.annotations({ description: "What of that was taken from the balance." }),
  created_at: UnixSeconds
}).annotations({ identifier: "PaymentReversal" })
export type PaymentReversal = typeof PaymentReversal.Type

export const PaymentEvent = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  created_at: UnixSeconds,
  received_at: UnixSeconds
}).annotations({ identifier: "PaymentEvent" })

export const ShownPayment = Schema.Struct({
  ...Payment.fields,
  reversals: Schema.Array(PaymentReversal),
  events: Schema.Array(PaymentEvent)
}).annotations({ identifier: "ShownPayment" })
export type ShownPayment = typeof ShownPayment.Type

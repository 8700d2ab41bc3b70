import * as Kinds from "./SettingKinds.ts"
import { optional, variable } from "./Variable.ts"

/** Without the two secrets there are no payments. */
export const paymentVariables = {
  stripeSecretKey: optional(
    "STRIPE_SECRET_KEY",
    Kinds.stripeKey,
    "key of a Stripe account by which customers pay; unset: no payments"
  ),
  stripeWebhookSecret: optional(
    "STRIPE_WEBHOOK_SECRET",
    Kinds.stripeWebhookSecret,
    "what Stripe signs its events to /stripe/webhook with"
  ),
  stripeApiBase: variable("STRIPE_API_BASE", Kinds.baseUrl, "where Stripe's API is", "https://api.stripe.com"),
  topupMinUsd: variable("TOPUP_MIN_USD", Kinds.cents, "least that a customer may pay at once, in USD", 500, "5"),
  topupMaxUsd: variable("TOPUP_MAX_USD", Kinds.cents, "most that a customer may pay at once, in USD", 500_000, "5000"),
  disputePolicy: variable(
    "DISPUTE_POLICY",
    Kinds.oneOf("suspend", "ignore"),
    "what an open dispute does to its organization: suspend refuses its requests, ignore does not",
    "suspend"
  )
}

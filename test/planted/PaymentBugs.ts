import type { Bug } from "./Bug.ts"

const orders = "test/services/payments/EventOrders.long.test.ts"
const pages = "test/services/payments/Payments.test.ts"
const payments = "src/services/payments/Payments.ts"
const reconciliation = "src/services/payments/PaymentReconciliation.ts"
const reconciled = "test/services/payments/PaymentReconciliation.test.ts"
const webhook = "test/http/stripe/Webhook.test.ts"

export const paymentBugs: ReadonlyArray<Bug> = [
  {
    name: "a session that was never paid is credited",
    file: reconciliation,
    find: "if (!isPaid || paymentIntent === undefined) {",
    replace: "if (paymentIntent === undefined) {",
    caughtBy: [reconciled]
  },
  {
    name: "an empty webhook secret signs everything",
    file: "src/services/payments/Signature.ts",
    find: 'if (secret === "" || parsed === undefined) return false',
    replace: 'if (secret === "") return true\n  if (parsed === undefined) return false',
    caughtBy: ["test/services/payments/Signature.test.ts"]
  },
  {
    name: "what was asked for first is written over what was told since",
    file: reconciliation,
    find: "if (now.version !== known.version) return yield* new Outdated()",
    replace: "",
    caughtBy: [reconciled]
  },
  {
    name: "a payment is credited as often as it is told of",
    file: reconciliation,
    find: "ref: refOf(paymentIntent),",
    replace: "ref: refOf(`${paymentIntent} ${ids.uuid()}`),",
    caughtBy: [reconciled, orders]
  },
  {
    name: "an event counts as seen before it was applied",
    file: "src/services/payments/PaymentIntake.ts",
    find: "return yield* reconcile(place, event)",
    replace: "yield* note(event)\n          return yield* reconcile(place)",
    caughtBy: [webhook]
  },
  {
    name: "a page that is tried again has another key",
    file: "src/stripe/Client.ts",
    find: '"idempotency-key": post.idempotencyKey',
    replace: '"idempotency-key": `${post.idempotencyKey} ${performance.now()}`',
    caughtBy: [webhook]
  },
  {
    name: "a refund that failed is entered under another reference each time",
    file: "src/services/payments/ReversalSql.ts",
    find: "taken = taken + ${amount}::bigint, entries",
    replace: "entries",
    caughtBy: [reconciled, orders]
  },
  {
    name: "a dispute takes what a refund has taken already",
    file: "src/domain/Payment.ts",
    find: "const share = amount < left ? amount : NanoUsd(left)",
    replace: "const share = amount",
    caughtBy: [orders, "test/domain/Payment.test.ts"]
  },
  {
    name: "cents are read as dollars",
    file: "src/domain/Payment.ts",
    find: "const nanoPerCent = 10_000_000n",
    replace: "const nanoPerCent = 1_000_000_000n",
    caughtBy: ["test/domain/Payment.test.ts", webhook]
  },
  {
    name: "an event of test mode moves money of live mode",
    file: "src/services/payments/PaymentIntake.ts",
    find: "if (event.right.livemode === isLive) return event.right",
    replace: "return event.right",
    caughtBy: [webhook]
  },
  {
    name: "a page is handed out after another payment may have been begun",
    file: payments,
    find: "AND ${youngerThan(secondsToKeepPage)}\n          RETURNING id",
    replace: "RETURNING id",
    caughtBy: [pages]
  },
  {
    name: "pages that can come no more keep an organization from beginning payments",
    file: payments,
    find: "OR ${youngerThan(secondsToAwaitPage)}",
    replace: "OR true",
    caughtBy: [pages]
  },
  {
    name: "another payment is asked for while a gateway can still keep the page of this one",
    file: payments,
    find: "age >= secondsToAwaitPage",
    replace: "age >= secondsToAskForPage",
    caughtBy: [pages]
  },
  {
    name: "a page is made for an organization that was deleted",
    file: payments,
    find: "if (isDeleted) return",
    replace: "if (false) return",
    caughtBy: [pages]
  },
  {
    name: "an organization that was deleted is sent to pay",
    file: payments,
    find: "if (open.isDeleted)",
    replace: "if (false)",
    caughtBy: [pages]
  },
  {
    name: "who meets a page at another account is told to begin another payment",
    file: payments,
    find: ": sessionOfPayment(provider, id, now.session)",
    replace: ": new PaymentOver({ id })",
    caughtBy: [pages]
  },
  {
    name: "a bank's debit that failed can never be paid again",
    file: payments,
    find: "!page.isExpired && !page.hasFailed",
    replace: "!page.isExpired",
    caughtBy: [pages]
  },
  {
    name: "a restricted key of Stripe finds no session at all",
    file: "src/stripe/Client.ts",
    find: "status === 403 && expand !== undefined",
    replace: "status === 404 && expand !== undefined",
    caughtBy: ["test/stripe/Client.test.ts"]
  }
]

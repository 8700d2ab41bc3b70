import { Command, Options } from "@effect/cli"
import { Clock, Effect, Layer } from "effect"
import { moment, momentForms, toPast } from "../domain/Moment.ts"
import { usdInputs } from "../domain/Money.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { pluralize } from "../domain/Wording.ts"
import * as Gateway from "../Gateway.ts"
import { administration } from "../services/admin/AdminServices.ts"
import * as Operations from "../services/admin/PaymentOperations.ts"
import { Payment } from "../services/payments/PaymentRecord.ts"
import { PaymentSync } from "../services/payments/PaymentSync.ts"
import { Payments } from "../services/payments/Payments.ts"
import { database, settings, upToDate } from "./CliServices.ts"
import { change, command, findOrganizationId, make } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

// The most important columns come first, because a narrow terminal hides columns from the right.
const columns = ["created_at", "org_name", "status", "amount_usd", "reversed_usd", "problem", "id", "payment_intent"]

const statuses = Payment.fields.status.literals

const list = command(
  "list",
  "List payments, newest first.",
  {
    org: Inputs.orgFilter,
    status: Inputs.optional(Inputs.oneOf("status", statuses), `status: ${statuses.join(", ")}; default: all`),
    ...Inputs.period,
    limit: Inputs.limit(10_000, "maximum number of payments")
  },
  Effect.fnUntraced(function* ({ limit, org, since, status, until }) {
    const { page } = yield* Payments
    const range = yield* Inputs.readPeriod({ since, until })
    const found = yield* page(OrganizationScope.all, { org: yield* findOrganizationId(org), status, ...range, limit })
    return Output.list(found, { columns, none: "There are no payments." })
  })
)

const show = command(
  "show",
  "Show a payment with its reversals and Stripe events.",
  { id: Inputs.word("ID", "a payment's id, pay_…") },
  Effect.fnUntraced(function* ({ id }) {
    const { find } = yield* Payments
    const { events, reversals, ...payment } = yield* find(OrganizationScope.all, id)
    const { text } = Output.record(payment)
    const reversalTable = Output.list(reversals, {
      columns: ["created_at", "id", "kind", "status", "amount_usd", "taken_usd", "foreign_amount"],
      none: "There are no reversals."
    })
    const eventTable = Output.list(events, { columns: ["created_at", "id", "type"], none: "There are no events." })
    return {
      document: { ...payment, reversals, events },
      text: [text, reversalTable.text, eventTable.text].join("\n\n")
    }
  })
)

const reverse = change(
  "reverse",
  `${Operations.reverse.summary}.`,
  {
    id: Inputs.word("ID", "a payment's id, pay_…"),
    reversal: Inputs.word("REVERSAL", "the id of the refund or dispute, re_… or du_…"),
    amount: Inputs.argument("USD", usdInputs.nonNegative.accepts, usdInputs.nonNegative.read)
  },
  (input) => Operations.reverse.run(input)
)

const since = Inputs.option("since", momentForms, moment).pipe(
  Options.withDescription(`start time: ${momentForms}; default: 7d`),
  Options.withDefault({ distance: 7 * 86_400_000 })
)

const provider = Layer.unwrapEffect(Effect.map(settings, Gateway.payments))

const sync = Command.provide(
  make(
    "sync",
    "Fetch sessions, refunds and disputes from Stripe, and record those that no webhook event reported.",
    { since },
    Effect.fnUntraced(function* (input) {
      const { run } = yield* PaymentSync
      const found = yield* run(new Date(toPast(input.since, yield* Clock.currentTimeMillis)))
      const { failed, reconciled, reversals, sessions, unreadable } = found
      const text = `Stripe has ${pluralize(sessions, "session")} and ${pluralize(reversals, "refund or dispute", "refunds and disputes")}. ${pluralize(reconciled, "payment was", "payments were")} fetched again.`
      const failures = [
        ...(failed === 0 ? [] : [`${pluralize(failed, "payment")} could not be fetched or recorded.`]),
        ...(unreadable === 0 ? [] : [`${pluralize(unreadable, "object")} from Stripe could not be read.`])
      ]
      const failure = failures.length === 0 ? undefined : failures.join(" ")
      return { document: { ...found }, text, failure }
    })
  ),
  administration.pipe(
    Layer.provide(provider),
    Layer.provideMerge(Layer.effectDiscard(upToDate)),
    Layer.provideMerge(database)
  )
)

export const payments = Inputs.group("payments", "Manage Stripe payments.").pipe(
  Command.withSubcommands([list, show, reverse, sync])
)

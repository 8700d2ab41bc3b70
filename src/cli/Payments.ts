import { Command, Options } from "@effect/cli"
import { Clock, Effect, Layer } from "effect"
import { moment, momentForms, toPast } from "../domain/Moment.ts"
import { usdInputs } from "../domain/Money.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { pluralize } from "../domain/Plural.ts"
import * as Gateway from "../Gateway.ts"
import { administration } from "../services/admin/Administration.ts"
import * as Operations from "../services/admin/PaymentOperations.ts"
import { Payment } from "../services/payments/Payment.ts"
import { PaymentSync } from "../services/payments/PaymentSync.ts"
import { Payments } from "../services/payments/Payments.ts"
import { change, command, filterOf, make } from "./Commands.ts"
import { database, settings, upToDate } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

// Where the terminal is narrow, columns go from the right.
const columns = ["created_at", "id", "status", "amount_usd", "reversed_usd", "org_name", "problem", "payment_intent"]

const statuses = Payment.fields.status.literals

const list = command(
  "list",
  "List payments, newest first.",
  {
    org: Inputs.orgFilter,
    status: Inputs.optional(Inputs.oneOf("status", statuses), `where they stand: ${statuses.join(", ")}; default: all`),
    ...Inputs.period,
    limit: Inputs.limit(10_000, "how many payments")
  },
  Effect.fnUntraced(function* ({ limit, org, since, status, until }) {
    const { page } = yield* Payments
    const range = yield* Inputs.readPeriod({ since, until })
    const found = yield* page(OrganizationScope.all, { org: yield* filterOf(org), status, ...range, limit })
    return Output.list(found, { columns, none: "There are no payments." })
  })
)

const show = command(
  "show",
  "Show a payment, what was taken back of it, and the events that told of it.",
  { id: Inputs.word("ID", "a payment's id, pay_…") },
  Effect.fnUntraced(function* ({ id }) {
    const { find } = yield* Payments
    const { events, reversals, ...payment } = yield* find(OrganizationScope.all, id)
    const { text } = Output.record(payment)
    const taken = Output.list(reversals, {
      columns: ["created_at", "id", "kind", "status", "amount_usd", "taken_usd", "foreign_amount"],
      none: "Nothing was taken back."
    })
    const told = Output.list(events, { columns: ["created_at", "id", "type"], none: "No event told of it." })
    return { document: { ...payment, reversals, events }, text: [text, taken.text, told.text].join("\n\n") }
  })
)

const reverse = change(
  "reverse",
  `${Operations.reverse.summary}.`,
  {
    id: Inputs.word("ID", "a payment's id, pay_…"),
    reversal: Inputs.word("REVERSAL", "the refund's or the dispute's id, re_… or du_…"),
    amount: Inputs.argument("USD", usdInputs.nonNegative.accepts, usdInputs.nonNegative.read)
  },
  (given) => Operations.reverse.run(given)
)

const since = Inputs.option("since", momentForms, moment).pipe(
  Options.withDescription(`from when: ${momentForms}; default: 7d`),
  Options.withDefault({ distance: 7 * 86_400_000 })
)

const provider = Layer.unwrapEffect(Effect.map(settings, Gateway.payments))

const sync = Command.provide(
  make(
    "sync",
    "Ask Stripe for its sessions, refunds and disputes, and enter what no event told.",
    { since },
    Effect.fnUntraced(function* (given) {
      const { run } = yield* PaymentSync
      const found = yield* run(new Date(toPast(given.since, yield* Clock.currentTimeMillis)))
      const { failed, reconciled, reversals, sessions, unreadable } = found
      const text = `Stripe has ${pluralize(sessions, "session")} and ${pluralize(reversals, "refund or dispute", "refunds and disputes")}; ${pluralize(reconciled, "payment was", "payments were")} fetched again.`
      const failures = [
        ...(failed === 0 ? [] : [`${pluralize(failed, "payment")} could not be fetched or entered.`]),
        ...(unreadable === 0 ? [] : [`${pluralize(unreadable, "object")} of Stripe could not be read.`])
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

export const payments = Inputs.group("payments", "What customers paid by Stripe.").pipe(
  Command.withSubcommands([list, show, reverse, sync])
)

import { Command, Options, Prompt } from "@effect/cli"
import { Effect, Struct } from "effect"
import { maxNoteLength, maxRefLength } from "../domain/Constraints.ts"
import { toUsdText, usdInputs } from "../domain/Money.ts"
import { CommandFailed, UsageError } from "../ExitCode.ts"
import * as Changes from "../services/admin/CreditChanges.ts"
import * as Operations from "../services/admin/OrganizationOperations.ts"
import { type OrganizationSettings, Organizations, settings } from "../services/admin/Organizations.ts"
import { readSaleStatesNow } from "./CliServices.ts"
import { change, command, findAnyOrganization, findOrganization, operate } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { requestArgument } from "./RequestCommands.ts"

const nameArgument = Inputs.word("NAME", "a unique name")

/** Checks a new discount against this machine's catalog. If that is unreadable, the command still succeeds. */
const discountWarningsOf = (changes: OrganizationSettings) =>
  changes.discount_percent === undefined
    ? Effect.succeed([])
    : Effect.match(readSaleStatesNow, {
        onFailure: () => ["The catalog could not be read, so the discount was not compared with the costs."],
        onSuccess: (saleStates) => Operations.discountWarningsOf(changes, saleStates)
      })

const create = command(
  "create",
  `${Operations.create.summary}.`,
  {
    name: nameArgument,
    credits: Inputs.optional(
      Inputs.option("credits", usdInputs.nonNegative.accepts, usdInputs.nonNegative.read),
      "opening balance in USD; default: 0"
    ),
    prices: Inputs.inputOptions(Struct.pick(settings, "discount_percent"), "default")
  },
  Effect.fnUntraced(function* ({ credits, name, prices }) {
    const { record } = yield* Operations.create.run({ name, credits, ...prices })
    return { ...Output.record(record), warnings: yield* discountWarningsOf(prices) }
  })
)

const balanceColumns = ["name", "id", "suspended", "balance_usd", "held_usd", "available_usd"]
const priceColumns = ["discount_percent", "cap_usd", "cap_period", "cap_spent_usd"]

const list = command(
  "list",
  "List organizations.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Organizations
    return Output.list(yield* list, {
      columns: [...balanceColumns, ...priceColumns, "created_at"],
      none: "There are no organizations."
    })
  })
)

const show = command(
  "show",
  "Show an organization's balance, held amount and available amount.",
  { org: Inputs.orgArgument },
  Effect.fnUntraced(function* ({ org }) {
    return Output.record(yield* findAnyOrganization(org))
  })
)

const suspend = operate("suspend", Operations.suspend, Inputs.orgArgument)
const resume = operate("resume", Operations.resume, Inputs.orgArgument)

const changeOf = (org: string, changes: OrganizationSettings) =>
  Effect.catchTag(Operations.update.run(org, changes), "FieldRefused", Inputs.explainRefused)

const rename = change(
  "rename",
  "Rename an organization.",
  { org: Inputs.orgArgument, name: nameArgument },
  ({ name, org }) => changeOf(org, { name })
)

const notify = command(
  "notify",
  "Set the balance below which an organization's webhook endpoints get an event.",
  {
    org: Inputs.orgArgument,
    below: Inputs.inputOption("below", settings.notify_below_usd).pipe(
      Options.withDescription("send the event below this balance in USD, or none to disable it")
    )
  },
  Effect.fnUntraced(function* ({ below, org }) {
    const changes = { notify_below_usd: below }
    const { record } = yield* changeOf(org, changes)
    return { ...Output.record(record), warnings: Operations.warningsOf(changes, record) }
  })
)

const update = command(
  "update",
  "Change an organization's spending cap and discount, and whether holds are reduced to fit the balance. Omitted options stay unchanged.",
  { org: Inputs.orgArgument, input: Inputs.inputOptions(Struct.omit(settings, "name", "notify_below_usd"), "current") },
  Effect.fnUntraced(function* ({ input, org }) {
    yield* Inputs.requireChange(input)
    const { record } = yield* changeOf(org, input)
    return { ...Output.record(record), warnings: yield* discountWarningsOf(input) }
  })
)

const confirm = Effect.fnUntraced(function* (name: string) {
  if (!process.stdin.isTTY) return yield* new UsageError({ message: `To delete ${name} permanently, add --yes.` })
  const typed = yield* Prompt.text({ message: `To delete ${name} permanently, type its name` })
  if (typed !== name) return yield* new CommandFailed({ message: "The name does not match. Nothing was deleted." })
})

const remove = change(
  "delete",
  `${Operations.remove.summary}.`,
  {
    org: Inputs.orgArgument,
    yes: Inputs.flag("yes", "skip the confirmation; required without a terminal")
  },
  Effect.fnUntraced(function* ({ org, yes }) {
    const { id, name } = yield* findOrganization(org)
    if (!yes) yield* confirm(name)
    return yield* Operations.remove.run(id)
  })
)

export const orgs = Inputs.group("orgs", "Manage organizations.").pipe(
  Command.withSubcommands([create, list, rename, update, remove, notify, show, suspend, resume])
)

const nonBlankOption = (name: string, maxLength: number) =>
  Inputs.option(name, `a text that is not blank, of at most ${maxLength} characters`, Inputs.nonBlank(maxLength))
const note = nonBlankOption("note", maxNoteLength)

const add = command(
  "add",
  "Add credits to an organization's balance.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", usdInputs.positive.accepts, usdInputs.positive.read),
    ref: Inputs.optional(
      nonBlankOption("ref", maxRefLength),
      "reference, such as that of a payment; each reference is credited only once"
    ),
    note: Inputs.optional(note, "reason, recorded in the ledger")
  },
  Effect.fnUntraced(function* (payment) {
    const { record } = yield* Changes.topUp(payment)
    return Output.record(record, record.replayed ? "This top-up already exists. Nothing was added." : "")
  })
)

const adjust = change(
  "adjust",
  "Increase or decrease a balance.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", usdInputs.nonZero.accepts, usdInputs.nonZero.read),
    note: note.pipe(Options.withDescription("reason, recorded in the ledger")),
    force: Inputs.flag("force", "allow a negative available balance")
  },
  (correction) =>
    Effect.catchTag(Changes.adjust(correction), "WouldOverdraw", ({ available }) => {
      const message = `Only ${toUsdText(available)} USD are available. Add --force to go below zero.`
      return new CommandFailed({ message })
    })
)

const refund = change(
  "refund",
  "Refund a request's charge to the balance, and subtract it from its key's spend.",
  {
    id: requestArgument,
    amount: Inputs.optional(
      Inputs.option("amount", usdInputs.positive.accepts, usdInputs.positive.read),
      "amount in USD; default: the charge that is not refunded yet"
    ),
    note: note.pipe(Options.withDescription("reason, recorded in the ledger"))
  },
  ({ amount, id, note }) => Changes.refund({ request: id, amount, note })
)

export const credits = Inputs.group("credits", "Add, adjust and refund credits.").pipe(
  Command.withSubcommands([add, adjust, refund])
)

import { Command, Options, Prompt } from "@effect/cli"
import { Effect, Struct } from "effect"
import { usdInputs } from "../domain/Money.ts"
import { type OrganizationSettings, settings } from "../services/admin/Organization.ts"
import * as Operations from "../services/admin/OrganizationOperations.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change, command, findAnyOrganization, findOrganization, operate } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const nameArgument = Inputs.word("NAME", "a name that no other organization has")

const create = change(
  "create",
  `${Operations.create.summary}.`,
  {
    name: nameArgument,
    credits: Inputs.optional(
      Inputs.option("credits", usdInputs.nonNegative.accepts, usdInputs.nonNegative.read),
      "USD to begin with; default: 0"
    )
  },
  (given) => Operations.create.run(given)
)

const held = ["id", "name", "suspended", "balance_usd", "held_usd", "available_usd"]
const capped = ["cap_usd", "cap_period", "cap_spent_usd"]

const list = command(
  "list",
  "List the organizations.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Organizations
    return Output.list(yield* list, {
      columns: [...held, ...capped, "created_at"],
      none: "There are no organizations."
    })
  })
)

const show = command(
  "show",
  "Show an organization's balance, what is held of it, and what is available.",
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
  "Give an organization another name.",
  { org: Inputs.orgArgument, name: nameArgument },
  ({ name, org }) => changeOf(org, { name })
)

const notify = command(
  "notify",
  "Set the balance below which an organization's webhook endpoints get an event.",
  {
    org: Inputs.orgArgument,
    below: Inputs.inputOption("below", settings.notify_below_usd).pipe(
      Options.withDescription("the balance in USD, or none for no events")
    )
  },
  Effect.fnUntraced(function* ({ below, org }) {
    const changes = { notify_below_usd: below }
    const { record } = yield* changeOf(org, changes)
    return { ...Output.record(record), warnings: Operations.warningsOf(changes, record) }
  })
)

const update = change(
  "update",
  "Change what an organization may spend, and how its requests are held; what is left out stays.",
  { org: Inputs.orgArgument, given: Inputs.inputOptions(Struct.omit(settings, "name", "notify_below_usd"), "kept") },
  Effect.fnUntraced(function* ({ given, org }) {
    yield* Inputs.requireChange(given)
    return yield* changeOf(org, given)
  })
)

const confirm = Effect.fnUntraced(function* (name: string) {
  if (!process.stdin.isTTY) return yield* new CommandFailed({ message: `To delete ${name} for good, add --yes.` })
  const typed = yield* Prompt.text({ message: `To delete ${name} for good, type its name` })
  if (typed !== name) return yield* new CommandFailed({ message: "That is not its name: nothing was deleted." })
})

const remove = change(
  "delete",
  `${Operations.remove.summary}.`,
  {
    org: Inputs.orgArgument,
    yes: Inputs.flag("yes", "do not ask for the name; needed where no terminal is")
  },
  Effect.fnUntraced(function* ({ org, yes }) {
    const { id, name } = yield* findOrganization(org)
    if (!yes) yield* confirm(name)
    return yield* Operations.remove.run(id)
  })
)

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([create, list, rename, update, remove, notify, show, suspend, resume])
)

import { Command, Options, Prompt } from "@effect/cli"
import { Effect } from "effect"
import { Organizations } from "../services/access/Organizations.ts"
import * as Changes from "../services/admin/OrganizationChanges.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change, command, findAnyOrganization, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const nameArgument = Inputs.word("NAME", "a name that no other organization has")

const create = change(
  "create",
  "Make an organization.",
  {
    name: nameArgument,
    credits: Inputs.optional(
      Inputs.option("credits", Inputs.usd.nonNegative, Inputs.nonNegativeUsd),
      "USD to begin with; default: 0"
    )
  },
  (given) => Changes.createOrganization(given)
)

const list = command(
  "list",
  "List the organizations.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Organizations
    return Output.list((yield* list).map(Changes.organizationRecord), {
      columns: ["id", "name", "suspended", "balance_usd", "held_usd", "available_usd", "created_at"],
      none: "There are no organizations."
    })
  })
)

const show = command(
  "show",
  "Show an organization's balance, what is held of it, and what is available.",
  { org: Inputs.orgArgument },
  Effect.fnUntraced(function* ({ org }) {
    return Output.record(Changes.organizationRecord(yield* findAnyOrganization(org)))
  })
)

const suspend = change(
  "suspend",
  "Refuse all keys of an organization until it is resumed.",
  { org: Inputs.orgArgument },
  ({ org }) => Changes.suspendOrganization(org)
)

const resume = change("resume", "Let a suspended organization in again.", { org: Inputs.orgArgument }, ({ org }) =>
  Changes.resumeOrganization(org)
)

const rename = change(
  "rename",
  "Give an organization another name.",
  { org: Inputs.orgArgument, name: nameArgument },
  ({ name, org }) => Changes.updateOrganization(org, { name })
)

const notify = change(
  "notify",
  "Set the balance below which an organization's webhook endpoints get an event.",
  {
    org: Inputs.orgArgument,
    below: Inputs.option("below", `${Inputs.usd.positive}, or none`, Inputs.or("none", Inputs.positiveUsd)).pipe(
      Options.withDescription("the balance in USD, or none for no events")
    )
  },
  ({ below, org }) => Changes.updateOrganization(org, { notifyBelow: below })
)

const update = change(
  "update",
  "Change how an organization's requests are held.",
  {
    org: Inputs.orgArgument,
    fitHolds: Inputs.oneOf("fit-holds", ["on", "off"]).pipe(
      Options.withDescription("whether chats run with a lower cap where the balance does not cover theirs")
    )
  },
  ({ fitHolds, org }) => Changes.updateOrganization(org, { fitHolds: fitHolds === "on" })
)

const confirm = Effect.fnUntraced(function* (name: string) {
  if (!process.stdin.isTTY) return yield* new CommandFailed({ message: `To delete ${name} for good, add --yes.` })
  const typed = yield* Prompt.text({ message: `To delete ${name} for good, type its name` })
  if (typed !== name) return yield* new CommandFailed({ message: "That is not its name: nothing was deleted." })
})

const remove = change(
  "delete",
  "Delete an organization without balance and holds: revoke its keys, free its name. Its ledger stays.",
  {
    org: Inputs.orgArgument,
    yes: Inputs.flag("yes", "do not ask for the name; needed where no terminal is")
  },
  Effect.fnUntraced(function* ({ org, yes }) {
    const { id, name } = yield* findOrganization(org)
    if (!yes) yield* confirm(name)
    return yield* Changes.deleteOrganization(id)
  })
)

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([create, list, rename, update, remove, notify, show, suspend, resume])
)

import { Args, Command, Options, Prompt } from "@effect/cli"
import { Effect } from "effect"
import { Organizations } from "../services/access/Organizations.ts"
import * as Changes from "../services/admin/OrganizationChanges.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, findAnyOrganization, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const nameArgument = Args.text({ name: "NAME" }).pipe(Args.withDescription("a name that no other organization has"))

const create = command(
  "create",
  "Make an organization.",
  {
    name: nameArgument,
    credits: Inputs.optional(
      Inputs.option("credits", Inputs.usd.nonNegative, Inputs.nonNegativeUsd),
      "USD to begin with; default: 0"
    )
  },
  Effect.fnUntraced(function* (given) {
    return Output.record((yield* Changes.createOrganization(given)).record)
  })
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

const suspend = command(
  "suspend",
  "Refuse all keys of an organization until it is resumed.",
  { org: Inputs.orgArgument },
  ({ org }) => Effect.map(Changes.suspendOrganization(org), ({ record }) => Output.record(record))
)

const resume = command("resume", "Let a suspended organization in again.", { org: Inputs.orgArgument }, ({ org }) =>
  Effect.map(Changes.resumeOrganization(org), ({ record }) => Output.record(record))
)

const rename = command(
  "rename",
  "Give an organization another name.",
  { org: Inputs.orgArgument, name: nameArgument },
  Effect.fnUntraced(function* ({ name, org }) {
    return Output.record((yield* Changes.updateOrganization(org, { name })).record)
  })
)

const notify = command(
  "notify",
  "Set the balance below which an organization's webhook endpoints are told.",
  {
    org: Inputs.orgArgument,
    below: Inputs.option("below", `${Inputs.usd.positive}, or none`, Inputs.or("none", Inputs.positiveUsd)).pipe(
      Options.withDescription("the balance in USD, or none for no events")
    )
  },
  Effect.fnUntraced(function* ({ below, org }) {
    return Output.record((yield* Changes.updateOrganization(org, { notifyBelow: below })).record)
  })
)

const onOrOff = ["on", "off"] as const

const update = command(
  "update",
  "Change how an organization's requests are held.",
  {
    org: Inputs.orgArgument,
    fitHolds: Inputs.oneOf("fit-holds", onOrOff).pipe(
      Options.withDescription("whether chats run with a lower cap where the balance does not cover theirs")
    )
  },
  Effect.fnUntraced(function* (given) {
    return Output.record((yield* Changes.updateOrganization(given.org, { fitHolds: given.fitHolds === "on" })).record)
  })
)

const confirm = Effect.fnUntraced(function* (name: string) {
  if (!process.stdin.isTTY) return yield* new CommandFailed({ message: `To delete ${name} for good, add --yes.` })
  const typed = yield* Prompt.text({ message: `To delete ${name} for good, type its name` })
  if (typed !== name) return yield* new CommandFailed({ message: "That is not its name: nothing was deleted." })
})

const remove = command(
  "delete",
  "Delete an organization without balance and holds: revoke its keys, free its name. Its ledger stays.",
  {
    org: Inputs.orgArgument,
    yes: Options.boolean("yes").pipe(Options.withDescription("do not ask for the name; needed where no terminal is"))
  },
  Effect.fnUntraced(function* ({ org, yes }) {
    const { id, name } = yield* findOrganization(org)
    if (!yes) yield* confirm(name)
    return Output.record((yield* Changes.deleteOrganization(id)).record)
  })
)

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([create, list, rename, update, remove, notify, show, suspend, resume])
)

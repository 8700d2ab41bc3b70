import { Args, Command, Options, Prompt } from "@effect/cli"
import { Effect } from "effect"
import { available } from "../domain/Organization.ts"
import { type Organization, Organizations } from "../services/access/Organizations.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const recordOf = (organization: Organization) => ({
  id: organization.id,
  name: organization.name,
  created_at: organization.createdAt,
  suspended: organization.suspendedAt !== null,
  ...(organization.deletedAt !== null && { deleted_at: organization.deletedAt }),
  balance_usd: organization.balance,
  held_usd: organization.held,
  available_usd: available(organization),
  fit_holds: organization.fitHolds,
  ...(organization.notifyBelow !== null && { notify_below_usd: organization.notifyBelow })
})

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
    const { create } = yield* Organizations
    return Output.record(recordOf(yield* create(given)))
  })
)

const list = command(
  "list",
  "List the organizations.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Organizations
    return Output.list((yield* list).map(recordOf), {
      columns: ["id", "name", "suspended", "balance_usd", "held_usd", "available_usd", "created_at"],
      none: "There are no organizations."
    })
  })
)

const one = (name: "show" | "suspend" | "resume", description: string) =>
  command(
    name,
    description,
    { org: Inputs.orgArgument },
    Effect.fnUntraced(function* ({ org }) {
      const organizations = yield* Organizations
      return Output.record(recordOf(yield* organizations[name === "show" ? "findAny" : name](org)))
    })
  )

const rename = command(
  "rename",
  "Give an organization another name.",
  { org: Inputs.orgArgument, name: nameArgument },
  Effect.fnUntraced(function* ({ name, org }) {
    const { rename } = yield* Organizations
    return Output.record(recordOf(yield* rename(org, name)))
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
    const { notifyBelow } = yield* Organizations
    return Output.record(recordOf(yield* notifyBelow(org, below)))
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
    const { fitHolds } = yield* Organizations
    return Output.record(recordOf(yield* fitHolds(given.org, given.fitHolds === "on")))
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
    const organizations = yield* Organizations
    const { id, name } = yield* organizations.find(org)
    if (!yes) yield* confirm(name)
    return Output.record(recordOf(yield* organizations.delete(id)))
  })
)

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([
    create,
    list,
    rename,
    update,
    remove,
    notify,
    one("show", "Show an organization's balance, what is held of it, and what is available."),
    one("suspend", "Refuse all keys of an organization until it is resumed."),
    one("resume", "Let a suspended organization in again.")
  ])
)

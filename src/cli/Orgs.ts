import { Args, Command } from "@effect/cli"
import { Effect } from "effect"
import { available } from "../domain/Organization.ts"
import { type Organization, Organizations } from "../services/access/Organizations.ts"
import { command } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const recordOf = (organization: Organization) => ({
  id: organization.id,
  name: organization.name,
  created_at: organization.createdAt,
  suspended: organization.suspendedAt !== null,
  balance_usd: organization.balance,
  held_usd: organization.held,
  available_usd: available(organization)
})

const create = command(
  "create",
  "Make an organization.",
  {
    name: Args.text({ name: "NAME" }),
    credits: Inputs.optional(
      Inputs.option("credits", Inputs.usd.nonNegative, Inputs.nonNegativeUsd),
      "USD to begin with"
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
      return Output.record(recordOf(yield* organizations[name === "show" ? "find" : name](org)))
    })
  )

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([
    create,
    list,
    one("show", "Show an organization's balance, what is held of it, and what is available."),
    one("suspend", "Refuse all keys of an organization until it is resumed."),
    one("resume", "Let a suspended organization in again.")
  ])
)

import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { available } from "../domain/Organization.ts"
import { type Organization, Organizations } from "../services/access/Organizations.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { presentList, presentRecord } from "./Output.ts"

const record = (organization: Organization) => ({
  id: organization.id,
  name: organization.name,
  created_at: organization.createdAt,
  suspended: organization.suspendedAt !== null,
  balance_usd: organization.balance,
  held_usd: organization.held,
  available_usd: available(organization)
})

const create = Command.make(
  "create",
  {
    name: Args.text({ name: "NAME" }),
    credits: Inputs.option("credits", Inputs.usd.nonNegative, Inputs.nonNegativeUsd).pipe(
      Options.withDescription("USD to begin with"),
      Options.optional
    ),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ credits, json, name }) {
    const organizations = yield* Organizations
    const created = yield* organizations.create({ name, credits: Option.getOrUndefined(credits) })
    yield* presentRecord(json, record(created))
  })
).pipe(Command.withDescription("Make an organization."), Command.provide(operator))

const list = Command.make(
  "list",
  { json: Inputs.json },
  Effect.fnUntraced(function* ({ json }) {
    const rows = yield* Effect.flatMap(Organizations, (organizations) => organizations.list)
    yield* presentList(json, rows.map(record), {
      columns: ["id", "name", "suspended", "balance_usd", "held_usd", "available_usd", "created_at"],
      none: "There are no organizations."
    })
  })
).pipe(Command.withDescription("List the organizations."), Command.provide(operator))

const one = (name: "show" | "suspend" | "resume", description: string) =>
  Command.make(
    name,
    { org: Inputs.orgArgument, json: Inputs.json },
    Effect.fnUntraced(function* ({ json, org }) {
      const organizations = yield* Organizations
      const found = yield* organizations[name === "show" ? "find" : name](org)
      yield* presentRecord(json, record(found))
    })
  ).pipe(Command.withDescription(description), Command.provide(operator))

export const orgs = Inputs.group("orgs", "Organizations and what they have.").pipe(
  Command.withSubcommands([
    create,
    list,
    one("show", "Show an organization's balance, what is held of it, and what is available."),
    one("suspend", "Refuse all keys of an organization until it is resumed."),
    one("resume", "Let a suspended organization in again.")
  ])
)

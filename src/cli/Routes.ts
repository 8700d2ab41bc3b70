import { Command } from "@effect/cli"
import { Effect } from "effect"
import * as Operations from "../services/admin/RouteOperations.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { change } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"

const route = Inputs.word("ROUTE", "a route's id, as gateway providers shows it")

const inCatalog = Effect.map(Effect.flatMap(readCatalogOptions, Catalog.make), Operations.catalogRoutes)

const disable = change(
  "disable",
  `${Operations.disable.summary}.`,
  { route, note: Inputs.optional(Inputs.text("note"), "why, for gateway providers") },
  ({ note, route }) => Operations.disable.run(route, note, inCatalog)
)

const enable = change("enable", `${Operations.enable.summary}.`, { route }, ({ route }) =>
  Operations.enable.run(route, inCatalog)
)

const reset = change("reset", `${Operations.reset.summary}.`, { route }, ({ route }) =>
  Operations.reset.run(route, inCatalog)
)

export const routes = Inputs.group(
  "routes",
  "Single routes of the catalog, on every instance within two seconds."
).pipe(Command.withSubcommands([disable, enable, reset]))

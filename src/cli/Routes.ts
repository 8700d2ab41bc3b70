import { Command } from "@effect/cli"
import { Effect } from "effect"
import * as Changes from "../services/admin/RouteChanges.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { change } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"

const route = Inputs.word("ROUTE", "a route's id, as gateway providers shows it")

const inCatalog = Effect.map(Effect.flatMap(readCatalogOptions, Catalog.make), Changes.catalogRoutes)

const disable = change(
  "disable",
  "Send no new requests to a route, until it is enabled; what it is doing goes on.",
  { route, note: Inputs.optional(Inputs.text("note"), "why, for gateway providers") },
  ({ note, route }) => Changes.disableRoute(route, note, inCatalog)
)

const enable = change("enable", "Send requests to a disabled route again.", { route }, ({ route }) =>
  Changes.enableRoute(route, inCatalog)
)

const reset = change(
  "reset",
  "Close the circuit of a route on every instance, and forget its failures.",
  { route },
  ({ route }) => Changes.resetRoute(route, inCatalog)
)

export const routes = Inputs.group(
  "routes",
  "Single routes of the catalog, on every instance within two seconds."
).pipe(Command.withSubcommands([disable, enable, reset]))

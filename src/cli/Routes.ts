import { Args, Command } from "@effect/cli"
import { Effect } from "effect"
import * as Changes from "../services/admin/RouteChanges.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { command } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const route = Args.text({ name: "ROUTE" }).pipe(Args.withDescription("a route's id, as gateway providers shows it"))

const inCatalog = Effect.map(Effect.flatMap(readCatalogOptions, Catalog.make), Changes.catalogRoutes)

const disable = command(
  "disable",
  "Send no new requests to a route, until it is enabled; what it is doing goes on.",
  { route, note: Inputs.optional(Inputs.text("note"), "why, for gateway providers") },
  Effect.fnUntraced(function* ({ note, route }) {
    return Output.record((yield* Changes.disableRoute(route, note, inCatalog)).record)
  })
)

const enable = command(
  "enable",
  "Send requests to a disabled route again.",
  { route },
  Effect.fnUntraced(function* ({ route }) {
    return Output.record((yield* Changes.enableRoute(route, inCatalog)).record)
  })
)

const reset = command(
  "reset",
  "Close the circuit of a route on every instance, and forget its failures.",
  { route },
  Effect.fnUntraced(function* ({ route }) {
    return Output.record((yield* Changes.resetRoute(route, inCatalog)).record)
  })
)

export const routes = Inputs.group(
  "routes",
  "Single routes of the catalog, on every instance within two seconds."
).pipe(Command.withSubcommands([disable, enable, reset]))

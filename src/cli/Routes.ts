import { Args, Command } from "@effect/cli"
import { Effect } from "effect"
import { Catalog } from "../services/catalog/Catalog.ts"
import { type RouteControl, RouteControls } from "../services/control/RouteControls.ts"
import { RouteHealth } from "../services/routing/RouteHealth.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const mostSuggested = 10

const route = Args.text({ name: "ROUTE" }).pipe(Args.withDescription("a route's id, as gateway providers shows it"))

const suggest = (asked: string, known: ReadonlyArray<string>): string => {
  const parts = asked.toLowerCase().split(/[@#]/)
  const near = known.filter((id) => parts.some((part) => part !== "" && id.toLowerCase().includes(part)))
  const shown = (near.length > 0 ? near : known).slice(0, mostSuggested)
  return shown.length === 0 ? "" : ` Known: ${shown.join(", ")}${near.length > mostSuggested ? ", …" : ""}.`
}

/** The catalog is read last: a route of a running gateway is found beside a file that is broken. */
const requireRoute = Effect.fnUntraced(function* (id: string) {
  const disabled = (yield* (yield* RouteControls).disabled).map((one) => one.route)
  const used = (yield* (yield* RouteHealth).list).map((one) => one.route)
  if (disabled.includes(id) || used.includes(id)) return
  const { models } = yield* Effect.flatMap(readCatalogOptions, Catalog.make)
  const known = [...new Set([...models.flatMap(({ routes }) => routes.map((one) => one.id)), ...used, ...disabled])]
  if (known.includes(id)) return
  return yield* new CommandFailed({ message: `There is no route ${id}.${suggest(id, known)}` })
})

const recordOf = ({ disabledAt, note, route }: RouteControl) =>
  Output.record({ id: route, disabled: disabledAt !== null, disabled_at: disabledAt, note })

const disable = command(
  "disable",
  "Send no new requests to a route, until it is enabled; what it is doing goes on.",
  { route, note: Inputs.optional(Inputs.text("note"), "why, for gateway providers") },
  Effect.fnUntraced(function* ({ note, route }) {
    yield* requireRoute(route)
    return recordOf(yield* (yield* RouteControls).disable(route, note))
  })
)

const enable = command(
  "enable",
  "Send requests to a disabled route again.",
  { route },
  Effect.fnUntraced(function* ({ route }) {
    yield* requireRoute(route)
    return recordOf(yield* (yield* RouteControls).enable(route))
  })
)

const reset = command(
  "reset",
  "Close the circuit of a route on every instance, and forget its failures.",
  { route },
  Effect.fnUntraced(function* ({ route }) {
    yield* requireRoute(route)
    return recordOf(yield* (yield* RouteControls).reset(route))
  })
)

export const routes = Inputs.group(
  "routes",
  "Single routes of the catalog, on every instance within two seconds."
).pipe(Command.withSubcommands([disable, enable, reset]))

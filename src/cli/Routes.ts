import { Command } from "@effect/cli"
import { Array as Arr, Effect } from "effect"
import { pluralize } from "../domain/Plural.ts"
import * as Operations from "../services/admin/RouteOperations.ts"
import { type RouteRecord, routeRecords } from "../services/admin/RouteRecord.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { RouteControls } from "../services/control/RouteControls.ts"
import { RouteHealth } from "../services/routing/RouteHealth.ts"
import { change, command } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { table } from "./Output.ts"

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

const columns = ["route", "circuit", "requests", "failures", "latency_ms", "last_error", "last_error_at"]

const circuitOf = ({ circuit, disabled_at, open_for_organizations: organizations }: RouteRecord): string => {
  if (disabled_at !== null) return "disabled"
  return organizations === 0 ? circuit : `${circuit}, open for ${pluralize(organizations, "organization")}`
}

const textOf = (rows: ReadonlyArray<RouteRecord>): string => {
  const shown = rows.map((row) => ({ ...row, route: row.id, circuit: circuitOf(row) }))
  const disabled = shown.filter(({ circuit }) => circuit === "disabled")
  const routes = table(shown, columns, "There are no routes: no provider of the catalog has its credential.")
  if (disabled.length === 0) return routes
  return `${routes}\n\n${table(disabled, ["route", "disabled_at", "in_catalog", "note"], "")}`
}

const catalogRoutes = Effect.map(Effect.flatMap(readCatalogOptions, Catalog.make), ({ models, sandbox }) => ({
  sandbox,
  problem: null,
  known: models.flatMap((model) =>
    model.routes.map(({ id, provider }) => ({ id, model: model.id, provider: provider.name }))
  )
}))

const remarkOf = ({ problem, sandbox }: { readonly problem: string | null; readonly sandbox: boolean | null }) => {
  if (problem !== null)
    return `The catalog cannot be read, so these are the routes of running gateways:\n${problem}\n\n`
  return sandbox ? "The SANDBOX serves: models without a provider credential get made-up answers.\n\n" : ""
}

export const providers = command(
  "providers",
  "Each route: circuit, last error, latency, requests.",
  {},
  Effect.fnUntraced(function* () {
    const health = yield* (yield* RouteHealth).list
    const disabled = yield* (yield* RouteControls).disabled
    const running = health.map(({ model, provider, route }) => ({ id: route, model, provider }))
    const { known, problem, sandbox } = yield* catalogRoutes.pipe(
      Effect.catchTag("CatalogInvalid", ({ message }) =>
        Effect.succeed({
          known: Arr.dedupeWith(running, (one, other) => one.id === other.id),
          problem: message,
          sandbox: null
        })
      )
    )
    const rows = routeRecords({ known, health, disabled })
    return {
      document: { sandbox, catalog_problem: problem, data: rows },
      text: remarkOf({ problem, sandbox }) + textOf(rows)
    }
  })
)

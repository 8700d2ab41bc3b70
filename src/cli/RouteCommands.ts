import { Command } from "@effect/cli"
import { Array as Arr, Effect } from "effect"
import { pluralize } from "../domain/Wording.ts"
import * as Operations from "../services/admin/RouteOperations.ts"
import { type RouteRecord, routeRecords } from "../services/admin/RouteOperations.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { RouteControls } from "../services/control/RouteControls.ts"
import { PublishedHealth } from "../services/routing/PublishedHealth.ts"
import { readCatalogOptions } from "./CliServices.ts"
import { change, command } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import { table } from "./Output.ts"

const route = Inputs.word("ROUTE", "a route's id; gateway providers lists them")

const readCatalogRoutes = Effect.map(Effect.flatMap(readCatalogOptions, Catalog.make), Operations.catalogRoutes)

const disable = change(
  "disable",
  `${Operations.disable.summary}.`,
  { route, note: Inputs.optional(Inputs.text("note"), "reason, shown by gateway providers") },
  ({ note, route }) => Operations.disable.run(route, note, readCatalogRoutes)
)

const enable = change("enable", `${Operations.enable.summary}.`, { route }, ({ route }) =>
  Operations.enable.run(route, readCatalogRoutes)
)

const reset = change("reset", `${Operations.reset.summary}.`, { route }, ({ route }) =>
  Operations.reset.run(route, readCatalogRoutes)
)

export const routes = Inputs.group(
  "routes",
  "Disable, enable and reset routes. Changes reach every instance within two seconds."
).pipe(Command.withSubcommands([disable, enable, reset]))

const columns = ["route", "circuit", "requests", "failures", "latency_ms", "last_error", "last_error_at"]

const circuitOf = ({ circuit, disabled_at, open_for_organizations: organizations }: RouteRecord): string => {
  if (disabled_at !== null) return "disabled"
  return organizations === 0 ? circuit : `${circuit}, open for ${pluralize(organizations, "organization")}`
}

const textOf = (rows: ReadonlyArray<RouteRecord>): string => {
  const tableRows = rows.map((row) => ({ ...row, route: row.id, circuit: circuitOf(row) }))
  const disabled = tableRows.filter(({ circuit }) => circuit === "disabled")
  const routes = table(tableRows, columns, "There are no routes. No provider in the catalog has its credential.")
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
  if (problem !== null) return `The catalog cannot be read. These are the routes of running gateways:\n${problem}\n\n`
  return sandbox ? "SANDBOX is on: the built-in mock provider serves models without a provider credential.\n\n" : ""
}

export const providers = command(
  "providers",
  "Show each route's circuit breaker, last error, latency and requests.",
  {},
  Effect.fnUntraced(function* () {
    const health = yield* (yield* PublishedHealth).list
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

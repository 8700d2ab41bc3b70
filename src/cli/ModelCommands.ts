import { Command } from "@effect/cli"
import { Array as Arr, Clock, Effect } from "effect"
import { toUsdText } from "../domain/Money.ts"
import { pluralize } from "../domain/Wording.ts"
import { CommandFailed } from "../ExitCode.ts"
import * as Operations from "../services/admin/ControlOperations.ts"
import { type RouteRecord, routeRecords } from "../services/admin/ControlOperations.ts"
import { catalogRoutesOf, listServedRoutes, type ServedModel, servedModels } from "../services/admin/ServedModels.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { RouteControls } from "../services/control/RouteControls.ts"
import { PublishedHealth } from "../services/routing/PublishedHealth.ts"
import { readCatalogOptions } from "./CliServices.ts"
import { change, command } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, table } from "./Output.ts"

const amountsOf = (amounts: ReadonlyArray<bigint | null>): string | null =>
  amounts.every((amount) => amount === null)
    ? null
    : amounts.map((amount) => (amount === null ? "-" : toUsdText(amount))).join(" / ")

const stateOf = ({ callable, reason, sandboxed }: ServedModel): string => {
  if (!callable) return `unavailable: ${reason ?? "it has no route"}`
  return sandboxed ? "sandbox" : "available"
}

/** A chat model has the prices of prompt and completion, any other model its first price. */
const modelRowOf = (model: ServedModel): Fields => {
  const { id, lowest_margin_pct, prices, routes, surface } = model
  const mainPrices = prices.slice(0, surface === "chat" ? 2 : 1)
  const openRoutes = routes.filter(({ disabled_at, off_reason }) => disabled_at === null && off_reason === null)
  return {
    model: id,
    surface,
    unit: surface === "chat" ? "1M tokens in / out" : mainPrices[0]?.unit,
    price_usd: amountsOf(mainPrices.map(({ price_usd }) => price_usd)),
    cost_usd: amountsOf(mainPrices.map(({ cost_usd }) => cost_usd)),
    "margin_%": lowest_margin_pct,
    routes: `${openRoutes.length} of ${routes.length}`,
    state: stateOf(model)
  }
}

const modelColumns = ["model", "surface", "unit", "price_usd", "cost_usd", "margin_%", "routes", "state"]

const list = command(
  "list",
  "List models with their prices, lowest costs and margins. With --json, also their routes and the health of each.",
  { callable: Inputs.flag("callable", "only models that can be called") },
  Effect.fnUntraced(
    function* ({ callable }) {
      const catalog = yield* Effect.flatMap(readCatalogOptions, Catalog.make)
      const now = yield* Clock.currentTimeMillis
      const routes = yield* listServedRoutes(catalogRoutesOf(catalog, now))
      const models = servedModels(catalog, routes, now).filter((model) => !callable || model.callable)
      return {
        document: { sandbox: catalog.sandbox, data: models },
        text: table(
          models.map(modelRowOf),
          modelColumns,
          callable ? "No model can be called." : "The catalog has no models."
        )
      }
    },
    Effect.catchTag("CatalogInvalid", ({ message }) => new CommandFailed({ message }))
  )
)

export const models = Inputs.group("models", "Show the models of the catalog with their prices and state.").pipe(
  Command.withSubcommands([list])
)

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

const providerColumns = ["route", "circuit", "requests", "failures", "latency_ms", "last_error", "last_error_at"]

const circuitOf = ({ circuit, disabled_at, open_for_organizations: organizations }: RouteRecord): string => {
  if (disabled_at !== null) return "disabled"
  return organizations === 0 ? circuit : `${circuit}, open for ${pluralize(organizations, "organization")}`
}

const providersText = (rows: ReadonlyArray<RouteRecord>): string => {
  const tableRows = rows.map((row) => ({ ...row, route: row.id, circuit: circuitOf(row) }))
  const disabled = tableRows.filter(({ circuit }) => circuit === "disabled")
  const routes = table(
    tableRows,
    providerColumns,
    "There are no routes. No provider in the catalog has its credential."
  )
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
      text: remarkOf({ problem, sandbox }) + providersText(rows)
    }
  })
)

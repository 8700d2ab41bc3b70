import { Command } from "@effect/cli"
import { Clock, Effect } from "effect"
import { toUsdText } from "../domain/Money.ts"
import { CommandFailed } from "../ExitCode.ts"
import { catalogRoutesOf, listServedRoutes, type ServedModel, servedModels } from "../services/admin/ServedModels.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { readCatalogOptions } from "./CliServices.ts"
import { command } from "./CommandBuilders.ts"
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
const rowOf = (model: ServedModel): Fields => {
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

const columns = ["model", "surface", "unit", "price_usd", "cost_usd", "margin_%", "routes", "state"]

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
        text: table(models.map(rowOf), columns, callable ? "No model can be called." : "The catalog has no models.")
      }
    },
    Effect.catchTag("CatalogInvalid", ({ message }) => new CommandFailed({ message }))
  )
)

export const models = Inputs.group("models", "Show the models of the catalog with their prices and state.").pipe(
  Command.withSubcommands([list])
)

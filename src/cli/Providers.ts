import { Effect } from "effect"
import { type RouteRecord, routeRecords } from "../services/admin/RouteRecord.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import { RouteControls } from "../services/control/RouteControls.ts"
import { RouteHealth } from "../services/routing/RouteHealth.ts"
import { command } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import { table } from "./Output.ts"

const columns = ["route", "circuit", "requests", "failures", "latency_ms", "last_error", "last_error_at"]

const textOf = (rows: ReadonlyArray<RouteRecord>): string => {
  const shown = rows.map((row) => ({ ...row, route: row.id, circuit: row.disabled_at ? "disabled" : row.circuit }))
  const disabled = shown.filter(({ circuit }) => circuit === "disabled")
  const routes = table(shown, columns, "There are no routes: no provider of the catalog has its credential.")
  if (disabled.length === 0) return routes
  return `${routes}\n\n${table(disabled, ["route", "disabled_at", "in_catalog", "note"], "")}`
}

export const providers = command(
  "providers",
  "Each route: circuit, last error, latency, requests.",
  {},
  Effect.fnUntraced(function* () {
    const catalog = yield* Effect.flatMap(readCatalogOptions, Catalog.make)
    const { list } = yield* RouteHealth
    const { disabled } = yield* RouteControls
    const known = catalog.models.flatMap((model) =>
      model.routes.map(({ id, provider }) => ({ id, model: model.id, provider: provider.name }))
    )
    const rows = routeRecords({ known, health: yield* list, disabled: yield* disabled })
    const remark = catalog.sandbox
      ? "The SANDBOX serves: models without a provider credential get made-up answers.\n\n"
      : ""
    return { document: { sandbox: catalog.sandbox, data: rows }, text: remark + textOf(rows) }
  })
)

import { Command } from "@effect/cli"
import { Array as Arr, Effect, Order } from "effect"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import { type RouteControl, RouteControls } from "../services/control/RouteControls.ts"
import { type PublishedHealth, RouteHealth } from "../services/routing/RouteHealth.ts"
import { operator, readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, present, table } from "./Output.ts"

const worst = { open: 2, half_open: 1, closed: 0 } as const
const byCircuit = Order.mapInput(Order.number, ({ circuit }: PublishedHealth) => worst[circuit])
const byError = Order.mapInput(Order.number, ({ lastErrorAt }: PublishedHealth) => lastErrorAt?.getTime() ?? 0)

const total = (all: ReadonlyArray<PublishedHealth>, of: (one: PublishedHealth) => number) =>
  all.reduce((sum, one) => sum + of(one), 0)

/** The worst circuit, the last error, the average latency. */
const over = (all: Arr.NonEmptyReadonlyArray<PublishedHealth>): Fields => {
  const { circuit, openUntil } = Arr.max(all, byCircuit)
  const { lastError, lastErrorAt } = Arr.max(all, byError)
  const timed = all.filter(({ latencyMs }) => latencyMs !== null)
  const weight = total(timed, ({ requests }) => requests)
  return {
    circuit,
    open_until: circuit === "open" ? openUntil : null,
    last_error: lastError,
    last_error_at: lastErrorAt,
    latency_ms: weight === 0 ? null : Math.round(total(timed, (one) => (one.latencyMs ?? 0) * one.requests) / weight),
    requests: total(all, ({ requests }) => requests),
    failures: total(all, ({ failures }) => failures),
    instances: all.length
  }
}

const untried: Fields = {
  circuit: "closed",
  open_until: null,
  last_error: null,
  last_error_at: null,
  latency_ms: null,
  requests: 0,
  failures: 0,
  instances: 0
}

const rowsOf = (
  { models }: CatalogSnapshot,
  health: ReadonlyArray<PublishedHealth>,
  disabled: ReadonlyArray<RouteControl>
): ReadonlyArray<Fields> => {
  const published = new Map(Object.entries(Arr.groupBy(health, ({ route }) => route)))
  const known = models.flatMap((model) =>
    model.routes.map(({ id, provider }) => ({ id, model: model.id, provider: provider.name }))
  )
  const ids = new Set(known.map(({ id }) => id))
  // A gateway with other credentials or another catalog has routes of its own.
  const others = [...published].flatMap(([id, [{ model, provider }]]) => (ids.has(id) ? [] : [{ id, model, provider }]))
  const switches = new Map(disabled.map((one) => [one.route, one]))
  const shown = new Set([...ids, ...published.keys()])
  const left = disabled.flatMap(({ route }) => {
    const [model = "", provider = ""] = route.split(/[@#]/)
    return shown.has(route) ? [] : [{ id: route, model, provider }]
  })
  return [...known, ...others, ...left].map((route) => {
    const found = published.get(route.id)
    const { disabledAt = null, note = null } = switches.get(route.id) ?? {}
    return {
      ...route,
      ...(found === undefined ? untried : over(found)),
      in_catalog: ids.has(route.id),
      disabled_at: disabledAt,
      note
    }
  })
}

const columns = ["route", "circuit", "requests", "failures", "latency_ms", "last_error", "last_error_at"]

const textOf = (rows: ReadonlyArray<Fields>): string => {
  const shown = rows.map((row) => ({ ...row, route: row.id, circuit: row.disabled_at ? "disabled" : row.circuit }))
  const disabled = shown.filter(({ circuit }) => circuit === "disabled")
  const routes = table(shown, columns, "There are no routes: no provider of the catalog has its credential.")
  if (disabled.length === 0) return routes
  return `${routes}\n\n${table(disabled, ["route", "disabled_at", "in_catalog", "note"], "")}`
}

export const providers = Command.make(
  "providers",
  { json: Inputs.json },
  Effect.fnUntraced(function* ({ json }) {
    const catalog = yield* Effect.flatMap(readCatalogOptions, Catalog.make)
    const { list } = yield* RouteHealth
    const { disabled } = yield* RouteControls
    const rows = rowsOf(catalog, yield* list, yield* disabled)
    const remark = catalog.sandbox
      ? "The SANDBOX serves: models without a provider credential get made-up answers.\n\n"
      : ""
    yield* present(json, { sandbox: catalog.sandbox, data: rows }, remark + textOf(rows))
  })
).pipe(Command.withDescription("Each route: circuit, last error, latency, requests."), Command.provide(operator))

import { Array as Arr, Data, Effect, Order, Schema } from "effect"
import { type AddressRange, BlockedRange, BlockList } from "../access/BlockList.ts"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { RouteControl, RouteControls } from "../control/RouteControls.ts"
import { TextOrNull, TimeOrNull } from "../resources/ResourceRecord.ts"
import { PublishedHealth, type RouteHealth } from "../routing/PublishedHealth.ts"
import { auditResource, operation } from "./AdminOperation.ts"

const maxSuggestions = 10

const suggest = (route: string, routes: ReadonlyArray<string>): string => {
  const parts = route.toLowerCase().split(/[@#]/)
  const similar = routes.filter((id) => parts.some((part) => part !== "" && id.toLowerCase().includes(part)))
  const suggestions = (similar.length > 0 ? similar : routes).slice(0, maxSuggestions)
  return suggestions.length === 0
    ? ""
    : ` Known routes: ${suggestions.join(", ")}${similar.length > maxSuggestions ? ", …" : ""}.`
}

export class RouteNotFound extends Data.TaggedError("RouteNotFound")<{
  readonly route: string
  readonly routes: ReadonlyArray<string>
}> {
  override get message() {
    return `There is no route ${this.route}.${suggest(this.route, this.routes)}`
  }
}

/** Returns route ids: first the callable routes, then the others. */
export const catalogRoutes = ({
  models,
  saleStates: offers
}: Pick<CatalogSnapshot, "models" | "saleStates">): ReadonlyArray<string> => [
  ...new Set([...models, ...offers.map(({ model }) => model)].flatMap(({ routes }) => routes.map(({ id }) => id)))
]

/** Reads the catalog only if no instance uses the route, so the operation works even while the catalog file is invalid. */
const requireRoute = Effect.fnUntraced(function* <E, R>(
  route: string,
  readCatalog: Effect.Effect<ReadonlyArray<string>, E, R>
) {
  const disabled = (yield* (yield* RouteControls).disabled).map(({ id }) => id)
  const used = (yield* (yield* PublishedHealth).list).map((health) => health.route)
  if (disabled.includes(route) || used.includes(route)) return
  const routes = [...new Set([...(yield* readCatalog), ...used, ...disabled])]
  if (!routes.includes(route)) return yield* new RouteNotFound({ route, routes })
})

/** Reads the ids of the catalog's routes. Runs only if the route is neither in use nor disabled. */
type CatalogRead<E, R> = Effect.Effect<ReadonlyArray<string>, E, R>

const routes = <E, R>(readCatalog: CatalogRead<E, R>) =>
  auditResource({
    name: "routes",
    record: RouteControl,
    find: (_, route) =>
      Effect.zipRight(
        requireRoute(route, readCatalog),
        Effect.flatMap(RouteControls, ({ find }) => find(route))
      )
  })

export const disable = operation(
  "Send no new requests to a route until it is enabled. Running requests continue",
  <E, R>(route: string, note: string | undefined, readCatalog: CatalogRead<E, R>) =>
    routes(readCatalog).change("disable", route, { note }, () =>
      Effect.flatMap(RouteControls, ({ disable }) => disable(route, note))
    )
)

export const enable = operation(
  "Send requests to a disabled route again",
  <E, R>(route: string, readCatalog: CatalogRead<E, R>) =>
    routes(readCatalog).change("enable", route, {}, () => Effect.flatMap(RouteControls, ({ enable }) => enable(route)))
)

export const reset = operation(
  "Close the circuit of a route on every instance and reset its failures",
  <E, R>(route: string, readCatalog: CatalogRead<E, R>) =>
    routes(readCatalog).change("reset", route, {}, () => Effect.flatMap(RouteControls, ({ reset }) => reset(route)))
)

const ranges = auditResource({
  name: "blocklist",
  record: BlockedRange,
  find: (_, range) =>
    Effect.flatMap(BlockList, ({ list }) => Effect.map(list, (all) => all.find(({ id }) => id === range)))
})

export const block = operation("Block an address or range", (range: AddressRange) =>
  ranges.change("add", range, {}, () => Effect.flatMap(BlockList, ({ add }) => add(range)))
)

export const unblock = operation("Unblock exactly this address or range", (range: AddressRange) =>
  ranges.change("remove", range, {}, () => Effect.flatMap(BlockList, ({ remove }) => remove(range)))
)

export const RouteRecord = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  circuit: Schema.Literal("closed", "open", "half_open").annotations({
    description: "The worst state of all instances."
  }),
  open_until: TimeOrNull,
  open_for_organizations: Schema.Number.annotations({
    description: "The number of organizations with a separate circuit that is not closed. The maximum of all instances."
  }),
  last_error: TextOrNull,
  last_error_at: TimeOrNull,
  latency_ms: Schema.NullOr(Schema.Number),
  requests: Schema.Number.annotations({ description: "The number since the instances started, like `failures`." }),
  failures: Schema.Number,
  instances: Schema.Number.annotations({ description: "The number of instances that used the route." }),
  in_catalog: Schema.Boolean,
  disabled_at: TimeOrNull,
  note: TextOrNull
}).annotations({ identifier: "Route" })
export type RouteRecord = typeof RouteRecord.Type

const severity = { open: 2, half_open: 1, closed: 0 } as const
export const byCircuit = Order.mapInput(Order.number, ({ circuit }: RouteHealth) => severity[circuit])
export const byError = Order.mapInput(Order.number, ({ lastErrorAt }: RouteHealth) => lastErrorAt?.getTime() ?? 0)

const total = (all: ReadonlyArray<RouteHealth>, of: (health: RouteHealth) => number) =>
  all.reduce((sum, health) => sum + of(health), 0)

/** Combines the instances' health: the worst circuit, the latest error and the average latency. */
const summarize = (all: Arr.NonEmptyReadonlyArray<RouteHealth>) => {
  const { circuit, openUntil } = Arr.max(all, byCircuit)
  const { lastError, lastErrorAt } = Arr.max(all, byError)
  const timed = all.filter(({ latencyMs }) => latencyMs !== null)
  const weight = total(timed, ({ requests }) => requests)
  return {
    circuit,
    open_until: circuit === "open" ? openUntil : null,
    open_for_organizations: Math.max(...all.map(({ openForOrganizations }) => openForOrganizations)),
    last_error: lastError,
    last_error_at: lastErrorAt,
    latency_ms:
      weight === 0 ? null : Math.round(total(timed, (health) => (health.latencyMs ?? 0) * health.requests) / weight),
    requests: total(all, ({ requests }) => requests),
    failures: total(all, ({ failures }) => failures),
    instances: all.length
  }
}

const unused = {
  circuit: "closed",
  open_until: null,
  open_for_organizations: 0,
  last_error: null,
  last_error_at: null,
  latency_ms: null,
  requests: 0,
  failures: 0,
  instances: 0
} as const

interface CatalogRoute {
  readonly id: string
  readonly model: string
  readonly provider: string
}

interface RouteFacts {
  /** The routes of the catalog, in its order. */
  readonly known: ReadonlyArray<CatalogRoute>
  readonly health: ReadonlyArray<RouteHealth>
  readonly disabled: ReadonlyArray<RouteControl>
}

/** Returns the catalog's routes, then routes that only another instance has, then disabled routes that are in no catalog. */
export const routeRecords = ({ disabled, health, known }: RouteFacts): ReadonlyArray<RouteRecord> => {
  const published = new Map(Object.entries(Arr.groupBy(health, ({ route }) => route)))
  const ids = new Set(known.map(({ id }) => id))
  // Other instances may have another catalog or other credentials, and so other routes.
  const others = [...published].flatMap(([id, [{ model, provider }]]) => (ids.has(id) ? [] : [{ id, model, provider }]))
  const controls = new Map(disabled.map((control) => [control.id, control]))
  const listed = new Set([...ids, ...published.keys()])
  const disabledOnly = disabled.flatMap(({ id }) => {
    const [model = "", provider = ""] = id.split(/[@#]/)
    return listed.has(id) ? [] : [{ id, model, provider }]
  })
  return [...known, ...others, ...disabledOnly].map((route) => {
    const states = published.get(route.id)
    const { disabled_at = null, note = null } = controls.get(route.id) ?? {}
    return {
      ...route,
      ...(states === undefined ? unused : summarize(states)),
      in_catalog: ids.has(route.id),
      disabled_at,
      note
    }
  })
}

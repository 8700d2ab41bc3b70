import { Array as Arr, Order, Schema } from "effect"
import type { RouteControl } from "../control/RouteControls.ts"
import { TextOrNull, TimeOrNull } from "../resources/Record.ts"
import type { PublishedHealth } from "../routing/RouteHealth.ts"

export const RouteRecord = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  circuit: Schema.Literal("closed", "open", "half_open").annotations({ description: "The worst of all instances." }),
  open_until: TimeOrNull,
  open_for_organizations: Schema.Number.annotations({
    description: "For how many organizations alone it is not closed; the most of all instances."
  }),
  last_error: TextOrNull,
  last_error_at: TimeOrNull,
  latency_ms: Schema.NullOr(Schema.Number),
  requests: Schema.Number.annotations({ description: "Since the instances started; as failures." }),
  failures: Schema.Number,
  instances: Schema.Number.annotations({ description: "How many have used it." }),
  in_catalog: Schema.Boolean,
  disabled_at: TimeOrNull,
  note: TextOrNull
}).annotations({ identifier: "Route" })
export type RouteRecord = typeof RouteRecord.Type

const worst = { open: 2, half_open: 1, closed: 0 } as const
export const byCircuit = Order.mapInput(Order.number, ({ circuit }: PublishedHealth) => worst[circuit])
export const byError = Order.mapInput(Order.number, ({ lastErrorAt }: PublishedHealth) => lastErrorAt?.getTime() ?? 0)

const total = (all: ReadonlyArray<PublishedHealth>, of: (one: PublishedHealth) => number) =>
  all.reduce((sum, one) => sum + of(one), 0)

/** The worst circuit, the last error, the average latency. */
const summarize = (all: Arr.NonEmptyReadonlyArray<PublishedHealth>) => {
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
    latency_ms: weight === 0 ? null : Math.round(total(timed, (one) => (one.latencyMs ?? 0) * one.requests) / weight),
    requests: total(all, ({ requests }) => requests),
    failures: total(all, ({ failures }) => failures),
    instances: all.length
  }
}

const untried = {
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

interface KnownRoute {
  readonly id: string
  readonly model: string
  readonly provider: string
}

interface RouteFacts {
  /** Those of the catalog, in its order. */
  readonly known: ReadonlyArray<KnownRoute>
  readonly health: ReadonlyArray<PublishedHealth>
  readonly disabled: ReadonlyArray<RouteControl>
}

/** Also of routes that only another instance has, or that are disabled and in no catalog. */
export const routeRecords = ({ disabled, health, known }: RouteFacts): ReadonlyArray<RouteRecord> => {
  const published = new Map(Object.entries(Arr.groupBy(health, ({ route }) => route)))
  const ids = new Set(known.map(({ id }) => id))
  // A gateway with other credentials or another catalog has routes of its own.
  const others = [...published].flatMap(([id, [{ model, provider }]]) => (ids.has(id) ? [] : [{ id, model, provider }]))
  const switches = new Map(disabled.map((one) => [one.id, one]))
  const shown = new Set([...ids, ...published.keys()])
  const left = disabled.flatMap(({ id }) => {
    const [model = "", provider = ""] = id.split(/[@#]/)
    return shown.has(id) ? [] : [{ id, model, provider }]
  })
  return [...known, ...others, ...left].map((route) => {
    const found = published.get(route.id)
    const { disabled_at = null, note = null } = switches.get(route.id) ?? {}
    return {
      ...route,
      ...(found === undefined ? untried : summarize(found)),
      in_catalog: ids.has(route.id),
      disabled_at,
      note
    }
  })
}

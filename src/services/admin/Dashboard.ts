import { SqlClient } from "@effect/sql"
import { Array as Arr, Clock, Context, Effect, Fiber, Layer, Option } from "effect"
import { toUsdText } from "../../domain/Money.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { pluralize } from "../../domain/Wording.ts"
import { Catalog, type CatalogSnapshot } from "../catalog/Catalog.ts"
import { sandboxProviders } from "../catalog/CatalogRules.ts"
import { type RouteControl, RouteControls } from "../control/RouteControls.ts"
import { Instances } from "../instance/RunningGateway.ts"
import { PublishedHealth, type RouteHealth } from "../routing/PublishedHealth.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { Usage, type UsageRow } from "../telemetry/Usage.ts"
import { readAlerts, spendReader } from "./Alerts.ts"
import { byCircuit, byError } from "./ControlOperations.ts"
import type { Alert, Circuit, DashboardRecord } from "./DashboardRecord.ts"
import { cacheForMinute, dayMillis, floorTo, hourMillis, hoursReader, readHolds, readKpis } from "./Kpis.ts"
import { type ServedRoutes, trafficReader } from "./RequestAlerts.ts"

/** Returns the disabled routes, and routes whose circuit is not closed on some instance. */
const circuitsOf = (
  health: ReadonlyArray<RouteHealth>,
  disabled: ReadonlyArray<RouteControl>
): ReadonlyArray<Circuit> => {
  const published = Arr.groupBy(health, ({ route }) => route)
  const errorOf = (route: string) => {
    const states = published[route]
    const { lastError = null, lastErrorAt = null } = states === undefined ? {} : Arr.max(states, byError)
    return { last_error: lastError, last_error_at: lastErrorAt }
  }
  const disabledCircuits = disabled.map(
    ({ id: route, note }): Circuit => ({ route, state: "disabled", until: null, ...errorOf(route), note })
  )
  const disabledIds = new Set(disabled.map(({ id }) => id))
  const failing = Object.entries(published).flatMap(([route, states]): ReadonlyArray<Circuit> => {
    const { circuit, openUntil } = Arr.max(states, byCircuit)
    if (circuit === "closed" || disabledIds.has(route)) return []
    return [{ route, state: circuit, until: circuit === "open" ? openUntil : null, ...errorOf(route), note: null }]
  })
  return [...failing, ...disabledCircuits]
}

const maxNames = 3

const sum = (rows: ReadonlyArray<UsageRow>, of: (row: UsageRow) => bigint) =>
  rows.reduce((total, row) => total + of(row), 0n)

/** Sandbox routes have no real cost, so they raise no alert. */
const isSandbox = ({ subgroup }: UsageRow): boolean => {
  const [, provider] = subgroup?.split(/[@#]/) ?? []
  return sandboxProviders.some((name) => name === provider)
}

/**
 * Compares whole models, because the margins of single routes mislead: the cost of a failed attempt counts for the failed
 * route, and the charge for the route that answered.
 */
const lossAlertsOf = (rows: ReadonlyArray<UsageRow>) =>
  Object.entries(
    Arr.groupBy(
      rows.filter((row) => !isSandbox(row)),
      ({ group }) => group ?? ""
    )
  ).flatMap(([model, routes]): ReadonlyArray<Alert> => {
    const margin = sum(routes, (route) => route.margin ?? 0n)
    if (margin >= 0n) return []
    return [
      {
        kind: "sold_below_cost",
        title: `${model} is sold below cost`,
        detail: `${toUsdText(-margin)} USD were lost within a day.`,
        href: `#/usage?since=1d&by=route&model=${encodeURIComponent(model)}`
      }
    ]
  })

const unknownCostAlertsOf = (rows: ReadonlyArray<UsageRow>): ReadonlyArray<Alert> => {
  const uncosted = rows.filter((row) => row.uncosted > 0 && !isSandbox(row)).toSorted((a, b) => b.uncosted - a.uncosted)
  if (uncosted.length === 0) return []
  const requests = uncosted.reduce((total, row) => total + row.uncosted, 0)
  const names = uncosted.slice(0, maxNames).map(({ subgroup }) => subgroup ?? "unknown")
  const others = uncosted.length > maxNames ? " and others" : ""
  return [
    {
      kind: "cost_unknown",
      title: `${pluralize(requests, "request has", "requests have")} no known cost`,
      detail: `Within a day, on ${names.join(", ")}${others}. Set a cost for these routes in the catalog.`,
      href: "#/usage?since=1d&by=route"
    }
  ]
}

/** In nano-USD. Smaller differences, and differences below 1 %, are noise. */
const minDrift = 10_000_000n

const driftAlertsOf = (rows: ReadonlyArray<UsageRow>) =>
  Object.entries(Arr.groupBy(rows, ({ subgroup }) => subgroup ?? "")).flatMap(
    ([route, parts]): ReadonlyArray<Alert> => {
      const catalogCost = sum(parts, (part) => part.comparedCost)
      const drift = sum(parts, (part) => part.costDrift)
      const size = drift < 0n ? -drift : drift
      if (size <= minDrift || size * 100n <= catalogCost) return []
      return [
        {
          kind: "cost_drift",
          title: `The cost of ${route} differs from the catalog`,
          detail: `In the last day the provider reported ${toUsdText(catalogCost + drift)} USD. The cost by the catalog is ${toUsdText(catalogCost)} USD.`,
          href: `#/usage?since=1d&by=route&route=${encodeURIComponent(route)}`
        }
      ]
    }
  )

/** Returns a cached function that reads the last day's losses, unknown costs, and differences from provider-reported costs. */
const marginsReader = ({ report }: typeof Usage.Service) =>
  cacheForMinute((now) => {
    const until = floorTo(now, hourMillis) + hourMillis
    return Effect.map(
      report(OrganizationScope.all, { by: "model", thenBy: "route", since: until - dayMillis, until }),
      ({ rows }): ReadonlyArray<Alert> => [...lossAlertsOf(rows), ...unknownCostAlertsOf(rows), ...driftAlertsOf(rows)]
    )
  })

/** Includes routes that cannot be called, and those of the sandbox. */
const hasRoute = ({ saleStates }: CatalogSnapshot, route: string): boolean =>
  saleStates.some(({ callable, model }) =>
    [...model.routes, ...(callable?.routes ?? [])].some(({ id }) => id === route)
  )

const maxAgeMillis = 1_000
/** Low, because requests need database connections too. */
const maxQueries = 2

export class Dashboard extends Context.Tag("gateway/Dashboard")<
  Dashboard,
  {
    /** Returns a record that is at most a second old. All open consoles share it. */
    readonly read: Effect.Effect<DashboardRecord>
    readonly at: (now: number) => Effect.Effect<DashboardRecord>
  }
>() {
  static readonly layer = Layer.scoped(
    Dashboard,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const usage = yield* Usage
      const health = yield* PublishedHealth
      const controls = yield* RouteControls
      const instances = yield* Instances

      const readHours = hoursReader(usage)
      const readSpend = spendReader(usage)
      const readMargins = marginsReader(usage)
      const readTraffic = trafficReader(sql)
      // Commands have no catalog.
      const catalog = Option.getOrUndefined(yield* Effect.serviceOption(Catalog))
      const served: ServedRoutes = {
        credentialOf: (provider) =>
          catalog?.current.providers.find(({ account }) => account.name === provider)?.variable,
        has: (route) => catalog === undefined || hasRoute(catalog.current, route)
      }

      const at = Effect.fn("Now.at")(function* (now: number) {
        const [kpis, hours, holds, spent, margins, traffic, sources] = yield* Effect.all(
          [
            readKpis(sql, usage, now),
            readHours(now),
            readHolds(sql),
            readSpend(now),
            readMargins(now),
            readTraffic(now),
            Effect.all({ health: health.list, disabled: controls.disabled, instances: instances.list })
          ],
          { concurrency: maxQueries }
        )
        const circuits = circuitsOf(sources.health, sources.disabled)
        const alertSources = { ...sources, circuits, margins, spent, traffic, served }
        const attention = yield* readAlerts(sql, alertSources, now)
        const record: DashboardRecord = { at: new Date(now), ...kpis, hours, holds, circuits, attention }
        return record
      })

      let latest: { readonly fiber: Fiber.Fiber<DashboardRecord>; readonly startedAt: number } | undefined
      let isReading = false
      const endReading = Effect.sync(() => (isReading = false))
      const read = Effect.gen(function* () {
        const startedAt = yield* monotonicMillis
        if (latest === undefined || (!isReading && startedAt - latest.startedAt >= maxAgeMillis)) {
          isReading = true
          const reading = Effect.ensuring(Effect.flatMap(Clock.currentTimeMillis, at), endReading)
          latest = { fiber: yield* Effect.forkIn(reading, scope), startedAt }
        }
        return yield* Fiber.join(latest.fiber)
      })
      return Dashboard.of({ at, read })
    })
  )
}

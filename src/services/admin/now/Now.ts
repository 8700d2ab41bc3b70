import { SqlClient } from "@effect/sql"
import { Array as Arr, Clock, Context, Effect, Fiber, Layer } from "effect"
import { toUsdText } from "../../../domain/Money.ts"
import { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { pluralize } from "../../../domain/Plural.ts"
import { sandboxProviders } from "../../catalog/CatalogRules.ts"
import { Instances } from "../../control/Instances.ts"
import { type RouteControl, RouteControls } from "../../control/RouteControls.ts"
import { type PublishedHealth, RouteHealth } from "../../routing/RouteHealth.ts"
import * as Monotonic from "../../runtime/Monotonic.ts"
import { Usage, type UsageRow } from "../../telemetry/Usage.ts"
import { byCircuit, byError } from "../RouteRecord.ts"
import { readAttention, spendReader } from "./Attention.ts"
import { dayMillis, floor, hourMillis, hoursReader, keepForMinute, readFigures, readHolds } from "./Figures.ts"
import type { Attention, Circuit, NowRecord } from "./Record.ts"

/** Routes that are disabled, or whose circuit is not closed on some instance. */
const circuitsOf = (
  health: ReadonlyArray<PublishedHealth>,
  disabled: ReadonlyArray<RouteControl>
): ReadonlyArray<Circuit> => {
  const published = Arr.groupBy(health, ({ route }) => route)
  const errorOf = (route: string) => {
    const found = published[route]
    const { lastError = null, lastErrorAt = null } = found === undefined ? {} : Arr.max(found, byError)
    return { last_error: lastError, last_error_at: lastErrorAt }
  }
  const off = disabled.map(
    ({ id: route, note }): Circuit => ({ route, state: "disabled", until: null, ...errorOf(route), note })
  )
  const isOff = new Set(disabled.map(({ id }) => id))
  const failing = Object.entries(published).flatMap(([route, found]): ReadonlyArray<Circuit> => {
    const { circuit, openUntil } = Arr.max(found, byCircuit)
    if (circuit === "closed" || isOff.has(route)) return []
    return [{ route, state: circuit, until: circuit === "open" ? openUntil : null, ...errorOf(route), note: null }]
  })
  return [...failing, ...off]
}

const maxNamed = 3

const sum = (rows: ReadonlyArray<UsageRow>, of: (row: UsageRow) => bigint) =>
  rows.reduce((total, row) => total + of(row), 0n)

/** Nobody pays the costs of the sandbox. */
const isMadeUp = ({ subgroup }: UsageRow): boolean => {
  const [, provider] = subgroup?.split(/[@#]/) ?? []
  return sandboxProviders.some((name) => name === provider)
}

/** The cost of a failed attempt counts for its own route, so only all routes of a model together show its margin. */
const soldBelowCost = (rows: ReadonlyArray<UsageRow>) =>
  Object.entries(
    Arr.groupBy(
      rows.filter((row) => !isMadeUp(row)),
      ({ group }) => group ?? ""
    )
  ).flatMap(([model, routes]): ReadonlyArray<Attention> => {
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

const withoutCost = (rows: ReadonlyArray<UsageRow>): ReadonlyArray<Attention> => {
  const found = rows.filter((row) => row.uncosted > 0 && !isMadeUp(row)).toSorted((a, b) => b.uncosted - a.uncosted)
  if (found.length === 0) return []
  const requests = found.reduce((total, { uncosted }) => total + uncosted, 0)
  const names = found.slice(0, maxNamed).map(({ subgroup }) => subgroup ?? "unknown")
  const others = found.length > maxNamed ? " and others" : ""
  return [
    {
      kind: "cost_unknown",
      title: `${pluralize(requests, "request has", "requests have")} no known cost`,
      detail: `Within a day, at ${names.join(", ")}${others}: give the routes a cost in the catalog.`,
      href: "#/usage?since=1d&by=route"
    }
  ]
}

/** Below it amounts are noise, as are differences of less than 1 %. */
const leastDrift = 10_000_000n

const drifted = (rows: ReadonlyArray<UsageRow>) =>
  Object.entries(Arr.groupBy(rows, ({ subgroup }) => subgroup ?? "")).flatMap(
    ([route, parts]): ReadonlyArray<Attention> => {
      const computed = sum(parts, (part) => part.comparedCost)
      const drift = sum(parts, (part) => part.costDrift)
      const size = drift < 0n ? -drift : drift
      if (size <= leastDrift || size * 100n <= computed) return []
      return [
        {
          kind: "cost_drift",
          title: `${route} does not cost what the catalog says`,
          detail: `Within a day its provider stated ${toUsdText(computed + drift)} USD for what is computed as ${toUsdText(computed)} USD.`,
          href: `#/usage?since=1d&by=route&route=${encodeURIComponent(route)}`
        }
      ]
    }
  )

/** What the last day's requests cost more than they brought, and those of which nobody knows, or the provider says otherwise. */
const marginsReader = ({ report }: typeof Usage.Service) =>
  keepForMinute((now) => {
    const until = floor(now, hourMillis) + hourMillis
    return Effect.map(
      report(OrganizationScope.all, { by: "model", thenBy: "route", since: until - dayMillis, until }),
      ({ rows }): ReadonlyArray<Attention> => [...soldBelowCost(rows), ...withoutCost(rows), ...drifted(rows)]
    )
  })

const keptMillis = 1_000
/** Requests need the other connections. */
const queriesAtOnce = 2

/** What happens now, and what needs an operator. */
export class Now extends Context.Tag("gateway/Now")<
  Now,
  {
    /** At most a second old, so that many open consoles cost one. */
    readonly read: Effect.Effect<NowRecord>
    readonly at: (now: number) => Effect.Effect<NowRecord>
  }
>() {
  static readonly layer = Layer.scoped(
    Now,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const usage = yield* Usage
      const health = yield* RouteHealth
      const controls = yield* RouteControls
      const running = yield* Instances

      const readHours = hoursReader(usage)
      const readSpend = spendReader(usage)
      const readMargins = marginsReader(usage)

      const at = Effect.fn("Now.at")(function* (now: number) {
        const [figures, hours, holds, spent, margins, listed] = yield* Effect.all(
          [
            readFigures(sql, usage, now),
            readHours(now),
            readHolds(sql),
            readSpend(now),
            readMargins(now),
            Effect.all({ health: health.list, disabled: controls.disabled, instances: running.list })
          ],
          { concurrency: queriesAtOnce }
        )
        const circuits = circuitsOf(listed.health, listed.disabled)
        const attention = yield* readAttention(sql, { ...listed, circuits, margins, spent }, now)
        const record: NowRecord = { at: new Date(now), ...figures, hours, holds, circuits, attention }
        return record
      })

      let latest: { readonly fiber: Fiber.Fiber<NowRecord>; readonly startedAt: number } | undefined
      let isReading = false
      const done = Effect.sync(() => (isReading = false))
      const read = Effect.gen(function* () {
        const startedAt = yield* Monotonic.millis
        if (latest === undefined || (!isReading && startedAt - latest.startedAt >= keptMillis)) {
          isReading = true
          const reading = Effect.ensuring(Effect.flatMap(Clock.currentTimeMillis, at), done)
          latest = { fiber: yield* Effect.forkIn(reading, scope), startedAt }
        }
        return yield* Fiber.join(latest.fiber)
      })
      return Now.of({ at, read })
    })
  )
}

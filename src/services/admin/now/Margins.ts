import { Array as Arr, Effect } from "effect"
import { toUsdText } from "../../../domain/Money.ts"
import { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { pluralize } from "../../../domain/Plural.ts"
import { sandboxProviders } from "../../catalog/CatalogRules.ts"
import type { Usage, UsageRow } from "../../telemetry/Usage.ts"
import { dayMillis, floor, hourMillis, keepForMinute } from "./Figures.ts"
import type { Attention } from "./Record.ts"

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
export const marginsReader = ({ report }: typeof Usage.Service) =>
  keepForMinute((now) => {
    const until = floor(now, hourMillis) + hourMillis
    return Effect.map(
      report(OrganizationScope.all, { by: "model", thenBy: "route", since: until - dayMillis, until }),
      ({ rows }): ReadonlyArray<Attention> => [...soldBelowCost(rows), ...withoutCost(rows), ...drifted(rows)]
    )
  })

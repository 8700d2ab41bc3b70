import { Array as Arr, Effect, Schema } from "effect"
import { type Model, Surface } from "../../domain/Model.ts"
import { discountModel } from "../../domain/Pricing.ts"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { listModel } from "../catalog/ModelEntry.ts"
import { type SaleState, saleStateAt } from "../catalog/SaleState.ts"
import { RouteControls } from "../control/RouteControls.ts"
import { TextOrNull } from "../resources/ResourceRecord.ts"
import { PublishedHealth } from "../routing/PublishedHealth.ts"
import { isLoss, MarginRecord, ModelRecord, modelRecord } from "./CatalogRecord.ts"
import { RouteRecord, routeRecords } from "./ControlOperations.ts"

export const ServedRoute = Schema.Struct({
  ...RouteRecord.fields,
  surface: Schema.NullOr(Surface).annotations({
    description: "Null, like `preference` and `weight`, if this instance's catalog lacks the route."
  }),
  preference: Schema.NullOr(Schema.Number),
  weight: Schema.NullOr(Schema.Number),
  off_reason: TextOrNull.annotations({ description: "The reason why this instance cannot call the route, or null." }),
  margins: Schema.Array(MarginRecord),
  loss: Schema.Boolean.annotations({ description: "Whether any price is below its cost." })
}).annotations({ identifier: "ServedRoute" })
export type ServedRoute = typeof ServedRoute.Type

type Facts = Omit<ServedRoute, keyof RouteRecord>

const absentFacts: Facts = { surface: null, preference: null, weight: null, off_reason: null, margins: [], loss: false }

interface CatalogRoute {
  readonly identity: Pick<RouteRecord, "id" | "model" | "provider">
  readonly facts: Facts
}

export type CatalogRoutes = ReadonlyMap<string, CatalogRoute>

/** Returns the catalog's facts by route. Margins and losses are absent for sandbox routes, which have no price or cost. */
export const catalogRoutesOf = ({ saleStates }: Pick<CatalogSnapshot, "saleStates">, now: number): CatalogRoutes =>
  new Map(
    saleStates.flatMap((saleState) => {
      const { id: model, routes, surface } = modelRecord(saleStateAt(saleState, now))
      const callableRoutes = (saleState.callable?.routes ?? []).map(
        ({ id, preference, provider: { name: provider }, weight }) => {
          const facts: Facts = { ...absentFacts, surface, preference, weight }
          return [id, { identity: { id, model, provider }, facts }] as const
        }
      )
      const listedRoutes = routes.map(({ blocked, id, margins, preference, provider, weight }) => {
        const facts: Facts = { surface, preference, weight, off_reason: blocked, margins, loss: margins.some(isLoss) }
        return [id, { identity: { id, model, provider }, facts }] as const
      })
      return [...callableRoutes, ...listedRoutes]
    })
  )

/** Returns the routes of the catalog and of all instances, with their health. */
export const listServedRoutes = Effect.fnUntraced(function* (routes: CatalogRoutes) {
  const known = [...routes.values()].map(({ identity }) => identity)
  const health = yield* (yield* PublishedHealth).list
  const disabled = yield* (yield* RouteControls).disabled
  return routeRecords({ known, health, disabled }).map(
    (record): ServedRoute => ({ ...record, ...(routes.get(record.id)?.facts ?? absentFacts) })
  )
})

export const ServedModel = Schema.Struct({
  ...ModelRecord.pick("id", "surface", "callable", "sandboxed", "reason").fields,
  context_length: Schema.NullOr(Schema.Number).annotations({ description: "Tokens, for chat models." }),
  capabilities: Schema.Array(Schema.String),
  prices: Schema.Array(MarginRecord).annotations({
    description:
      "Each listed price with the lowest cost of the routes that can be called. If none can, of all routes. A chat model's prompt and completion are first."
  }),
  lowest_margin_pct: Schema.NullOr(Schema.Number).annotations({
    description: "The lowest margin of the routes that `prices` compares. Null if no cost is known."
  }),
  loss: Schema.Boolean.annotations({ description: "Whether any of these routes costs more than a price." }),
  routes: Schema.Array(ServedRoute)
}).annotations({ identifier: "ServedModel" })
export type ServedModel = typeof ServedModel.Type

/** Returns each price once, with the margin of the route that has the lowest cost. */
const cheapest = (margins: ReadonlyArray<MarginRecord>): ReadonlyArray<MarginRecord> => {
  const byUnit = new Map<string, MarginRecord>()
  for (const margin of margins) {
    const { cost_usd: lowest = null } = byUnit.get(margin.unit) ?? {}
    const isCheaper = margin.cost_usd !== null && (lowest === null || margin.cost_usd < lowest)
    if (!byUnit.has(margin.unit) || isCheaper) byUnit.set(margin.unit, margin)
  }
  return [...byUnit.values()]
}

const mainChatUnits: ReadonlySet<string> = new Set(["prompt per 1M", "completion per 1M"])

/** Puts the prices of a chat model first that summarize it. */
const mainFirst = (prices: ReadonlyArray<MarginRecord>): ReadonlyArray<MarginRecord> => {
  const [others, main] = Arr.partition(prices, ({ unit }) => mainChatUnits.has(unit))
  return [...main, ...others]
}

const servedModel = (state: SaleState, routes: ReadonlyArray<ServedRoute>): ServedModel => {
  const { callable, id, reason, routes: listed, sandboxed, surface } = modelRecord(state)
  const open = listed.filter(({ blocked }) => blocked === null)
  const margins = (open.length > 0 ? open : listed).flatMap((route) => route.margins)
  const percents = margins.flatMap(({ margin_pct }) => margin_pct ?? [])
  const { capabilities, context_length = null } = listModel(state.callable ?? state.model)
  return {
    id,
    surface,
    callable,
    sandboxed,
    reason,
    context_length,
    capabilities,
    prices: mainFirst(cheapest(margins)),
    lowest_margin_pct: percents.length === 0 ? null : Math.min(...percents),
    loss: margins.some(isLoss),
    routes
  }
}

/** Returns the models of the catalog in its order, at the prices of `now` in Unix milliseconds. */
export const servedModels = (
  { saleStates }: Pick<CatalogSnapshot, "saleStates">,
  routes: ReadonlyArray<ServedRoute>,
  now: number
): ReadonlyArray<ServedModel> => {
  const byModel = Arr.groupBy(routes, ({ model }) => model)
  return saleStates.map((state) => servedModel(saleStateAt(state, now), byModel[state.model.id] ?? []))
}

/** The fields that members of an organization may see. */
export const MemberModel = Schema.Struct({
  ...ServedModel.pick("id", "surface", "context_length", "capabilities").fields,
  prices: Schema.Array(MarginRecord.pick("unit", "price_usd"))
}).annotations({ identifier: "MemberModel" })

/** Returns the model without costs, because the units of margins depend on them. */
const withoutCosts = (model: Model): Model => {
  switch (model.surface) {
    case "chat":
      return { ...model, routes: model.routes.map((route) => ({ ...route, cost: undefined })) }
    case "image":
      return { ...model, routes: model.routes.map((route) => ({ ...route, cost: new Map() })) }
    case "video":
      return { ...model, routes: model.routes.map((route) => ({ ...route, cost: undefined })) }
  }
}

/** Returns the callable models at the prices of an organization with a discount in percent. */
export const callableModels = (
  { saleStates }: Pick<CatalogSnapshot, "saleStates">,
  discountPercent: number,
  now: number
): ReadonlyArray<ServedModel> =>
  saleStates.flatMap((listed) => {
    if (listed.callable === undefined) return []
    const state = saleStateAt(listed, now)
    return servedModel({ ...state, model: withoutCosts(discountModel(state.model, discountPercent)) }, [])
  })

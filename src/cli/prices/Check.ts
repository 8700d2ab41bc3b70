import { Effect } from "effect"
import type { Model, Surface } from "../../domain/Model.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import type { Entries } from "../../services/catalog/CatalogRules.ts"
import type { Offer } from "../../services/catalog/Offer.ts"
import type { Margin } from "../../services/catalog/Surface.ts"
import { onModel } from "../../services/catalog/Surfaces.ts"
import { compare, type Feed, type FeedReport } from "./Feed.ts"

export interface CheckedRoute {
  readonly id: string
  readonly provider: string
  readonly preference: number
  readonly weight: number
  readonly blocked: string | undefined
  /** Empty without a cost in the catalog. */
  readonly margins: ReadonlyArray<Margin>
}

export interface CheckedModel {
  readonly id: string
  readonly surface: Surface
  readonly callable: boolean
  readonly sandboxed: boolean
  readonly reason: string | undefined
  readonly routes: ReadonlyArray<CheckedRoute>
}

export interface CatalogReport {
  readonly models: ReadonlyArray<CheckedModel>
  /** One line for every price below its cost, in the catalog or the feed. */
  readonly losses: ReadonlyArray<string>
  readonly feed: FeedReport | undefined
}

const checkedRoutes = (all: Model, blocked: Offer["blocked"]): ReadonlyArray<CheckedRoute> =>
  onModel(all, (surface, model, routes) =>
    routes.map((route) => ({
      id: route.id,
      provider: route.provider.name,
      preference: route.preference,
      weight: route.weight,
      blocked: blocked.get(route.id),
      margins: surface.margins(model, route)
    }))
  )

const checkedModel = ({ blocked, callable, model, reason, sandboxed }: Offer): CheckedModel => ({
  id: model.id,
  surface: model.surface,
  callable: callable !== undefined,
  sandboxed,
  reason,
  routes: checkedRoutes(model, blocked)
})

const ownCaps = ({ models }: Entries): ReadonlyMap<string, number> =>
  new Map(
    models.flatMap(({ entry }) =>
      entry.surface === "chat" && entry.max_output !== undefined ? [[entry.id, entry.max_output]] : []
    )
  )

/** Checks a catalog as a start would, and every route, callable or not, for prices below cost. */
export const check = Effect.fn("Catalog.check")(function* (options: CatalogOptions, feed?: Feed) {
  const { all, entries } = yield* readOffers(options)
  const models = all.map(checkedModel)
  const losses = models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins }) =>
      margins
        .filter(({ price, cost }) => price < cost)
        .map(({ unit }) => `${id}: the price of ${unit} is below what the provider charges`)
    )
  )
  const sold = all.map(({ model }) => model)
  const compared = feed === undefined ? undefined : yield* compare(sold, ownCaps(entries), feed)
  const report: CatalogReport = { models, losses: [...losses, ...(compared?.losses ?? [])], feed: compared }
  return report
})

import { Effect } from "effect"
import type { ChatModel, ChatPricing, Model, RouteBase, Surface, VideoModel, VideoPricing } from "../../domain/Model.ts"
import { ratesAt } from "../../domain/Pricing.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import type { Offer } from "../../services/catalog/Offer.ts"
import type { Entries } from "../../services/catalog/Rules.ts"
import { compare, type Feed, type FeedReport } from "./Feed.ts"

/** What the customer pays against what the provider charges, in nano-USD of one unit. */
export interface Margin {
  /** The unit, e.g. `prompt per 1M`, `cached prompt per 1M above 200000`, `1K image`, `8 s clip`. */
  readonly unit: string
  readonly price: bigint
  readonly cost: bigint
}

export interface CheckedRoute {
  readonly id: string
  readonly provider: string
  readonly preference: number
  readonly weight: number
  /** Why it cannot be called; undefined where it can. */
  readonly blocked: string | undefined
  /** Empty where the catalog does not say what the provider charges. */
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
  /** One line for every price below its cost, or below what the feed says that it costs. Empty: the catalog is good. */
  readonly losses: ReadonlyArray<string>
  readonly feed: FeedReport | undefined
}

/** Whole tiers are compared at the prompt sizes where either side changes its prices. */
const chatMargins = (pricing: ChatPricing, cost: ChatPricing): ReadonlyArray<Margin> => {
  const marks = new Set([0, pricing.longContext?.above ?? 0, cost.longContext?.above ?? 0])
  return [...marks].flatMap((mark) => {
    const price = ratesAt(pricing, mark + 1)
    const paid = ratesAt(cost, mark + 1)
    const unit = (name: string) => `${name} per 1M${mark === 0 ? "" : ` above ${mark}`}`
    return [
      { unit: unit("prompt"), price: price.prompt, cost: paid.prompt },
      { unit: unit("cached prompt"), price: price.cachedPrompt, cost: paid.cachedPrompt },
      { unit: unit("cache write"), price: price.cacheWrite, cost: paid.cacheWrite },
      { unit: unit("completion"), price: price.completion, cost: paid.completion }
    ]
  })
}

const clip = ({ per, price }: VideoPricing, seconds: number): bigint =>
  per === "second" ? price * BigInt(seconds) : price

const videoMargins = ({ pricing, seconds }: VideoModel, route: VideoModel["routes"][number]): ReadonlyArray<Margin> => {
  const { cost } = route
  if (cost === undefined) return []
  return seconds.allowed
    .filter((length) => route.seconds.includes(length))
    .map((length) => ({ unit: `${length} s clip`, price: clip(pricing, length), cost: clip(cost, length) }))
}

const chatRouteMargins = ({ pricing }: ChatModel, { cost }: ChatModel["routes"][number]): ReadonlyArray<Margin> =>
  cost === undefined ? [] : chatMargins(pricing, cost)

const checkedRoutes = (model: Model, blocked: Offer["blocked"]): ReadonlyArray<CheckedRoute> => {
  const route = ({ id, preference, provider, weight }: RouteBase, margins: ReadonlyArray<Margin>): CheckedRoute => ({
    id,
    provider: provider.name,
    preference,
    weight,
    blocked: blocked.get(id),
    margins
  })
  if (model.surface === "chat") return model.routes.map((it) => route(it, chatRouteMargins(model, it)))
  if (model.surface === "video") return model.routes.map((it) => route(it, videoMargins(model, it)))
  return model.routes.map((it) => {
    const margins = model.variants.flatMap(({ resolution, price }) => {
      const cost = it.cost.get(resolution)
      return cost === undefined ? [] : [{ unit: `${resolution} image`, price, cost }]
    })
    return route(it, margins)
  })
}

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

/**
 * Judges a catalog as a start would, and looks for prices below cost on every route, callable or not; with a price
 * feed, also for what differs from it.
 */
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

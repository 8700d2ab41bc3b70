import { Array as Arr, Clock, Effect, Either, Order, Predicate } from "effect"
import type {
  ChatModel,
  ImageModel,
  ImageRoute,
  ImageVariant,
  Model,
  Route,
  RouteBase,
  VideoModel,
  VideoRoute
} from "../../domain/Model.ts"
import { toUsdText } from "../../domain/Money.ts"
import { discountModel, ratesAt } from "../../domain/Pricing.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { CommandFailed } from "../../ExitCode.ts"
import {
  discountLossesOf,
  futureLossesOf,
  type Loss,
  lossesOf,
  lossText,
  type ModelRecord,
  modelRecord,
  summarizeLosses
} from "../../services/admin/CatalogRecord.ts"
import { type CatalogOptions, readSaleStates } from "../../services/catalog/Catalog.ts"
import { markupOf } from "../../services/catalog/CatalogEntries.ts"
import { keyOf, type Path } from "../../services/catalog/CatalogSource.ts"
import { findExpiredMarkups } from "../../services/catalog/Markup.ts"
import { findExpiredDates } from "../../services/catalog/PriceLists.ts"
import { saleStateAt } from "../../services/catalog/SaleState.ts"
import { type Feed, type FeedModel, findEntry, priceAbove, readModel, tokenPrices, vendors, vendorsOf } from "./Feed.ts"

interface Drift {
  readonly model: string
  /** Null if the value belongs to the model and not to one route. */
  readonly route: string | null
  readonly entry: string
  readonly what: string
  /** Bigints are in nano-USD. Null if only the feed has a value. */
  readonly catalog: bigint | number | null
  /** For a retirement, a day such as 2026-07-21. */
  readonly feed: bigint | number | string
}

export interface FeedReport {
  readonly file: string
  /** The number of entries in the feed. */
  readonly entries: number
  readonly drifts: ReadonlyArray<Drift>
  /** Models that the feed lacks. */
  readonly unmatched: ReadonlyArray<string>
}

type CheckedModel = ModelRecord & {
  /** The markup on the model's prices, in percent. */
  readonly markup_pct: number
}

export interface CatalogReport {
  /** A route has margins only if the catalog states its cost. The prices include the markup, and the discount if any. */
  readonly models: ReadonlyArray<CheckedModel>
  /** In percent. */
  readonly discount: number
  /** One line for every price that is below the cost in the catalog or the price in the feed. */
  readonly losses: ReadonlyArray<string>
  /** Valid entries that are probably mistakes or could be shorter. */
  readonly warnings: ReadonlyArray<string>
  /** Those `warnings` that report a price which seems to be per token or per search. */
  readonly unitPrices: ReadonlyArray<string>
  /** `losses` and `warnings` with one line for each route, for people. */
  readonly summary: { readonly losses: ReadonlyArray<string>; readonly warnings: ReadonlyArray<string> }
  readonly feed: FeedReport | undefined
}

/** One price in the catalog and in the feed, in nano-USD per unit. */
interface Row {
  /** Such as `prompt per 1M`. */
  readonly unit: string
  readonly price: bigint
  /** The vendor's list price, if the catalog has one. */
  readonly official: bigint | undefined
  readonly cost: bigint | undefined
  readonly feed: bigint
}

/** Compares at each prompt length above which the catalog or the feed has another price. */
const chatRows = (model: ChatModel, route: Route | undefined, feedPrice: FeedModel): ReadonlyArray<Row> => {
  const { official, pricing } = model
  const { capabilities = model.capabilities, cost } = route ?? {}
  const longContexts = [pricing.longContext, cost?.longContext].flatMap((tier) => tier?.above ?? [])
  const thresholds = new Set([0, ...longContexts, ...feedPrice.rates.map(({ above }) => above)])
  const tokens = [...thresholds].flatMap((threshold) => {
    const price = ratesAt(pricing, threshold + 1)
    const costRates = cost && ratesAt(cost, threshold + 1)
    return tokenPrices.flatMap(({ part, unit: name }): ReadonlyArray<Row> => {
      const feed = priceAbove(feedPrice, threshold, part)
      if (feed === undefined) return []
      const unit = `${name} per 1M${threshold === 0 ? "" : ` above ${threshold}`}`
      const listed = threshold === 0 && (part === "prompt" || part === "completion") ? official?.[part] : undefined
      return [{ unit, price: price[part], official: listed, cost: costRates?.[part], feed }]
    })
  })
  const { webSearch: feed } = feedPrice
  if (feed === undefined || !capabilities.has("web_search")) return tokens
  const search = { unit: "1000 web searches", price: pricing.webSearch ?? 0n, cost: cost && (cost.webSearch ?? 0n) }
  return [...tokens, { ...search, official: undefined, feed }]
}

/** Compares with the price of the smallest image, because the feed has no sizes. */
const imageRows = ({ variants }: ImageModel, route: ImageRoute | undefined, { perImage: feed }: FeedModel) => {
  const byResolution = Order.mapInput(Order.string, ({ resolution }: ImageVariant) => resolution)
  const { official, price, resolution } = Arr.min(variants, byResolution)
  return feed === undefined
    ? []
    : [{ unit: `${resolution} image`, price, official, cost: route?.cost.get(resolution), feed }]
}

/** Compares the price of the longest clip: a flat price per clip is most likely below the feed's price per second there. */
const videoRows = (model: VideoModel, route: VideoRoute | undefined, { perSecond }: FeedModel): ReadonlyArray<Row> => {
  if (perSecond === undefined) return []
  const { official, pricing } = model
  const length = Math.max(...(route?.seconds ?? model.seconds.allowed))
  return [
    {
      unit: `${length} s clip`,
      price: clipPrice(pricing, length),
      official: official && clipPrice({ ...pricing, price: official }, length),
      cost: route?.cost && clipPrice(route.cost, length),
      feed: perSecond * BigInt(length)
    }
  ]
}

/** An entry of the feed for one of the model's routes. `route` is null if no route matches and the entry has the model's id. */
interface Match {
  readonly route: string | null
  readonly entry: string
  readonly feedPrice: FeedModel
}

const rowsOf = (model: Model, { feedPrice, route: id }: Match): ReadonlyArray<Row> => {
  const find = <R extends RouteBase>(routes: ReadonlyArray<R>) => routes.find((route) => route.id === id)
  if (model.surface === "image") return imageRows(model, find(model.routes), feedPrice)
  if (model.surface === "video") return videoRows(model, find(model.routes), feedPrice)
  return chatRows(model, find(model.routes), feedPrice)
}

const findMatches = (model: Model, feed: Feed): Either.Either<ReadonlyArray<Match>, CommandFailed> => {
  const routeMatches = model.routes.flatMap((route) => {
    const found = findEntry(feed, vendorsOf(route.provider), route.model)
    return found === undefined ? [] : [{ found, route: route.id }]
  })
  const modelMatch = findEntry(feed, vendors, model.id)
  const all = routeMatches.length > 0 || modelMatch === undefined ? routeMatches : [{ found: modelMatch, route: null }]
  return Either.all(
    all.map(({ found, route }) =>
      Either.mapBoth(readModel(found), {
        onLeft: (problem) => new CommandFailed({ message: `${feed.file}: ${found.entry}.${problem}` }),
        onRight: (feedPrice) => ({ route, entry: found.entry, feedPrice })
      })
    )
  )
}

type Difference = readonly [what: string, catalog: Drift["catalog"] | undefined, feed: Drift["feed"] | undefined]

const compareLimits = (model: Model, { contextLengths, maxOutput }: FeedModel): ReadonlyArray<Difference> => {
  if (model.surface !== "chat") return []
  const { contextLength, ownMaxOutput, maxOutput: ownOutput } = model
  const [context = Number.POSITIVE_INFINITY] = contextLengths
  // In the feed, an output cap as large as the context window means unknown. A lower cap of the model's family is deliberate.
  const isCap = maxOutput !== undefined && maxOutput < context && (ownMaxOutput !== undefined || ownOutput > maxOutput)
  return [
    ["context_length", contextLength, contextLengths.includes(contextLength) ? undefined : contextLengths[0]],
    ["max_output", ownMaxOutput ?? ownOutput, isCap ? maxOutput : undefined]
  ]
}

/**
 * Compares the feed with the costs of all routes, but with list prices, context length and output cap only for the first
 * match.
 */
const compare = Effect.fn("Catalog.compareFeed")(function* (models: ReadonlyArray<Model>, feed: Feed) {
  const drifts: Array<Drift> = []
  const losses: Array<Loss> = []
  const unmatched: Array<string> = []
  for (const model of models) {
    const matches = yield* findMatches(model, feed)
    if (matches.length === 0) unmatched.push(model.id)
    for (const [index, match] of matches.entries()) {
      const { entry, feedPrice, route } = match
      const rows = rowsOf(model, match)
      // A catalog that states neither official prices nor costs is assumed to sell at list prices.
      const isList = rows.every(({ cost, official }) => cost === undefined && official === undefined)
      const add = (at: string | null, differences: ReadonlyArray<Difference>) => {
        for (const [what, catalog, stated] of differences) {
          if (catalog === undefined || stated === undefined || catalog === stated) continue
          drifts.push({ model: model.id, route: at, entry, what, catalog, feed: stated })
        }
      }
      add(route, [
        ...rows.map((row): Difference => [`cost of ${row.unit}`, row.cost, row.feed]),
        ["retirement", null, feedPrice.retirement]
      ])
      if (index === 0) {
        add(null, [
          ...rows.map((row): Difference => [`list price of ${row.unit}`, isList ? row.price : row.official, row.feed]),
          ...compareLimits(model, feedPrice)
        ])
      }
      if (route === null) continue
      for (const { unit } of rows.filter((row) => row.price < row.feed)) {
        losses.push({ route, unit, limit: `the feed's price of ${entry}`, condition: "" })
      }
    }
  }
  const report: FeedReport = { file: feed.file, entries: feed.entries.size, drifts, unmatched }
  return { losses, report }
})

/** The suffixes of price keys. `min` is in nano-USD: no vendor sells below it, so a lower price has the wrong unit. */
const units = [
  { suffix: "_per_1m_usd", min: 1_000_000n, count: 1_000_000n, one: "token", all: "million" },
  { suffix: "_per_1k_usd", min: 100_000_000n, count: 1_000n, one: "search", all: "thousand" }
] as const

/** Returns a warning for each price or cost that seems to be per token or per search. Includes future prices. */
const findUnitPrices = (value: unknown, path: Path = []): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => findUnitPrices(item, [...path, index]))
  if (Predicate.isReadonlyRecord(value)) {
    return Object.entries(value).flatMap(([key, inner]) => findUnitPrices(inner, [...path, key]))
  }
  const unit = units.find(({ suffix }) => String(path.at(-1)).endsWith(suffix))
  if (typeof value !== "bigint" || unit === undefined || value === 0n || value >= unit.min) return []
  const [price, scaled] = [toUsdText(value), toUsdText(value * unit.count)]
  return [`${keyOf(path)} is ${price}, which looks like a price per ${unit.one}. Per ${unit.all} it would be ${scaled}`]
}

const withCosts = (model: ModelRecord): ModelRecord => ({
  ...model,
  routes: model.routes.map((route) => ({
    ...route,
    margins: route.margins.filter(({ cost_usd }) => cost_usd !== null)
  }))
})

interface CheckOptions {
  readonly feed?: Feed | undefined
  /** In percent. A loss that only this discount causes is a warning. */
  readonly discount?: number | undefined
}

/** Checks a catalog like the start of a gateway. Also reports prices below cost, even of routes that cannot be called. */
export const check = Effect.fn("Catalog.check")(function* (
  options: CatalogOptions,
  { discount = 0, feed }: CheckOptions = {}
) {
  const { all, entries } = yield* readSaleStates(options)
  const now = yield* Clock.currentTimeMillis
  const offers = all.map((offer) => saleStateAt(offer, now))
  const markups = new Map(entries.models.map(({ entry }) => [entry.id, markupOf(entries, entry, now)]))
  const models = offers.map((offer) => ({
    ...withCosts(modelRecord({ ...offer, model: discountModel(offer.model, discount) })),
    markup_pct: markups.get(offer.model.id) ?? 0
  }))
  const sold = offers.map(({ model }) => model)
  const compared = feed === undefined ? undefined : yield* compare(sold, feed)
  const unitPrices = entries.models.flatMap(({ entry }) => findUnitPrices(entry).map((note) => `${entry.id}: ${note}`))
  const losses = [...lossesOf(offers.map(modelRecord)), ...futureLossesOf(offers), ...(compared?.losses ?? [])]
  const discountLosses = discountLossesOf(offers, discount > 0 ? [discount] : [])
  const mistakes = [
    ...unitPrices,
    ...entries.models.flatMap(({ entry }) => findExpiredDates(entry, now)),
    ...findExpiredMarkups(entries.markups, now)
  ]
  const report: CatalogReport = {
    models,
    discount,
    losses: losses.map(lossText),
    warnings: [...mistakes, ...discountLosses.map(lossText)],
    unitPrices,
    summary: { losses: summarizeLosses(losses), warnings: [...mistakes, ...summarizeLosses(discountLosses)] },
    feed: compared?.report
  }
  return report
})

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
import { ratesAt } from "../../domain/Pricing.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { laterLossesOf, lossesOf, type ModelRecord, modelRecord } from "../../services/admin/CatalogRecord.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import { keyOf, type Path } from "../../services/catalog/CatalogSource.ts"
import { findPast } from "../../services/catalog/DatedPrices.ts"
import { offerAt } from "../../services/catalog/Offer.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { type Feed, type FeedModel, findEntry, priceAbove, readModel, tokenPrices, vendors, vendorsOf } from "./Feed.ts"

interface Drift {
  readonly model: string
  /** Null for what the model states for all its routes. */
  readonly route: string | null
  readonly entry: string
  readonly what: string
  /** Bigints are in nano-USD. Null if only the feed states it. */
  readonly catalog: bigint | number | null
  /** A day such as 2026-07-21 for a retirement. */
  readonly feed: bigint | number | string
}

export interface FeedReport {
  readonly file: string
  /** How many entries the feed has. */
  readonly entries: number
  readonly drifts: ReadonlyArray<Drift>
  /** Models that the feed lacks. */
  readonly unmatched: ReadonlyArray<string>
}

export interface CatalogReport {
  /** With margins where the catalog has a cost. */
  readonly models: ReadonlyArray<ModelRecord>
  /** One line for every price below its cost, in the catalog or the feed. */
  readonly losses: ReadonlyArray<string>
  /** Valid entries that are probably mistakes or could be shorter. */
  readonly warnings: ReadonlyArray<string>
  /** The warnings about units of prices. */
  readonly unitPrices: ReadonlyArray<string>
  readonly feed: FeedReport | undefined
}

/** One price in the catalog and in the feed, in nano-USD per unit. */
interface Row {
  /** As in `Margin`. */
  readonly unit: string
  readonly price: bigint
  /** The vendor's list price, if the catalog states it. */
  readonly official: bigint | undefined
  readonly cost: bigint | undefined
  readonly feed: bigint
}

/** Compares at the prompt sizes where the catalog or the feed changes its prices. */
const chatRows = (model: ChatModel, route: Route | undefined, fed: FeedModel): ReadonlyArray<Row> => {
  const { official, pricing } = model
  const { capabilities = model.capabilities, cost } = route ?? {}
  const longContexts = [pricing.longContext, cost?.longContext].flatMap((tier) => tier?.above ?? [])
  const marks = new Set([0, ...longContexts, ...fed.rates.map(({ above }) => above)])
  const tokens = [...marks].flatMap((mark) => {
    const price = ratesAt(pricing, mark + 1)
    const paid = cost && ratesAt(cost, mark + 1)
    return tokenPrices.flatMap(({ part, unit: name }): ReadonlyArray<Row> => {
      const feed = priceAbove(fed, mark, part)
      if (feed === undefined) return []
      const unit = `${name} per 1M${mark === 0 ? "" : ` above ${mark}`}`
      const listed = mark === 0 && (part === "prompt" || part === "completion") ? official?.[part] : undefined
      return [{ unit, price: price[part], official: listed, cost: paid?.[part], feed }]
    })
  })
  const { webSearch: feed } = fed
  if (feed === undefined || !capabilities.has("web_search")) return tokens
  const search = { unit: "1000 web searches", price: pricing.webSearch ?? 0n, cost: cost && (cost.webSearch ?? 0n) }
  return [...tokens, { ...search, official: undefined, feed }]
}

/** The feed names no size: its price is compared with that of the smallest. */
const imageRows = ({ variants }: ImageModel, route: ImageRoute | undefined, { perImage: feed }: FeedModel) => {
  const byResolution = Order.mapInput(Order.string, ({ resolution }: ImageVariant) => resolution)
  const { official, price, resolution } = Arr.min(variants, byResolution)
  return feed === undefined
    ? []
    : [{ unit: `${resolution} image`, price, official, cost: route?.cost.get(resolution), feed }]
}

/** Where clips have a flat price, the longest one costs most by the feed. */
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

/** A model of the feed that one of the model's routes sells, or that has the model's own id. */
interface Match {
  readonly route: string | null
  readonly entry: string
  readonly fed: FeedModel
}

const rowsOf = (model: Model, { fed, route: id }: Match): ReadonlyArray<Row> => {
  const find = <R extends RouteBase>(routes: ReadonlyArray<R>) => routes.find((route) => route.id === id)
  if (model.surface === "image") return imageRows(model, find(model.routes), fed)
  if (model.surface === "video") return videoRows(model, find(model.routes), fed)
  return chatRows(model, find(model.routes), fed)
}

const findMatches = (model: Model, feed: Feed): Either.Either<ReadonlyArray<Match>, CommandFailed> => {
  const ofRoutes = model.routes.flatMap((route) => {
    const found = findEntry(feed, vendorsOf(route.provider), route.model)
    return found === undefined ? [] : [{ found, route: route.id }]
  })
  const ofModel = findEntry(feed, vendors, model.id)
  const all = ofRoutes.length > 0 || ofModel === undefined ? ofRoutes : [{ found: ofModel, route: null }]
  return Either.all(
    all.map(({ found, route }) =>
      Either.mapBoth(readModel(found), {
        onLeft: (problem) => new CommandFailed({ message: `${feed.file}: ${found.entry}.${problem}` }),
        onRight: (fed) => ({ route, entry: found.entry, fed })
      })
    )
  )
}

type Difference = readonly [what: string, catalog: Drift["catalog"] | undefined, feed: Drift["feed"] | undefined]

const limits = (model: Model, { contextLengths, maxOutput }: FeedModel): ReadonlyArray<Difference> => {
  if (model.surface !== "chat") return []
  const { contextLength, ownMaxOutput, maxOutput: ownOutput } = model
  const [context = Number.POSITIVE_INFINITY] = contextLengths
  // A cap as large as the window is unknown to the feed; a lower one of the family is a choice.
  const isCap = maxOutput !== undefined && maxOutput < context && (ownMaxOutput !== undefined || ownOutput > maxOutput)
  return [
    ["context_length", contextLength, contextLengths.includes(contextLength) ? undefined : contextLengths[0]],
    ["max_output", ownMaxOutput ?? ownOutput, isCap ? maxOutput : undefined]
  ]
}

/** Compares the costs of each route; list prices, context length and output cap with the first that the feed has. */
const compare = Effect.fn("Catalog.compareFeed")(function* (models: ReadonlyArray<Model>, feed: Feed) {
  const drifts: Array<Drift> = []
  const losses: Array<string> = []
  const unmatched: Array<string> = []
  for (const model of models) {
    const matches = yield* findMatches(model, feed)
    if (matches.length === 0) unmatched.push(model.id)
    for (const [index, match] of matches.entries()) {
      const { entry, fed, route } = match
      const rows = rowsOf(model, match)
      // Without an official price and a cost, the prices themselves are list prices.
      const isList = rows.every(({ cost, official }) => cost === undefined && official === undefined)
      const add = (at: string | null, differences: ReadonlyArray<Difference>) => {
        for (const [what, catalog, stated] of differences) {
          if (catalog === undefined || stated === undefined || catalog === stated) continue
          drifts.push({ model: model.id, route: at, entry, what, catalog, feed: stated })
        }
      }
      add(route, [
        ...rows.map((row): Difference => [`cost of ${row.unit}`, row.cost, row.feed]),
        ["retirement", null, fed.retirement]
      ])
      if (index === 0) {
        add(null, [
          ...rows.map((row): Difference => [`list price of ${row.unit}`, isList ? row.price : row.official, row.feed]),
          ...limits(model, fed)
        ])
      }
      const below = route === null ? [] : rows.filter((row) => row.price < row.feed)
      losses.push(...below.map(({ unit }) => `${route}: the price of ${unit} is below what the feed says of ${entry}`))
    }
  }
  const report: FeedReport = { file: feed.file, entries: feed.entries.size, drifts, unmatched }
  return { losses, report }
})

/** Keys with prices per many units. No vendor's price is below `least` (in nano-USD). */
const units = [
  { suffix: "_per_1m_usd", least: 1_000_000n, count: 1_000_000n, one: "token", all: "million" },
  { suffix: "_per_1k_usd", least: 100_000_000n, count: 1_000n, one: "search", all: "thousand" }
] as const

/** Finds prices and costs, dated ones too, that look like prices per token or per search. */
const findUnitPrices = (value: unknown, path: Path = []): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => findUnitPrices(item, [...path, index]))
  if (Predicate.isReadonlyRecord(value)) {
    return Object.entries(value).flatMap(([key, inner]) => findUnitPrices(inner, [...path, key]))
  }
  const unit = units.find(({ suffix }) => String(path.at(-1)).endsWith(suffix))
  if (typeof value !== "bigint" || unit === undefined || value === 0n || value >= unit.least) return []
  const [given, meant] = [toUsdText(value), toUsdText(value * unit.count)]
  return [`${keyOf(path)} is ${given}, which looks like a price per ${unit.one}: per ${unit.all} it would be ${meant}`]
}

const withCosts = (model: ModelRecord): ModelRecord => ({
  ...model,
  routes: model.routes.map((route) => ({
    ...route,
    margins: route.margins.filter(({ cost_usd }) => cost_usd !== null)
  }))
})

/** Checks a catalog as a start would, and every route, callable or not, for prices below cost. */
export const check = Effect.fn("Catalog.check")(function* (options: CatalogOptions, feed?: Feed) {
  const { all, entries } = yield* readOffers(options)
  const now = yield* Clock.currentTimeMillis
  const offers = all.map((offer) => offerAt(offer, now))
  const models = offers.map((offer) => withCosts(modelRecord(offer)))
  const sold = offers.map(({ model }) => model)
  const compared = feed === undefined ? undefined : yield* compare(sold, feed)
  const unitPrices = entries.models.flatMap(({ entry }) => findUnitPrices(entry).map((note) => `${entry.id}: ${note}`))
  const report: CatalogReport = {
    models,
    losses: [...lossesOf(models), ...laterLossesOf(offers), ...(compared?.losses ?? [])],
    warnings: [...unitPrices, ...entries.models.flatMap(({ entry }) => findPast(entry, now))],
    unitPrices,
    feed: compared?.report
  }
  return report
})

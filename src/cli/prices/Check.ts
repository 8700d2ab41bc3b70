import { Array as Arr, Clock, Effect, Either } from "effect"
import type { ChatModel, ChatPricing, ImageModel, Model, RouteBase, VideoModel } from "../../domain/Model.ts"
import { ratesAt } from "../../domain/Pricing.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { laterLossesOf, lossesOf, type ModelRecord, modelRecord } from "../../services/admin/CatalogRecord.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import { findPast } from "../../services/catalog/DatedPrices.ts"
import { offerAt } from "../../services/catalog/Offer.ts"
import { findUnitPrices } from "../../services/catalog/PriceUnits.ts"
import { CommandFailed } from "../CommandFailed.ts"
import {
  type Feed,
  type FeedEntry,
  type FeedModel,
  findEntry,
  priceAt,
  tokenPrices,
  vendors,
  vendorsOf
} from "./Feed.ts"

interface Drift {
  readonly model: string
  /** Null for what the model states for all its routes. */
  readonly route: string | null
  readonly entry: string
  readonly what: string
  /** Bigints are in nano-USD. */
  readonly catalog: bigint | number
  readonly feed: bigint | number
}

interface Retired {
  readonly model: string
  readonly route: string | null
  readonly entry: string | null
  /** `certain` and `announced` by a date of the feed, `possible` because the feed lacks the model. */
  readonly retired: "certain" | "announced" | "possible"
  readonly on: string | null
  readonly why: string
}

export interface FeedReport {
  readonly file: string
  /** How many entries the feed has. */
  readonly entries: number
  readonly drifts: ReadonlyArray<Drift>
  readonly unmatched: ReadonlyArray<string>
  readonly retired: ReadonlyArray<Retired>
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

interface Row {
  readonly unit: string
  readonly price: bigint
  readonly cost: bigint | undefined
  readonly feed: bigint
}

type ChatRoute = ChatModel["routes"][number]

/** Without its own price a cache write costs the prompt price, more than at hosts that hardly charge it. */
const isUnstatedWrite = (cost: ChatPricing, part: string): boolean =>
  (part === "cacheWrite" || part === "cacheWriteHour") &&
  cost[part] === undefined &&
  cost.longContext?.[part] === undefined

const searchRows = (
  { capabilities, pricing }: ChatModel,
  { capabilities: own = capabilities, cost }: ChatRoute,
  { webSearch: feed }: FeedModel
): ReadonlyArray<Row> =>
  feed === undefined || !own.has("web_search")
    ? []
    : [{ unit: "1000 web searches", price: pricing.webSearch ?? 0n, cost: cost && (cost.webSearch ?? 0n), feed }]

const tokenRows = ({ pricing }: ChatModel, { cost }: ChatRoute, { tiers }: FeedModel): ReadonlyArray<Row> => {
  const marks = [0, pricing.longContext?.above ?? 0, cost?.longContext?.above ?? 0, ...tiers.map(({ above }) => above)]
  return [...new Set(marks)].flatMap((mark) => {
    const price = ratesAt(pricing, mark + 1)
    const paid = cost && ratesAt(cost, mark + 1)
    return tokenPrices.flatMap(({ part, unit: name }) => {
      const feed = priceAt(tiers, mark + 1, part)
      if (feed === undefined || (cost && paid && isUnstatedWrite(cost, part) && feed <= paid[part])) return []
      const unit = `${name} per 1M${mark === 0 ? "" : ` above ${mark}`}`
      return [{ unit, price: price[part], cost: paid?.[part], feed }]
    })
  })
}

const smallest = ({ variants }: ImageModel) =>
  variants.toSorted((a, b) => a.resolution.localeCompare(b.resolution))[0] ?? variants[0]

const imageRows = (model: ImageModel, { cost }: ImageModel["routes"][number], { perImage: feed }: FeedModel) => {
  const { price, resolution } = smallest(model)
  return feed === undefined ? [] : [{ unit: `${resolution} image`, price, cost: cost.get(resolution), feed }]
}

const videoRows = (
  { pricing, seconds }: VideoModel,
  route: VideoModel["routes"][number],
  { perSecond: feed }: FeedModel
): ReadonlyArray<Row> => {
  const { cost } = route
  if (feed === undefined) return []
  if (pricing.per === "second" && cost?.per !== "video") {
    return [{ unit: "second of video", price: pricing.price, cost: cost?.price, feed }]
  }
  return seconds.allowed
    .filter((length) => route.seconds.includes(length))
    .map((length) => ({
      unit: `${length} s clip`,
      price: clipPrice(pricing, length),
      cost: cost && clipPrice(cost, length),
      feed: feed * BigInt(length)
    }))
}

type RouteRow = Row & { readonly route: string; readonly entry: string }

/** The prices of each route that the feed has. */
const rowsOf = (model: Model, found: ReadonlyMap<string, FeedModel>): ReadonlyArray<RouteRow> => {
  const collect = <R extends RouteBase>(
    routes: ReadonlyArray<R>,
    rows: (route: R, fed: FeedModel) => ReadonlyArray<Row>
  ) =>
    routes.flatMap((route) => {
      const fed = found.get(route.id)
      return fed === undefined ? [] : rows(route, fed).map((row) => ({ ...row, route: route.id, entry: fed.entry }))
    })
  if (model.surface === "image") return collect(model.routes, (route, fed) => imageRows(model, route, fed))
  if (model.surface === "video") return collect(model.routes, (route, fed) => videoRows(model, route, fed))
  return collect(model.routes, (route, fed) => [...tokenRows(model, route, fed), ...searchRows(model, route, fed)])
}

type Compare = (what: string, catalog: bigint | number | undefined, feed: bigint | number | undefined) => void

/** Without an official price and any cost, the price itself is compared. */
const compareModel = (model: Model, fed: FeedModel, hasCost: boolean, compareOne: Compare): void => {
  const comparePrice = (what: string, official: bigint | undefined, price: bigint, feed: bigint | undefined) =>
    compareOne(`list price of ${what}`, official ?? (hasCost ? undefined : price), feed)
  if (model.surface === "image") {
    const { official, price, resolution } = smallest(model)
    return comparePrice(`a ${resolution} image`, official, price, fed.perImage)
  }
  if (model.surface === "video") {
    const { official, pricing } = model
    return pricing.per === "second"
      ? comparePrice("a second of video", official, pricing.price, fed.perSecond)
      : undefined
  }
  const { contextLength, official, ownMaxOutput, pricing } = model
  const { contextLengths, maxOutput, tiers } = fed
  const [context = Number.POSITIVE_INFINITY] = contextLengths
  comparePrice("prompt per 1M", official?.prompt, pricing.prompt, tiers[0]?.prices.get("prompt"))
  comparePrice("completion per 1M", official?.completion, pricing.completion, tiers[0]?.prices.get("completion"))
  if (!contextLengths.includes(contextLength)) compareOne("context_length", contextLength, contextLengths[0])
  // A cap as large as the window is unknown to the feed; a lower one of the family is a choice.
  if (maxOutput !== undefined && maxOutput < context && (ownMaxOutput !== undefined || model.maxOutput > maxOutput)) {
    compareOne("max_output", ownMaxOutput ?? model.maxOutput, maxOutput)
  }
}

/** Such as `medium/1024-x-1024/gpt-image-1.5`. */
const sizedName = ({ model, options: { quality, size, image_size: imageSize } }: RouteBase): ReadonlyArray<string> => {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(String(size ?? imageSize)) ?? []
  return width === undefined || typeof quality !== "string" ? [] : [`${quality}/${width}-x-${height}/${model}`]
}

interface LookedUp {
  readonly model: Model
  readonly route: RouteBase | undefined
  readonly fed: FeedModel | undefined
}

const findRetirement = ({ fed, model, route }: LookedUp, today: string): ReadonlyArray<Retired> => {
  if (fed?.retirement === undefined) return []
  const [retired, why] =
    fed.retirement <= today
      ? (["certain", "the feed's date has passed"] as const)
      : (["announced", "the feed gives a date"] as const)
  return [{ model: model.id, route: route?.id ?? null, entry: fed.entry, retired, on: fed.retirement, why }]
}

/** A feed with fewer models of a provider says nothing about those that it lacks. */
const minSiblings = 3

const findUnlisted = (lookedUp: ReadonlyArray<LookedUp>): ReadonlyArray<Retired> => {
  const ofRoutes = lookedUp.filter(({ route }) => route !== undefined)
  const groups = Arr.groupBy(ofRoutes, ({ model, route }) => `${route?.provider.name} ${model.surface}`)
  return Object.values(groups).flatMap((siblings) => {
    const missing = siblings.filter(({ fed }) => fed === undefined)
    const found = siblings.length - missing.length
    if (found < minSiblings || found < 2 * missing.length) return []
    return missing.map(({ model, route }): Retired => {
      const why = `the feed has ${found} others of ${route?.provider.name}, but not this one`
      return { model: model.id, route: route?.id ?? null, entry: null, retired: "possible", on: null, why }
    })
  })
}

/** Compares costs, list prices, context length and output cap. */
const compare = Effect.fn("Catalog.compareFeed")(function* (models: ReadonlyArray<Model>, feed: Feed) {
  const drifts: Array<Drift> = []
  const losses: Array<string> = []
  const unmatched: Array<string> = []
  const lookedUp: Array<LookedUp> = []
  const read = (entry: FeedEntry | undefined) =>
    entry === undefined
      ? Effect.succeed(undefined)
      : Either.mapLeft(entry.read(), (problem) => new CommandFailed({ message: `${feed.file}: ${problem}` }))
  const compareAt =
    (model: Model, route: string | null, entry: string): Compare =>
    (what, catalog, charged) => {
      if (catalog === undefined || charged === undefined || catalog === charged) return
      drifts.push({ model: model.id, route, entry, what, catalog, feed: charged })
    }
  for (const model of models) {
    const found = new Map<string, FeedModel>()
    for (const route of model.routes) {
      const fed = yield* read(findEntry(feed, vendorsOf(route.provider), [...sizedName(route), route.model]))
      if (fed !== undefined) found.set(route.id, fed)
      lookedUp.push({ model, route, fed })
    }
    const rows = rowsOf(model, found)
    for (const { cost, entry, feed: charged, price, route, unit } of rows) {
      compareAt(model, route, entry)(`cost of ${unit}`, cost, charged)
      if (price < charged) losses.push(`${route}: the price of ${unit} is below what the feed says of ${entry}`)
    }
    const fed = found.values().next().value ?? (yield* read(findEntry(feed, vendors, [model.id])))
    if (fed === undefined) unmatched.push(model.id)
    else {
      if (found.size === 0) lookedUp.push({ model, route: undefined, fed })
      const hasCost = rows.some(({ cost }) => cost !== undefined)
      compareModel(model, fed, hasCost, compareAt(model, null, fed.entry))
    }
  }
  const retired = [...lookedUp.flatMap((one) => findRetirement(one, feed.today)), ...findUnlisted(lookedUp)]
  const report: FeedReport = { file: feed.file, entries: feed.entries.size, drifts, unmatched, retired }
  return { losses, report }
})

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
  const unitPrices = entries.models.flatMap(({ entry }) => findUnitPrices(entry))
  const report: CatalogReport = {
    models,
    losses: [...lossesOf(models), ...laterLossesOf(offers), ...(compared?.losses ?? [])],
    warnings: [...unitPrices, ...entries.models.flatMap(({ entry }) => findPast(entry, now))],
    unitPrices,
    feed: compared?.report
  }
  return report
})

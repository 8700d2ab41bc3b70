import type { ChatModel, ChatPricing, ImageModel, Model, RouteBase, VideoModel } from "../../domain/Model.ts"
import { ratesAt } from "../../domain/Pricing.ts"
import { clipPrice } from "../../domain/Video.ts"
import type { FeedModel, FeedTier } from "./FeedModel.ts"

interface Row {
  readonly unit: string
  readonly price: bigint
  readonly cost: bigint | undefined
  readonly fed: bigint
}

export interface Difference {
  readonly what: string
  readonly catalog: bigint | number
  readonly feed: bigint | number
}

const parts = [
  ["prompt", "prompt"],
  ["cachedPrompt", "cached prompt"],
  ["cacheWrite", "cache write"],
  ["cacheWriteHour", "one-hour cache write"],
  ["completion", "completion"]
] as const

/** A tier's missing cache prices are those of the tiers below. */
export const fedAt = (
  tiers: ReadonlyArray<FeedTier>,
  tokens: number,
  part: (typeof parts)[number][0]
): bigint | undefined => tiers.findLast((tier) => tier.above < tokens && tier[part] !== undefined)?.[part]

type ChatRoute = ChatModel["routes"][number]

/** Without its own price a cache write costs the prompt price, more than at hosts that hardly charge it. */
const isUnstatedWrite = (cost: ChatPricing, part: (typeof parts)[number][0]): boolean =>
  (part === "cacheWrite" || part === "cacheWriteHour") &&
  cost[part] === undefined &&
  cost.longContext?.[part] === undefined

const searchRows = (
  { capabilities, pricing }: ChatModel,
  { capabilities: own = capabilities, cost }: ChatRoute,
  { webSearch: fed }: FeedModel
): Array<Row> =>
  fed === undefined || !own.has("web_search")
    ? []
    : [{ unit: "1000 web searches", price: pricing.webSearch ?? 0n, cost: cost && (cost.webSearch ?? 0n), fed }]

const tokenRows = ({ pricing }: ChatModel, { cost }: ChatRoute, { tiers }: FeedModel): Array<Row> => {
  const marks = [0, pricing.longContext?.above ?? 0, cost?.longContext?.above ?? 0, ...tiers.map(({ above }) => above)]
  return [...new Set(marks)].flatMap((mark) => {
    const price = ratesAt(pricing, mark + 1)
    const paid = cost && ratesAt(cost, mark + 1)
    return parts.flatMap(([part, name]) => {
      const fed = fedAt(tiers, mark + 1, part)
      if (fed === undefined || (cost && paid && isUnstatedWrite(cost, part) && fed <= paid[part])) return []
      const unit = `${name} per 1M${mark === 0 ? "" : ` above ${mark}`}`
      return [{ unit, price: price[part], cost: paid?.[part], fed }]
    })
  })
}

const chatRows = (model: ChatModel, route: ChatRoute, fed: FeedModel): Array<Row> => [
  ...tokenRows(model, route, fed),
  ...searchRows(model, route, fed)
]

const smallest = ({ variants }: ImageModel) =>
  variants.toSorted((a, b) => a.resolution.localeCompare(b.resolution))[0] ?? variants[0]

const imageRows = (model: ImageModel, { cost }: ImageModel["routes"][number], { perImage }: FeedModel): Array<Row> => {
  const { price, resolution } = smallest(model)
  return perImage === undefined
    ? []
    : [{ unit: `${resolution} image`, price, cost: cost.get(resolution), fed: perImage }]
}

const videoRows = (model: VideoModel, route: VideoModel["routes"][number], { perSecond }: FeedModel): Array<Row> => {
  const { pricing } = model
  const { cost } = route
  if (perSecond === undefined) return []
  if (pricing.per === "second" && cost?.per !== "video") {
    return [{ unit: "second of video", price: pricing.price, cost: cost?.price, fed: perSecond }]
  }
  return model.seconds.allowed
    .filter((seconds) => route.seconds.includes(seconds))
    .map((seconds) => ({
      unit: `${seconds} s clip`,
      price: clipPrice(pricing, seconds),
      cost: cost && clipPrice(cost, seconds),
      fed: perSecond * BigInt(seconds)
    }))
}

export const routeRows = (
  model: Model,
  fedOf: (id: string) => FeedModel | undefined
): ReadonlyMap<string, ReadonlyArray<Row>> => {
  const rows = <R extends RouteBase>(routes: ReadonlyArray<R>, of: (route: R, fed: FeedModel) => Array<Row>) =>
    new Map(
      routes.flatMap((route) => {
        const fed = fedOf(route.id)
        return fed === undefined ? [] : [[route.id, of(route, fed)] as const]
      })
    )
  if (model.surface === "chat") return rows(model.routes, (route, fed) => chatRows(model, route, fed))
  if (model.surface === "image") return rows(model.routes, (route, fed) => imageRows(model, route, fed))
  return rows(model.routes, (route, fed) => videoRows(model, route, fed))
}

type Listed = readonly [what: string, listed: bigint | undefined, fed: bigint | undefined]

const listPricesOf = (model: Model, fed: FeedModel, orPrice: boolean): ReadonlyArray<Listed> => {
  const or = (official: bigint | undefined, price: bigint) => official ?? (orPrice ? price : undefined)
  if (model.surface === "chat") {
    const { official, pricing } = model
    return [
      ["list price of prompt per 1M", or(official?.prompt, pricing.prompt), fed.tiers[0]?.prompt],
      ["list price of completion per 1M", or(official?.completion, pricing.completion), fed.tiers[0]?.completion]
    ]
  }
  if (model.surface === "image") {
    const { official, price, resolution } = smallest(model)
    return [[`list price of a ${resolution} image`, or(official, price), fed.perImage]]
  }
  const { official, pricing } = model
  return pricing.per === "second"
    ? [["list price of a second of video", or(official, pricing.price), fed.perSecond]]
    : []
}

const limits = (model: ChatModel, fed: FeedModel, ownCap: number | undefined): ReadonlyArray<Difference> => {
  const { contextLengths, maxOutput } = fed
  const [context] = contextLengths
  const found: Array<Difference> = []
  if (context !== undefined && !contextLengths.includes(model.contextLength)) {
    found.push({ what: "context_length", catalog: model.contextLength, feed: context })
  }
  // A cap as large as the window is unknown to the feed; a lower one of the family is a choice.
  if (maxOutput === undefined || (context !== undefined && maxOutput >= context)) return found
  if (model.maxOutput > maxOutput || (ownCap !== undefined && ownCap !== maxOutput)) {
    found.push({ what: "max_output", catalog: ownCap ?? model.maxOutput, feed: maxOutput })
  }
  return found
}

interface Comparison {
  readonly compared: number
  readonly differences: ReadonlyArray<Difference>
}

/** `ownCap` is the model's own `max_output`. */
export const modelAgainst = (
  model: Model,
  fed: FeedModel,
  { orPrice, ownCap }: { readonly orPrice: boolean; readonly ownCap: number | undefined }
): Comparison => {
  const prices = listPricesOf(model, fed, orPrice).flatMap(([what, catalog, feed]) =>
    catalog === undefined || feed === undefined ? [] : [{ what, catalog, feed }]
  )
  const capped = model.surface === "chat" ? limits(model, fed, ownCap) : []
  const facts =
    model.surface !== "chat" ? 0 : (fed.contextLengths.length > 0 ? 1 : 0) + (fed.maxOutput === undefined ? 0 : 1)
  return {
    compared: prices.length + facts,
    differences: [...prices.filter(({ catalog, feed }) => catalog !== feed), ...capped]
  }
}

import { FileSystem } from "@effect/platform"
import { Chunk, Clock, Data, Effect, Either, Predicate, Stream } from "effect"
import type { Model } from "../../domain/Model.ts"
import { decodeTextFile } from "../../domain/TextDecoding.ts"
import { type Difference, modelAgainst, routeRows } from "./Drift.ts"
import type { Decoded, FeedModel, PriceList } from "./FeedModel.ts"
import { genaiPrices, isGenaiPrices } from "./GenaiPrices.ts"
import { isLiteLlm, liteLlm } from "./LiteLlm.ts"
import { isModelsDev, modelsDev } from "./ModelsDev.ts"
import { isOpenRouter, openRouter } from "./OpenRouter.ts"
import { dayOf, findRetired, type LookedUp, type Retired } from "./Retired.ts"

export class FeedInvalid extends Data.TaggedError("FeedInvalid")<{ readonly message: string }> {}

export interface Feed {
  readonly file: string
  readonly prices: PriceList
  /** As `2026-07-21`. */
  readonly today: string
}

interface Match {
  readonly model: string
  readonly route: string | undefined
  readonly entry: string
  readonly compared: number
  readonly drifted: number
}

interface Drift extends Difference {
  readonly model: string
  readonly route: string | undefined
  readonly entry: string
}

export interface FeedReport {
  readonly file: string
  readonly kind: PriceList["kind"]
  readonly entries: number
  readonly matches: ReadonlyArray<Match>
  readonly drifts: ReadonlyArray<Drift>
  readonly losses: ReadonlyArray<string>
  readonly unmatched: ReadonlyArray<string>
  readonly retired: ReadonlyArray<Retired>
}

const largestBytes = 64 * 1024 * 1024

const shapes =
  "LiteLLM's model_prices_and_context_window.json, models.dev's api.json, OpenRouter's /api/v1/models, genai-prices' data.json"

const priceListOf = (document: unknown, today: string): PriceList | undefined => {
  if (Array.isArray(document)) return isGenaiPrices(document) ? genaiPrices(document, today) : undefined
  if (!Predicate.isReadonlyRecord(document)) return undefined
  if (isModelsDev(document)) return modelsDev(document)
  if (isOpenRouter(document)) return openRouter(document)
  return isLiteLlm(document) ? liteLlm(document) : undefined
}

/** LiteLLM's, models.dev's, OpenRouter's or genai-prices', by its shape. */
export const readFeed = Effect.fn("Catalog.readFeed")(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (why: string) => new FeedInvalid({ message: `${file}: ${why}` })
  const { size } = yield* Effect.mapError(files.stat(file), (error) =>
    refuse(error._tag === "SystemError" && error.reason === "NotFound" ? "there is no such file" : error.message)
  )
  const tooLarge = refuse(`larger than ${largestBytes} bytes: no price feed`)
  if (size > largestBytes) return yield* tooLarge
  // A pipe has no size.
  const chunks = yield* Stream.runCollect(files.stream(file, { bytesToRead: largestBytes + 1 })).pipe(
    Effect.mapError((error) => refuse(`cannot be read: ${error.message}`))
  )
  const bytes = Buffer.concat(Chunk.toReadonlyArray(chunks))
  if (bytes.length > largestBytes) return yield* tooLarge
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  const document: unknown = yield* Effect.try({
    try: () => JSON.parse(text),
    catch: (error) => refuse(`is no JSON: ${error instanceof Error ? error.message : String(error)}`)
  })
  const today = dayOf(yield* Clock.currentTimeMillis)
  const prices = priceListOf(document, today)
  if (prices === undefined) return yield* refuse(`has the shape of none of ${shapes}`)
  const feed: Feed = { file, prices, today }
  return feed
})

/** Compares costs, list prices, context length and output cap; `ownCaps` are caps that models state themselves. */
export const compare = Effect.fn("Catalog.compareFeed")(function* (
  models: ReadonlyArray<Model>,
  ownCaps: ReadonlyMap<string, number>,
  { file, prices, today }: Feed
) {
  const matches: Array<Match> = []
  const drifts: Array<Drift> = []
  const losses: Array<string> = []
  const unmatched: Array<string> = []
  const lookedUp: Array<LookedUp> = []
  const inFile = (found: Decoded<FeedModel | undefined>) =>
    Either.mapLeft(found, ({ message }) => new FeedInvalid({ message: `${file}: ${message}` }))
  for (const model of models) {
    const fed = new Map<string, FeedModel>()
    for (const route of model.routes) {
      const found = yield* inFile(prices.ofRoute(route))
      if (found !== undefined) fed.set(route.id, found)
      lookedUp.push({ model, route, fed: found })
    }
    const priced = routeRows(model, (id) => fed.get(id))
    for (const [route, rows] of priced) {
      const entry = fed.get(route)?.entry ?? ""
      const stated = rows.flatMap(({ cost, fed: feed, unit }) =>
        cost === undefined ? [] : [{ what: `cost of ${unit}`, catalog: cost, feed }]
      )
      const drifted = stated.filter(({ catalog, feed }) => catalog !== feed)
      matches.push({ model: model.id, route, entry, compared: stated.length, drifted: drifted.length })
      drifts.push(...drifted.map((difference) => ({ model: model.id, route, entry, ...difference })))
      for (const { fed: charged, price, unit } of rows) {
        if (price < charged) losses.push(`${route}: the price of ${unit} is below what the feed says of ${entry}`)
      }
    }
    const first = fed.values().next().value ?? (yield* inFile(prices.ofMaker(model.id)))
    if (first === undefined) {
      unmatched.push(model.id)
      continue
    }
    if (fed.size === 0) lookedUp.push({ model, route: undefined, fed: first })
    const orPrice = [...priced.values()].every((rows) => rows.every(({ cost }) => cost === undefined))
    const { compared, differences } = modelAgainst(model, first, { orPrice, ownCap: ownCaps.get(model.id) })
    if (compared === 0) continue
    const common = { model: model.id, route: undefined, entry: first.entry }
    matches.push({ ...common, compared, drifted: differences.length })
    drifts.push(...differences.map((difference) => ({ ...common, ...difference })))
  }
  const { entries, kind } = prices
  const retired = findRetired(lookedUp, kind, today)
  const report: FeedReport = { file, kind, entries, matches, drifts, losses, unmatched, retired }
  return report
})

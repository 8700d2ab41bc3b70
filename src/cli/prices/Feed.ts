import { FileSystem } from "@effect/platform"
import { Data, Effect, Either, Predicate } from "effect"
import type { Model } from "../../domain/Model.ts"
import { type Difference, modelAgainst, routeRows } from "./Drift.ts"
import type { Decoded, FeedModel, PriceList } from "./FeedModel.ts"
import { isLiteLlm, liteLlm } from "./LiteLlm.ts"
import { isModelsDev, modelsDev } from "./ModelsDev.ts"

export class FeedInvalid extends Data.TaggedError("FeedInvalid")<{ readonly message: string }> {}

export interface Feed {
  readonly file: string
  readonly prices: PriceList
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
}

const largestBytes = 64 * 1024 * 1024

const shapes = "LiteLLM's model_prices_and_context_window.json or models.dev's api.json"

/** LiteLLM's or models.dev's, by its shape. */
export const readFeed = Effect.fn("Catalog.readFeed")(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (why: string) => new FeedInvalid({ message: `${file}: ${why}` })
  const { size } = yield* Effect.mapError(files.stat(file), (error) =>
    refuse(error._tag === "SystemError" && error.reason === "NotFound" ? "there is no such file" : error.message)
  )
  if (size > largestBytes) return yield* refuse(`larger than ${largestBytes} bytes: no price feed`)
  const text = yield* Effect.mapError(files.readFileString(file), (error) => refuse(`cannot be read: ${error.message}`))
  const document: unknown = yield* Effect.try({
    try: () => JSON.parse(text),
    catch: (error) => refuse(`is no JSON: ${error instanceof Error ? error.message : String(error)}`)
  })
  if (Predicate.isReadonlyRecord(document)) {
    const feed = (prices: PriceList): Feed => ({ file, prices })
    if (isModelsDev(document)) return feed(modelsDev(document))
    if (isLiteLlm(document)) return feed(liteLlm(document))
  }
  return yield* refuse(`has the shape of neither ${shapes}`)
})

/** Compares costs, list prices, context length and output cap; `ownCaps` are caps that models state themselves. */
export const compare = Effect.fn("Catalog.compareFeed")(function* (
  models: ReadonlyArray<Model>,
  ownCaps: ReadonlyMap<string, number>,
  { file, prices }: Feed
) {
  const matches: Array<Match> = []
  const drifts: Array<Drift> = []
  const losses: Array<string> = []
  const unmatched: Array<string> = []
  const inFile = (found: Decoded<FeedModel | undefined>) =>
    Either.mapLeft(found, ({ message }) => new FeedInvalid({ message: `${file}: ${message}` }))
  for (const model of models) {
    const fed = new Map<string, FeedModel>()
    for (const route of model.routes) {
      const found = yield* inFile(prices.ofRoute(route))
      if (found !== undefined) fed.set(route.id, found)
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
    const orPrice = [...priced.values()].every((rows) => rows.every(({ cost }) => cost === undefined))
    const { compared, differences } = modelAgainst(model, first, { orPrice, ownCap: ownCaps.get(model.id) })
    if (compared === 0) continue
    const common = { model: model.id, route: undefined, entry: first.entry }
    matches.push({ ...common, compared, drifted: differences.length })
    drifts.push(...differences.map((difference) => ({ ...common, ...difference })))
  }
  const report: FeedReport = { file, kind: prices.kind, entries: prices.entries, matches, drifts, losses, unmatched }
  return report
})

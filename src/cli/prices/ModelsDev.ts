import { Predicate } from "effect"
import {
  ascending,
  type FeedModel,
  type FeedTier,
  Fields,
  hostOf,
  makers,
  type PriceList,
  vendorNames
} from "./FeedModel.ts"

const tier = (cost: Fields, above: number): FeedTier => ({
  above,
  prompt: cost.nano("input", 1),
  completion: cost.nano("output", 1),
  cachedPrompt: cost.nano("cache_read", 1),
  cacheWrite: cost.nano("cache_write", 1),
  cacheWriteHour: undefined
})

/** Before `tiers` there was one dearer tier under this name. */
const oneTier = "context_over_200k"

const tiersOf = (cost: Fields): ReadonlyArray<FeedTier> => {
  const base = tier(cost, 0)
  if (cost.has("tiers")) {
    return [base, ...cost.list("tiers").map((one) => tier(one, one.within("tier").tokens("size") ?? 0))]
  }
  const over = cost.find(oneTier)
  return over === undefined ? [base] : [base, tier(over, 200_000)]
}

const model = (entry: string, value: unknown): FeedModel => {
  const fields = new Fields(entry, value)
  const cost = fields.find("cost")
  const limit = fields.find("limit")
  const context = limit?.tokens("context")
  return {
    entry,
    tiers: cost === undefined ? [] : ascending(tiersOf(cost)),
    perImage: undefined,
    perSecond: undefined,
    webSearch: undefined,
    contextLengths: context === undefined ? [] : [context],
    maxOutput: limit?.tokens("output")
  }
}

type Document = Readonly<Record<string, unknown>>

const modelsOf = (value: unknown): Document | undefined =>
  Predicate.isReadonlyRecord(value) && Predicate.isReadonlyRecord(value.models) ? value.models : undefined

export const isModelsDev = (document: Document): boolean =>
  Object.keys(document).length > 0 && Object.values(document).every((provider) => modelsOf(provider) !== undefined)

/** `api.json`: providers, then `models`, by id; prices per million tokens. */
export const modelsDev = (document: Document): PriceList => {
  const providers = Object.entries(document)
  const find = (vendors: ReadonlyArray<string>, id: string) => {
    for (const vendor of vendors) {
      const models = Object.hasOwn(document, vendor) ? modelsOf(document[vendor]) : undefined
      if (models !== undefined && Object.hasOwn(models, id)) return model(`${vendor}/${id}`, models[id])
    }
    return undefined
  }
  const atHost = (host: string | undefined) =>
    providers.flatMap(([id, provider]) =>
      host !== undefined &&
      Predicate.isReadonlyRecord(provider) &&
      typeof provider.api === "string" &&
      hostOf(provider.api) === host
        ? [id]
        : []
    )
  return {
    kind: "models.dev",
    entries: providers.reduce((count, [, provider]) => count + Object.keys(modelsOf(provider) ?? {}).length, 0),
    ofRoute: ({ model: name, provider }) => {
      const [likeliest, ...names] = vendorNames(provider, "models.dev")
      const vendors = likeliest === undefined ? names : [likeliest, ...atHost(hostOf(provider.baseUrl)), ...names]
      return find(vendors, name)
    },
    ofMaker: (id) => find(makers("models.dev"), id)
  }
}

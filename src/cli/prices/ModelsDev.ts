import { Predicate } from "effect"
import {
  ascending,
  type FeedModel,
  type FeedTier,
  Fields,
  hostOf,
  makers,
  type PriceList,
  type Unreadable,
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

const tiersOf = (cost: Fields): { readonly tiers: ReadonlyArray<FeedTier>; readonly parts: ReadonlyArray<Fields> } => {
  const base = { tiers: [tier(cost, 0)], parts: [cost] }
  if (cost.has("tiers")) {
    const more = cost.list("tiers").map((it) => ({ it, mark: it.within("tier") }))
    return {
      tiers: [...base.tiers, ...more.map(({ it, mark }) => tier(it, mark.tokens("size") ?? 0))],
      parts: [cost, ...more.flatMap(({ it, mark }) => [it, mark])]
    }
  }
  if (!cost.has(oneTier)) return base
  const over = cost.within(oneTier)
  return { tiers: [...base.tiers, tier(over, 200_000)], parts: [cost, over] }
}

const model = (entry: string, value: unknown): FeedModel | Unreadable => {
  const fields = new Fields(entry, value)
  const { parts, tiers } = fields.has("cost") ? tiersOf(fields.within("cost")) : { tiers: [], parts: [] }
  const limit = fields.has("limit") ? fields.within("limit") : new Fields(`${entry}.limit`, {})
  const context = limit.tokens("context")
  const fed: FeedModel = {
    entry,
    tiers: ascending(tiers),
    perImage: undefined,
    perSecond: undefined,
    webSearch: undefined,
    contextLengths: context === undefined ? [] : [context],
    maxOutput: limit.tokens("output")
  }
  return [fields, ...parts, limit].find(({ wrong }) => wrong !== undefined)?.wrong ?? fed
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

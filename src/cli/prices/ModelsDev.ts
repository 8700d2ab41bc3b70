import { Either, Predicate } from "effect"
import type { Capability } from "../../domain/Model.ts"
import {
  type Decoded,
  type FeedFacts,
  type FeedModel,
  type FeedTier,
  Fields,
  hostOf,
  makers,
  type PriceList,
  perMillion,
  sortTiers,
  vendorNames
} from "./FeedModel.ts"

const tier = (cost: Fields, above: number): Decoded<FeedTier> =>
  Either.gen(function* () {
    return {
      above,
      prompt: yield* cost.nano("input", perMillion),
      completion: yield* cost.nano("output", perMillion),
      cachedPrompt: yield* cost.nano("cache_read", perMillion),
      cacheWrite: yield* cost.nano("cache_write", perMillion),
      cacheWriteHour: undefined
    }
  })

/** Before `tiers` there was one dearer tier under this name. */
const oneTier = "context_over_200k"

const tiersOf = (cost: Fields): Decoded<ReadonlyArray<FeedTier>> =>
  Either.gen(function* () {
    const tiers = [yield* tier(cost, 0)]
    if (cost.has("tiers")) {
      for (const one of yield* cost.list("tiers")) {
        const scope = yield* one.within("tier")
        tiers.push(yield* tier(one, (yield* scope.tokens("size")) ?? 0))
      }
      return tiers
    }
    const over = yield* cost.find(oneTier)
    return over === undefined ? tiers : [...tiers, yield* tier(over, 200_000)]
  })

const factsOf = (fields: Fields, cost: Fields | undefined): FeedFacts => {
  const modalities = fields.part("modalities")
  const output = modalities?.words("output") ?? []
  const has: ReadonlyArray<readonly [isSo: boolean, capability: Capability]> = [
    [fields.isTrue("tool_call"), "tools"],
    [modalities?.words("input").includes("image") === true, "vision"],
    [fields.isTrue("structured_output"), "response_format"],
    [fields.isTrue("reasoning"), "reasoning"]
  ]
  return {
    surface: output.length === 1 && output[0] === "text" ? "chat" : undefined,
    capabilities: has.flatMap(([isSo, capability]) => (isSo ? [capability] : [])),
    efforts: [],
    sampling: fields.flag("temperature"),
    created: fields.day("release_date"),
    retirement: fields.text("status") === "deprecated" ? { on: undefined } : undefined,
    otherCharge: cost?.has("reasoning") === true ? "apart for reasoning" : undefined
  }
}

const model = (entry: string, value: unknown): Decoded<FeedModel> =>
  Either.gen(function* () {
    const fields = yield* Fields.of(entry, value)
    const cost = yield* fields.find("cost")
    const limit = yield* fields.find("limit")
    const context = limit && (yield* limit.tokens("context"))
    return {
      entry,
      ...factsOf(fields, cost),
      tiers: cost === undefined ? [] : sortTiers(yield* tiersOf(cost)),
      perImage: undefined,
      perSecond: undefined,
      webSearch: undefined,
      contextLengths: context === undefined ? [] : [context],
      maxOutput: limit && (yield* limit.tokens("output"))
    }
  })

type Document = Readonly<Record<string, unknown>>

const modelsOf = (value: unknown): Document | undefined =>
  Predicate.isReadonlyRecord(value) && Predicate.isReadonlyRecord(value.models) ? value.models : undefined

export const isModelsDev = (document: Document): boolean =>
  Object.keys(document).length > 0 && Object.values(document).every((provider) => modelsOf(provider) !== undefined)

/** `api.json`: providers, then `models`, by id; prices per million tokens. */
export const modelsDev = (document: Document): PriceList => {
  const providers = Object.entries(document)
  const find = (vendors: ReadonlyArray<string>, id: string): Decoded<FeedModel | undefined> => {
    for (const vendor of vendors) {
      const models = Object.hasOwn(document, vendor) ? modelsOf(document[vendor]) : undefined
      if (models !== undefined && Object.hasOwn(models, id)) return model(`${vendor}/${id}`, models[id])
    }
    return Either.right(undefined)
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
    ofMaker: (id) => find(makers("models.dev"), id),
    all: () =>
      providers.flatMap(([vendor, provider]) =>
        Object.entries(modelsOf(provider) ?? {}).map(([name, value]) => ({
          entry: `${vendor}/${name}`,
          vendor,
          name,
          maker: vendor === "openrouter" ? name.split("/")[0] : undefined,
          read: () => model(`${vendor}/${name}`, value)
        }))
      )
  }
}

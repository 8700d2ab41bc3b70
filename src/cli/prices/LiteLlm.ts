import { Either, Predicate } from "effect"
import type { Capability, RouteBase, Surface } from "../../domain/Model.ts"
import {
  type Decoded,
  type FeedEntry,
  type FeedFacts,
  type FeedModel,
  type FeedTier,
  Fields,
  makers,
  type PriceList,
  perOne,
  perSearch,
  perToken,
  sortTiers,
  vendorNames
} from "./FeedModel.ts"

const above = /^(?:input|output)_cost_per_token_above_(\d+)k_tokens$/

const tier = (fields: Fields, size: number): Decoded<FeedTier> => {
  const suffix = size === 0 ? "" : `_above_${size / 1000}k_tokens`
  const price = (name: string) => fields.nano(`${name}${suffix}`, perToken)
  return Either.gen(function* () {
    return {
      above: size,
      prompt: yield* price("input_cost_per_token"),
      completion: yield* price("output_cost_per_token"),
      cachedPrompt: yield* price("cache_read_input_token_cost"),
      cacheWrite: yield* price("cache_creation_input_token_cost"),
      cacheWriteHour: yield* price("cache_creation_input_token_cost_above_1hr")
    }
  })
}

const sizesOf = (fields: Fields): ReadonlyArray<number> => {
  const sizes = fields.keys.flatMap((key) => {
    const [, thousands] = above.exec(key) ?? []
    return thousands === undefined || !fields.has(key) ? [] : [Number(thousands) * 1000]
  })
  return [0, ...new Set(sizes)]
}

/** Entries such as `medium/1024-x-1024/gpt-image-1.5` call the price of the picture an input's. */
const sized = /(?:^|\/)\d+-x-\d+\//

const surfaces: ReadonlyMap<string | undefined, Surface> = new Map([
  ["chat", "chat"],
  ["responses", "chat"],
  ["image_generation", "image"],
  ["video_generation", "video"]
])

const capabilities: ReadonlyArray<readonly [key: string, capability: Capability]> = [
  ["supports_function_calling", "tools"],
  ["supports_vision", "vision"],
  ["supports_response_schema", "response_format"],
  ["supports_web_search", "web_search"],
  ["supports_reasoning", "reasoning"]
]

const otherCharges = [
  ["input_cost_per_request", "for each request"],
  ["tiered_pricing", "by ranges of length"],
  ["input_cost_per_character", "by the character"],
  ["input_cost_per_second", "by the second of input"]
] as const

const otherCharge = (fields: Fields): Decoded<string | undefined> =>
  Either.gen(function* () {
    const charge = otherCharges.find(([key]) => fields.has(key))?.[1]
    if (charge !== undefined) return charge
    const reasoning = yield* fields.nano("output_cost_per_reasoning_token", perToken)
    const isApart = reasoning !== undefined && reasoning !== (yield* fields.nano("output_cost_per_token", perToken))
    return isApart ? "apart for reasoning" : undefined
  })

const factsOf = (fields: Fields, retiredOn: string | undefined): Omit<FeedFacts, "otherCharge"> => ({
  surface: surfaces.get(fields.text("mode")),
  capabilities: capabilities.flatMap(([key, capability]) => (fields.isTrue(key) ? [capability] : [])),
  efforts: [],
  sampling: undefined,
  created: undefined,
  retirement: retiredOn === undefined ? undefined : { on: retiredOn }
})

const model = (entry: string, value: unknown): Decoded<FeedModel> =>
  Either.gen(function* () {
    const fields = yield* Fields.of(entry, value)
    const input = (yield* fields.tokens("max_input_tokens")) ?? (yield* fields.tokens("max_tokens"))
    const output = yield* fields.tokens("max_output_tokens")
    const image = yield* fields.nano("output_cost_per_image", perOne)
    const tiers = yield* Either.all(sizesOf(fields).map((size) => tier(fields, size)))
    const perImage = image ?? (sized.test(entry) ? yield* fields.nano("input_cost_per_image", perOne) : undefined)
    const second = yield* fields.nano("output_cost_per_second", perOne)
    const perSecond = second ?? (yield* fields.nano("output_cost_per_video_per_second", perOne))
    const search = yield* fields.find("search_context_cost_per_query")
    return {
      entry,
      ...factsOf(fields, fields.day("deprecation_date")),
      otherCharge: Either.getOrElse(otherCharge(fields), () => "by what is no number"),
      tiers: sortTiers(tiers),
      perImage,
      perSecond,
      webSearch: search && (yield* search.nano("search_context_size_medium", perSearch)),
      contextLengths: input === undefined ? [] : [input, input + (output ?? 0)],
      maxOutput: output
    }
  })

/** Such as `medium/1024-x-1024`. */
const sizedName = ({ model: name, options: { quality, size, image_size: imageSize } }: RouteBase) => {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(String(size ?? imageSize)) ?? []
  return width === undefined || typeof quality !== "string" ? [] : [`${quality}/${width}-x-${height}/${name}`]
}

type Document = Readonly<Record<string, unknown>>

const sample = "sample_spec"

const entriesOf = (document: Document): ReadonlyArray<FeedEntry> =>
  Object.entries(document).flatMap(([key, value]) => {
    const vendor = Predicate.isReadonlyRecord(value) ? value.litellm_provider : undefined
    if (key === sample || typeof vendor !== "string") return []
    const name = key.startsWith(`${vendor}/`) ? key.slice(vendor.length + 1) : key
    const maker = vendor === "openrouter" ? name.split("/")[0] : undefined
    return [{ entry: key, vendor, name, maker, isSized: sized.test(key), read: () => model(key, value) }]
  })

export const isLiteLlm = (document: Document): boolean =>
  Object.values(document).some(
    (value) => Predicate.isReadonlyRecord(value) && typeof value.litellm_provider === "string"
  )

/** Keys are `<provider>/<model>`, or `<model>` with the provider inside. */
export const liteLlm = (document: Document): PriceList => {
  const isOf = (vendor: string, key: string) => {
    const value = Object.hasOwn(document, key) ? document[key] : undefined
    return Predicate.isReadonlyRecord(value) && value.litellm_provider === vendor
  }
  const find = (vendors: ReadonlyArray<string>, names: ReadonlyArray<string>): Decoded<FeedModel | undefined> => {
    for (const vendor of vendors) {
      const keys = names.flatMap((name) => [`${vendor}/${name}`, name])
      const key = keys.find((one) => isOf(vendor, one))
      if (key !== undefined) return model(key, document[key])
    }
    return Either.right(undefined)
  }
  return {
    kind: "LiteLLM",
    entries: Object.keys(document).filter((key) => key !== sample).length,
    ofRoute: (route) => find(vendorNames(route.provider, "LiteLLM"), [...sizedName(route), route.model]),
    ofMaker: (id) => find(makers("LiteLLM"), [id]),
    all: () => entriesOf(document)
  }
}

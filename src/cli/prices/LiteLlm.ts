import { Either, Predicate } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import {
  type Decoded,
  type FeedModel,
  type FeedTier,
  Fields,
  makers,
  type PriceList,
  sortTiers,
  vendorNames
} from "./FeedModel.ts"

const million = 1_000_000

const above = /^(?:input|output)_cost_per_token_above_(\d+)k_tokens$/

const tier = (fields: Fields, size: number): Decoded<FeedTier> => {
  const suffix = size === 0 ? "" : `_above_${size / 1000}k_tokens`
  const price = (name: string) => fields.nano(`${name}${suffix}`, million)
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

const model = (entry: string, value: unknown): Decoded<FeedModel> =>
  Either.gen(function* () {
    const fields = yield* Fields.of(entry, value)
    const input = (yield* fields.tokens("max_input_tokens")) ?? (yield* fields.tokens("max_tokens"))
    const output = yield* fields.tokens("max_output_tokens")
    const image = yield* fields.nano("output_cost_per_image", 1)
    const tiers = yield* Either.all(sizesOf(fields).map((size) => tier(fields, size)))
    const perImage = image ?? (sized.test(entry) ? yield* fields.nano("input_cost_per_image", 1) : undefined)
    const second = yield* fields.nano("output_cost_per_second", 1)
    const perSecond = second ?? (yield* fields.nano("output_cost_per_video_per_second", 1))
    const search = yield* fields.find("search_context_cost_per_query")
    return {
      entry,
      tiers: sortTiers(tiers),
      perImage,
      perSecond,
      webSearch: search && (yield* search.nano("search_context_size_medium", 1_000)),
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
    entries: Object.keys(document).filter((key) => key !== "sample_spec").length,
    ofRoute: (route) => find(vendorNames(route.provider, "LiteLLM"), [...sizedName(route), route.model]),
    ofMaker: (id) => find(makers("LiteLLM"), [id])
  }
}

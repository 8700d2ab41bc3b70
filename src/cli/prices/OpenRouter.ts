import { Either, Predicate } from "effect"
import { type Capability, reasoningEfforts } from "../../domain/Model.ts"
import {
  type Decoded,
  type FeedEntry,
  type FeedFacts,
  type FeedModel,
  type FeedTier,
  Fields,
  makers,
  type PriceList,
  perToken,
  sortTiers,
  vendorNames
} from "./FeedModel.ts"

const vendor = "openrouter"

const tier = (pricing: Fields, above: number): Decoded<FeedTier> =>
  Either.gen(function* () {
    return {
      above,
      prompt: yield* pricing.nanoText("prompt", perToken),
      completion: yield* pricing.nanoText("completion", perToken),
      cachedPrompt: yield* pricing.nanoText("input_cache_read", perToken),
      cacheWrite: yield* pricing.nanoText("input_cache_write", perToken),
      cacheWriteHour: yield* pricing.nanoText("input_cache_write_1h", perToken)
    }
  })

const isByLength = (override: Fields): boolean => override.has("min_prompt_tokens")

const overridesOf = (pricing: Fields): Decoded<ReadonlyArray<Fields>> =>
  pricing.has("overrides") ? pricing.list("overrides") : Either.right([])

const tiersOf = (pricing: Fields, overrides: ReadonlyArray<Fields>): Decoded<ReadonlyArray<FeedTier>> =>
  Either.gen(function* () {
    const tiers = [yield* tier(pricing, 0)]
    for (const override of overrides.filter(isByLength)) {
      tiers.push(yield* tier(override, (yield* override.tokens("min_prompt_tokens")) ?? 0))
    }
    return sortTiers(tiers)
  })

/** The router's own pseudo models cost whatever they choose. */
const isVariable = (pricing: Fields): boolean => pricing.text("prompt")?.startsWith("-") === true

const otherCharge = (pricing: Fields, overrides: ReadonlyArray<Fields>): string | undefined => {
  if (isVariable(pricing)) return "by the model that it chooses"
  const charges = (key: string) => Either.getOrElse(pricing.nanoText(key, 0), () => 1n) !== 0n && pricing.has(key)
  if (charges("request")) return "for each request"
  if (!overrides.every(isByLength)) return "by the time of day"
  const reasoning = pricing.text("internal_reasoning")
  return charges("internal_reasoning") && reasoning !== pricing.text("completion") ? "apart for reasoning" : undefined
}

const createdOf = (fields: Fields): string | undefined => {
  const seconds = Either.getOrUndefined(fields.tokens("created"))
  return seconds !== undefined && seconds < 4_102_444_800
    ? new Date(seconds * 1000).toISOString().slice(0, 10)
    : undefined
}

const factsOf = (fields: Fields): Omit<FeedFacts, "otherCharge"> => {
  const parameters = fields.words("supported_parameters")
  const architecture = fields.part("architecture")
  const output = architecture?.words("output_modalities") ?? []
  const has: ReadonlyArray<readonly [isSo: boolean, capability: Capability]> = [
    [parameters.includes("tools"), "tools"],
    [architecture?.words("input_modalities").includes("image") === true, "vision"],
    [parameters.includes("structured_outputs") || parameters.includes("response_format"), "response_format"],
    [parameters.includes("reasoning"), "reasoning"]
  ]
  const efforts = fields.part("reasoning")?.words("supported_efforts") ?? []
  const expires = fields.day("expiration_date")
  return {
    surface: output.length === 1 && output[0] === "text" ? "chat" : undefined,
    capabilities: has.flatMap(([isSo, capability]) => (isSo ? [capability] : [])),
    efforts: reasoningEfforts.filter((effort) => efforts.includes(effort)),
    sampling: parameters.length === 0 ? undefined : parameters.includes("temperature"),
    created: createdOf(fields),
    retirement: expires === undefined ? undefined : { on: expires }
  }
}

const model = (entry: string, value: unknown): Decoded<FeedModel> =>
  Either.gen(function* () {
    const fields = yield* Fields.of(entry, value)
    const pricing = yield* fields.within("pricing")
    const overrides = yield* overridesOf(pricing)
    const top = fields.part("top_provider")
    const context = yield* fields.tokens("context_length")
    return {
      entry,
      ...factsOf(fields),
      otherCharge: otherCharge(pricing, overrides),
      tiers: isVariable(pricing) ? [] : yield* tiersOf(pricing, overrides),
      perImage: undefined,
      perSecond: undefined,
      // The vendor's own search, which a route that searches by a plugin does not use.
      webSearch: undefined,
      contextLengths: context === undefined ? [] : [context],
      maxOutput: top && (yield* top.tokens("max_completion_tokens"))
    }
  })

interface Row {
  readonly id: string
  readonly value: Readonly<Record<string, unknown>>
}

const rowsOf = ({ data }: Readonly<Record<string, unknown>>): ReadonlyArray<Row> =>
  Array.isArray(data)
    ? data.flatMap((value: unknown) =>
        Predicate.isReadonlyRecord(value) && typeof value.id === "string" ? [{ id: value.id, value }] : []
      )
    : []

export const isOpenRouter = (document: Readonly<Record<string, unknown>>): boolean =>
  rowsOf(document).some(({ value }) => Predicate.isReadonlyRecord(value.pricing))

/** `/api/v1/models`: `<maker>/<model>`, with prices per token as strings. */
export const openRouter = (document: Readonly<Record<string, unknown>>): PriceList => {
  const rows = rowsOf(document)
  const byId = new Map(rows.map(({ id, value }) => [id, value]))
  const find = (names: ReadonlyArray<string>): Decoded<FeedModel | undefined> => {
    const id = names.find((name) => byId.has(name))
    return id === undefined ? Either.right(undefined) : model(id, byId.get(id))
  }
  return {
    kind: "OpenRouter",
    entries: rows.length,
    ofRoute: ({ model: name, provider }) =>
      vendorNames(provider, "OpenRouter").includes(vendor) ? find([name]) : Either.right(undefined),
    ofMaker: (id) => find(makers("OpenRouter").map((maker) => `${maker}/${id}`)),
    all: () =>
      rows.map(({ id, value }): FeedEntry => {
        const [maker] = id.split("/")
        return { entry: id, vendor, name: id, maker, read: () => model(id, value) }
      })
  }
}

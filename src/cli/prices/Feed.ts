import { FileSystem } from "@effect/platform"
import { BigDecimal, Chunk, DateTime, Effect, Either, ParseResult, Predicate, Schema, Stream } from "effect"
import type { Capability, ProviderAccount, Surface } from "../../domain/Model.ts"
import { instantOf } from "../../domain/Moment.ts"
import { decodeTextFile } from "../../domain/TextDecoding.ts"
import { CommandFailed } from "../CommandFailed.ts"

export const feedName = "LiteLLM's model_prices_and_context_window.json"

/** What tokens are charged for: our name, the feed's (which may end in `_above_200k_tokens`), the catalog's, a report's. */
export const tokenPrices = [
  { part: "prompt", name: "input_cost_per_token", key: "prompt_per_1m_usd", unit: "prompt" },
  { part: "completion", name: "output_cost_per_token", key: "completion_per_1m_usd", unit: "completion" },
  { part: "cachedPrompt", name: "cache_read_input_token_cost", key: "cached_prompt_per_1m_usd", unit: "cached prompt" },
  { part: "cacheWrite", name: "cache_creation_input_token_cost", key: "cache_write_per_1m_usd", unit: "cache write" },
  {
    part: "cacheWriteHour",
    name: "cache_creation_input_token_cost_above_1hr",
    key: "cache_write_1h_per_1m_usd",
    unit: "one-hour cache write"
  }
] as const
type TokenPart = (typeof tokenPrices)[number]["part"]

/** In nano-USD per million tokens, for prompts of more than `above` tokens. */
interface FeedTier {
  readonly above: number
  readonly prices: ReadonlyMap<TokenPart, bigint>
}

export interface FeedModel {
  readonly entry: string
  /** Undefined for a kind of model that the gateway does not sell. */
  readonly surface: Surface | undefined
  readonly capabilities: ReadonlyArray<Capability>
  /** A day such as 2026-07-21. */
  readonly retirement: string | undefined
  /** How the model is charged, if a catalog cannot state it. */
  readonly otherCharge: string | undefined
  /** By `above`, which is 0 in the first. */
  readonly tiers: ReadonlyArray<FeedTier>
  /** In nano-USD. The feed names no size. */
  readonly perImage: bigint | undefined
  readonly perSecond: bigint | undefined
  /** Per thousand searches. */
  readonly webSearch: bigint | undefined
  /** Either may be the context window: only some vendors count the output in it. */
  readonly contextLengths: ReadonlyArray<number>
  readonly maxOutput: number | undefined
}

export interface FeedEntry {
  /** The feed's key: `<vendor>/<name>`, or `<name>`. */
  readonly entry: string
  readonly vendor: string
  readonly name: string
  /** The first part of a reseller's name for the model. */
  readonly maker: string | undefined
  /** Whether it has the price of one size and quality of an image. */
  readonly isSized: boolean
  /** Fails with the first field that is not what it should be. */
  readonly read: () => Either.Either<FeedModel, string>
}

export interface Feed {
  readonly file: string
  /** As `2026-07-21`. */
  readonly today: string
  readonly entries: ReadonlyMap<string, FeedEntry>
}

const hasMessage = (message: string) => ({ message: () => ({ message, override: true }) })
const Price = Schema.NullOr(Schema.Number.pipe(Schema.finite(), Schema.nonNegative())).annotations(
  hasMessage("must be a number of 0 or more")
)
const Amount = Schema.optionalWith(Price, { exact: true })
const TokenPrice = Schema.Literal(...tokenPrices.map(({ name }) => name))

/** The amounts are checked; the other fields are read with care. */
const Entry = Schema.Struct(
  {
    max_input_tokens: Amount,
    max_output_tokens: Amount,
    max_tokens: Amount,
    output_cost_per_image: Amount,
    input_cost_per_image: Amount,
    output_cost_per_second: Amount,
    output_cost_per_video_per_second: Amount,
    search_context_cost_per_query: Schema.optionalWith(
      Schema.NullOr(Schema.Struct({ search_context_size_medium: Amount })).annotations(
        hasMessage("must be an object with numbers of 0 or more")
      ),
      { exact: true }
    )
  },
  { key: Schema.TemplateLiteral(TokenPrice, Schema.String), value: Price },
  { key: Schema.String, value: Schema.Unknown }
)
type Entry = typeof Entry.Type

const decodeEntry = Schema.decodeUnknownEither(Entry)

/** Exact from the digits as written, to the nearest nano-USD, for 10 to the power of `places` of the feed's units. */
const nanoOf = (usd: number | null | undefined, places: number): bigint | undefined => {
  const scale = places + 9
  return typeof usd === "number"
    ? BigDecimal.scale(BigDecimal.round(BigDecimal.unsafeFromNumber(usd), { scale }), scale).value
    : undefined
}

/** The feed writes 0 for unknown. */
const tokensOf = (count: number | null | undefined): number | undefined =>
  typeof count === "number" && count >= 1 ? Math.floor(count) : undefined

const tierOf = (entry: Entry, above: number): FeedTier => {
  const suffix = above === 0 ? "" : `_above_${above / 1000}k_tokens`
  const listed = tokenPrices.map(({ name, part }) => [part, nanoOf(entry[`${name}${suffix}`], 6)] as const)
  return { above, prices: new Map(listed.flatMap(([part, price]) => (price === undefined ? [] : [[part, price]]))) }
}

const tiersOf = (entry: Entry): ReadonlyArray<FeedTier> => {
  const sizes = Object.entries(entry).flatMap(([key, value]) => {
    const [, thousands] = /^(?:input|output)_cost_per_token_above_(\d+)k_tokens$/.exec(key) ?? []
    return thousands === undefined || value === null ? [] : [Number(thousands) * 1000]
  })
  return [...new Set([0, ...sizes])].toSorted((a, b) => a - b).map((above) => tierOf(entry, above))
}

/** The price of a tier; a tier without it has that of the tiers below. */
export const priceAt = (tiers: ReadonlyArray<FeedTier>, tokens: number, part: TokenPart): bigint | undefined =>
  tiers.findLast(({ above, prices }) => above < tokens && prices.has(part))?.prices.get(part)

const surfaces: ReadonlyMap<unknown, Surface> = new Map([
  ["chat", "chat"],
  ["responses", "chat"],
  ["image_generation", "image"],
  ["video_generation", "video"]
])

const capabilities = [
  ["supports_function_calling", "tools"],
  ["supports_vision", "vision"],
  ["supports_response_schema", "response_format"],
  ["supports_web_search", "web_search"],
  ["supports_reasoning", "reasoning"]
] as const

const otherCharges = [
  ["input_cost_per_request", "for each request"],
  ["tiered_pricing", "by ranges of length"],
  ["input_cost_per_character", "by the character"],
  ["input_cost_per_second", "by the second of input"]
] as const

const otherChargeOf = (entry: Entry): string | undefined => {
  const reasoning = entry.output_cost_per_reasoning_token ?? entry.output_cost_per_token
  const found = otherCharges.find(([key]) => Predicate.isNotNullable(entry[key]))?.[1]
  return found ?? (reasoning === entry.output_cost_per_token ? undefined : "apart for reasoning")
}

const dayOf = (value: unknown): string | undefined => {
  const [day] = (typeof value === "string" && /^\d{4}-\d\d-\d\d(?=$|T)/.exec(value)) || []
  return day === undefined || instantOf(day) === undefined ? undefined : day
}

/** Entries such as `medium/1024-x-1024/gpt-image-1.5` name the price of the image an input's. */
const sized = /(?:^|\/)\d+-x-\d+\//

const decode = (key: string, value: unknown): Either.Either<FeedModel, string> =>
  Either.mapBoth(decodeEntry(value), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      return `${[key, ...(issue?.path ?? [])].join(".")} ${issue?.message}`
    },
    onRight: (entry): FeedModel => {
      const input = tokensOf(entry.max_input_tokens) ?? tokensOf(entry.max_tokens)
      const maxOutput = tokensOf(entry.max_output_tokens)
      return {
        entry: key,
        surface: surfaces.get(entry.mode),
        capabilities: capabilities.flatMap(([name, capability]) => (entry[name] === true ? [capability] : [])),
        retirement: dayOf(entry.deprecation_date),
        otherCharge: otherChargeOf(entry),
        tiers: tiersOf(entry),
        perImage: nanoOf(entry.output_cost_per_image ?? (sized.test(key) ? entry.input_cost_per_image : undefined), 0),
        perSecond: nanoOf(entry.output_cost_per_second ?? entry.output_cost_per_video_per_second, 0),
        webSearch: nanoOf(entry.search_context_cost_per_query?.search_context_size_medium, 3),
        contextLengths: input === undefined ? [] : [input, input + (maxOutput ?? 0)],
        maxOutput
      }
    }
  })

const entriesOf = (document: unknown): ReadonlyMap<string, FeedEntry> =>
  new Map(
    Object.entries(Predicate.isReadonlyRecord(document) ? document : {}).flatMap(([entry, value]) => {
      const vendor = Predicate.isReadonlyRecord(value) ? value.litellm_provider : undefined
      if (entry === "sample_spec" || typeof vendor !== "string") return []
      const name = entry.startsWith(`${vendor}/`) ? entry.slice(vendor.length + 1) : entry
      const maker = vendor === "openrouter" ? name.split("/")[0] : undefined
      return [[entry, { entry, vendor, name, maker, isSized: sized.test(entry), read: () => decode(entry, value) }]]
    })
  )

const maxBytes = 64 * 1024 * 1024

export const readFeed = Effect.fn("Catalog.readFeed")(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (why: string) => new CommandFailed({ message: `${file}: ${why}` })
  // A pipe has no size to check beforehand.
  const chunks = yield* Stream.runCollect(files.stream(file, { bytesToRead: maxBytes + 1 })).pipe(
    Effect.mapError((error) =>
      refuse(
        error._tag === "SystemError" && error.reason === "NotFound"
          ? "there is no such file"
          : `cannot be read: ${error.message}`
      )
    )
  )
  const bytes = Buffer.concat(Chunk.toReadonlyArray(chunks))
  if (bytes.length > maxBytes) return yield* refuse(`is larger than ${maxBytes} bytes: no price feed`)
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  const document: unknown = yield* Effect.try({
    try: () => JSON.parse(text),
    catch: (error) => refuse(`is no JSON: ${error instanceof Error ? error.message : String(error)}`)
  })
  const entries = entriesOf(document)
  if (entries.size === 0) return yield* refuse(`does not have the shape of ${feedName}`)
  const feed: Feed = { file, today: DateTime.formatIsoDateUtc(yield* DateTime.now), entries }
  return feed
})

const vendorsByHost: ReadonlyMap<string | undefined, string> = new Map([
  ["generativelanguage.googleapis.com", "gemini"],
  ["api.openai.com", "openai"],
  ["api.anthropic.com", "anthropic"],
  ["api.x.ai", "xai"],
  ["openrouter.ai", "openrouter"],
  ["queue.fal.run", "fal_ai"],
  ["api.replicate.com", "replicate"]
])

/** The feed's names for all vendors that have one here. */
export const vendors = [...vendorsByHost.values()]

/** The feed's names for a provider, the likeliest first. */
export const vendorsOf = ({ baseUrl, name }: Pick<ProviderAccount, "baseUrl" | "name">): ReadonlyArray<string> => {
  const host = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined
  const vendor = vendorsByHost.get(host)
  return vendor === undefined ? [name] : [vendor, name]
}

/** The entry of the first vendor that has one of the names, the likeliest first. */
export const findEntry = (
  { entries }: Feed,
  among: ReadonlyArray<string>,
  names: ReadonlyArray<string>
): FeedEntry | undefined =>
  among
    .flatMap((vendor) => {
      const keys = names.flatMap((name) => [`${vendor}/${name}`, name])
      return keys.flatMap((key) => entries.get(key) ?? []).filter((entry) => entry.vendor === vendor)
    })
    .at(0)

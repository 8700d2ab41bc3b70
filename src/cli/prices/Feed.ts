import { FileSystem } from "@effect/platform"
import { BigDecimal, Effect, Either, ParseResult, Predicate, Schema } from "effect"
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

interface FeedRate {
  readonly part: TokenPart
  /** It is the price of prompts with more tokens than this, up to the next rate. */
  readonly above: number
  /** In nano-USD per million tokens. */
  readonly price: bigint
}

export interface FeedModel {
  /** Undefined for a kind of model that the gateway does not sell. */
  readonly surface: Surface | undefined
  readonly capabilities: ReadonlyArray<Capability>
  /** A day such as 2026-07-21. */
  readonly retirement: string | undefined
  /** The feed's name of a charge that a catalog cannot state. */
  readonly otherCharge: string | undefined
  /** In the order of `above`. */
  readonly rates: ReadonlyArray<FeedRate>
  /** In nano-USD. The feed names no size. */
  readonly perImage: bigint | undefined
  /** In nano-USD. */
  readonly perSecond: bigint | undefined
  /** In nano-USD per thousand searches. */
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
  readonly fields: { readonly [key: string]: unknown }
}

export interface Feed {
  readonly file: string
  readonly entries: ReadonlyMap<string, FeedEntry>
}

const Amounts = Schema.Record({
  key: Schema.String.pipe(
    Schema.pattern(/^max_(?:input_|output_)?tokens$|^(?:input|output|cache)_\w*cost|^search_context_size_/)
  ),
  value: Schema.NullOr(Schema.Number.pipe(Schema.finite(), Schema.nonNegative())).annotations({
    message: () => ({ message: "must be a number of 0 or more", override: true })
  })
})
type Amounts = typeof Amounts.Type

const decodeAmounts = Schema.decodeUnknownEither(Amounts)

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

const ratesOf = (amounts: Amounts): ReadonlyArray<FeedRate> =>
  Object.entries(amounts)
    .flatMap(([key, amount]) => {
      const [, name, thousands = 0] = /^(\w+?)(?:_above_(\d+)k_tokens)?$/.exec(key) ?? []
      const part = tokenPrices.find((one) => one.name === name)?.part
      const price = nanoOf(amount, 6)
      return part === undefined || price === undefined ? [] : [{ part, above: 1000 * Number(thousands), price }]
    })
    .toSorted((a, b) => a.above - b.above)

/** Returns the price of a prompt with more than `above` tokens. */
export const priceAbove = ({ rates }: FeedModel, above: number, part: TokenPart): bigint | undefined =>
  rates.findLast((rate) => rate.part === part && rate.above <= above)?.price

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
  ["supports_web_search", "web_search"]
] as const

const otherCharges = [
  "input_cost_per_request",
  "input_cost_per_character",
  "input_cost_per_second",
  "tiered_pricing"
] as const

const otherChargeOf = (fields: FeedEntry["fields"]): string | undefined => {
  const { output_cost_per_token: output, output_cost_per_reasoning_token: reasoning } = fields
  const found = otherCharges.find((key) => Predicate.isNotNullable(fields[key]))
  return found ?? ((reasoning ?? output) === output ? undefined : "output_cost_per_reasoning_token")
}

const dayOf = (value: unknown): string | undefined => {
  const [day] = (typeof value === "string" && /^\d{4}-\d\d-\d\d(?=$|T)/.exec(value)) || []
  return day === undefined || instantOf(day) === undefined ? undefined : day
}

/** Fails with the first amount that is none. */
export const readModel = ({ fields }: FeedEntry): Either.Either<FeedModel, string> => {
  const searches = fields.search_context_cost_per_query
  return Either.mapBoth(decodeAmounts({ ...fields, ...(Predicate.isReadonlyRecord(searches) && searches) }), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      return `${issue?.path.join(".")} ${issue?.message}`
    },
    onRight: (amounts): FeedModel => {
      const input = tokensOf(amounts.max_input_tokens) ?? tokensOf(amounts.max_tokens)
      const maxOutput = tokensOf(amounts.max_output_tokens)
      return {
        surface: surfaces.get(fields.mode),
        capabilities: capabilities.flatMap(([name, capability]) => (fields[name] === true ? [capability] : [])),
        retirement: dayOf(fields.deprecation_date),
        otherCharge: otherChargeOf(fields),
        rates: ratesOf(amounts),
        perImage: nanoOf(amounts.output_cost_per_image, 0),
        perSecond: nanoOf(amounts.output_cost_per_second ?? amounts.output_cost_per_video_per_second, 0),
        webSearch: nanoOf(amounts.search_context_size_medium, 3),
        contextLengths: input === undefined ? [] : [input, input + (maxOutput ?? 0)],
        maxOutput
      }
    }
  })
}

const entriesOf = (document: unknown): ReadonlyMap<string, FeedEntry> =>
  new Map(
    Object.entries(Predicate.isReadonlyRecord(document) ? document : {}).flatMap(([entry, fields]) => {
      if (entry === "sample_spec" || !Predicate.isReadonlyRecord(fields)) return []
      const vendor = fields.litellm_provider
      if (typeof vendor !== "string") return []
      const name = entry.startsWith(`${vendor}/`) ? entry.slice(vendor.length + 1) : entry
      return [[entry, { entry, vendor, name, fields }]]
    })
  )

/** Reads the file as text in UTF-8 or UTF-16. Fails if it is no price feed. */
export const readFeed = Effect.fn("Catalog.readFeed")(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (why: string) => new CommandFailed({ message: `${file}: ${why}` })
  const bytes = yield* Effect.mapError(files.readFile(file), (error) =>
    refuse(
      error._tag === "SystemError" && error.reason === "NotFound"
        ? "there is no such file"
        : `cannot be read: ${error.message}`
    )
  )
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  const document: unknown = yield* Effect.try({
    try: () => JSON.parse(text),
    catch: (error) => refuse(`is no JSON: ${error instanceof Error ? error.message : String(error)}`)
  })
  const entries = entriesOf(document)
  if (entries.size === 0) return yield* refuse(`does not have the shape of ${feedName}`)
  const feed: Feed = { file, entries }
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

/** Returns the model's entry of the first vendor that has one. */
export const findEntry = ({ entries }: Feed, among: ReadonlyArray<string>, model: string): FeedEntry | undefined =>
  among
    .flatMap((vendor) =>
      [`${vendor}/${model}`, model].flatMap((key) => {
        const entry = entries.get(key)
        return entry?.vendor === vendor ? [entry] : []
      })
    )
    .at(0)

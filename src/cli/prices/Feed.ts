import { FileSystem } from "@effect/platform"
import { BigDecimal, Effect, Either, ParseResult, Predicate, Record, Schema } from "effect"
import type { Capability, ProviderAccount, Surface } from "../../domain/Model.ts"
import { instantOf } from "../../domain/Moment.ts"
import { decodeTextFile } from "../../domain/TextDecoding.ts"
import { tokenKinds } from "../../domain/TokenKinds.ts"
import { CommandFailed } from "../../ExitCode.ts"

export const feedName = "LiteLLM's model_prices_and_context_window.json"

/** The feed's keys of prices. A key may have a suffix such as `_above_200k_tokens`. */
const namesInFeed = {
  prompt: "input_cost_per_token",
  completion: "output_cost_per_token",
  cachedPrompt: "cache_read_input_token_cost",
  cacheWrite: "cache_creation_input_token_cost",
  cacheWriteHour: "cache_creation_input_token_cost_above_1hr"
} as const

/** The kinds of tokens that the feed prices. */
export const tokenPrices = Record.toEntries(namesInFeed).map(([part, name]) => ({ ...tokenKinds[part], part, name }))
type TokenPart = keyof typeof namesInFeed

interface FeedRate {
  readonly part: TokenPart
  /** The price applies to prompts with more tokens than this, up to the `above` of the next rate. */
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
  /** The feed's key of a charge that a catalog cannot express, such as a price per request. */
  readonly otherCharge: string | undefined
  /** Sorted by `above`. */
  readonly rates: ReadonlyArray<FeedRate>
  /** In nano-USD. The feed does not say for which size. */
  readonly perImage: bigint | undefined
  /** In nano-USD. */
  readonly perSecond: bigint | undefined
  /** In nano-USD per thousand searches. */
  readonly webSearch: bigint | undefined
  /**
   * The prompt limit, and the prompt limit plus the output limit: vendors differ in whether the context window includes the
   * output.
   */
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

/** Returns nano-USD for 10^`places` units, such as a million tokens. Computes in decimals, because floats would be inexact. */
const nanoOf = (usd: number | null | undefined, places: number): bigint | undefined => {
  const scale = places + 9
  return typeof usd === "number"
    ? BigDecimal.scale(BigDecimal.round(BigDecimal.unsafeFromNumber(usd), { scale }), scale).value
    : undefined
}

/** The feed writes 0 if it does not know a limit. */
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

/** Fails with a message about the first invalid amount. */
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

/** Reads a file in UTF-8 or UTF-16. Fails if it is not a price feed. */
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
    catch: (error) => refuse(`is not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  })
  const entries = entriesOf(document)
  if (entries.size === 0) return yield* refuse(`does not have the format of ${feedName}`)
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

/** Vendor names as the feed writes them. */
export const vendors = [...vendorsByHost.values()]

/** Returns the vendor names that the feed may use for a provider, the most likely first. */
export const vendorsOf = ({ baseUrl, name }: Pick<ProviderAccount, "baseUrl" | "name">): ReadonlyArray<string> => {
  const host = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined
  const vendor = vendorsByHost.get(host)
  return vendor === undefined ? [name] : [vendor, name]
}

/** Tries the vendors in order. */
export const findEntry = (
  { entries }: Feed,
  vendorNames: ReadonlyArray<string>,
  model: string
): FeedEntry | undefined =>
  vendorNames
    .flatMap((vendor) =>
      [`${vendor}/${model}`, model].flatMap((key) => {
        const entry = entries.get(key)
        return entry?.vendor === vendor ? [entry] : []
      })
    )
    .at(0)

import { Data, Either, Predicate } from "effect"
import type { Capability, ProviderAccount, ReasoningEffort, RouteBase, Surface } from "../../domain/Model.ts"
import { instantOf } from "../../domain/Moment.ts"

/** A field that is read and holds something else than expected. */
class FieldInvalid extends Data.TaggedError("FieldInvalid")<{ readonly message: string }> {}

export type Decoded<A> = Either.Either<A, FieldInvalid>

const invalid = (message: string): Decoded<never> => Either.left(new FieldInvalid({ message }))

/** In nano-USD per million tokens; undefined where the feed is silent. */
export interface FeedTier {
  readonly above: number
  readonly prompt: bigint | undefined
  readonly completion: bigint | undefined
  readonly cachedPrompt: bigint | undefined
  readonly cacheWrite: bigint | undefined
  readonly cacheWriteHour: bigint | undefined
}

/** A day such as 2026-07-21; undefined where the feed calls the model deprecated without one. */
export interface Retirement {
  readonly on: string | undefined
}

/** What a feed says beside prices. */
export interface FeedFacts {
  /** Undefined for what the gateway does not sell. */
  readonly surface: Surface | undefined
  /** What its name says that it makes beside text, where the feed does not tell what a model makes. */
  readonly makes?: string | undefined
  /** Undefined where the feed has no such facts. */
  readonly capabilities: ReadonlyArray<Capability> | undefined
  readonly efforts: ReadonlyArray<ReasoningEffort>
  readonly sampling: boolean | undefined
  /** As `2026-07-21`. */
  readonly created: string | undefined
  readonly retirement: Retirement | undefined
  /** A charge that a catalog cannot state. */
  readonly otherCharge: string | undefined
}

export interface FeedModel extends FeedFacts {
  readonly entry: string
  readonly tiers: ReadonlyArray<FeedTier>
  /** In nano-USD; feeds name no size, so it is taken for the smallest. */
  readonly perImage: bigint | undefined
  readonly perSecond: bigint | undefined
  /** Per thousand. */
  readonly webSearch: bigint | undefined
  /** Either may be the context window: only some vendors count the output in it. */
  readonly contextLengths: ReadonlyArray<number>
  readonly maxOutput: number | undefined
}

export interface FeedEntry {
  readonly entry: string
  /** Who serves it, and what it is called there. */
  readonly vendor: string
  readonly name: string
  /** Who made it, where a reseller's name for it says so. */
  readonly maker: string | undefined
  /** Whether it prices one size and quality of another entry's model. */
  readonly isSized?: boolean
  readonly read: () => Decoded<FeedModel>
}

export interface PriceList {
  readonly kind: "LiteLLM" | "models.dev" | "OpenRouter" | "genai-prices"
  readonly entries: number
  readonly ofRoute: (route: RouteBase) => Decoded<FeedModel | undefined>
  /** The entry of the model's vendor. */
  readonly ofMaker: (id: string) => Decoded<FeedModel | undefined>
  readonly all: () => ReadonlyArray<FeedEntry>
}

const vendors = [
  ["generativelanguage.googleapis.com", "gemini", "google", "google", "google"],
  ["api.openai.com", "openai", "openai", "openai", "openai"],
  ["api.anthropic.com", "anthropic", "anthropic", "anthropic", "anthropic"],
  ["api.x.ai", "xai", "xai", "x-ai", "x-ai"],
  ["openrouter.ai", "openrouter", "openrouter", "openrouter", "openrouter"],
  ["queue.fal.run", "fal_ai", "fal", "fal", "fal"],
  ["api.replicate.com", "replicate", "replicate", "replicate", "replicate"]
].map(([host = "", liteLlm = "", modelsDev = "", openRouter = "", genaiPrices = ""]) => ({
  host,
  LiteLLM: liteLlm,
  "models.dev": modelsDev,
  OpenRouter: openRouter,
  "genai-prices": genaiPrices
}))

/** Such as LiteLLM's. */
export const possessiveOf = (kind: PriceList["kind"]): string => (kind.endsWith("s") ? `${kind}'` : `${kind}'s`)

export const makers = (kind: PriceList["kind"]): ReadonlyArray<string> => vendors.map((vendor) => vendor[kind])

export const hostOf = (url: string | undefined): string | undefined =>
  url !== undefined && URL.canParse(url) ? new URL(url).host : undefined

/** The likeliest first. */
export const vendorNames = (
  { baseUrl, name }: Pick<ProviderAccount, "baseUrl" | "name">,
  kind: PriceList["kind"]
): ReadonlyArray<string> => {
  const host = hostOf(baseUrl)
  return [...vendors.filter((vendor) => vendor.host === host).map((vendor) => vendor[kind]), name]
}

type Entry = Readonly<Record<string, unknown>>

const numeral = /^(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/

/** Exact from the digits as written, to the nearest whole; undefined if `text` is no number of 0 or more. */
const shiftDecimal = (text: string, places: number): bigint | undefined => {
  const match = numeral.exec(text)
  if (match === null) return undefined
  const [, whole = "", fraction = "", exponent = "0"] = match
  const digits = BigInt(whole + fraction)
  const shift = Number(exponent) + places - fraction.length
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const unit = 10n ** BigInt(-shift)
  return (2n * digits + unit) / (2n * unit)
}

/** Powers of ten from the feed's unit to a million tokens, and to a thousand searches. */
export const perToken = 6
export const perMillion = 0
export const perOne = 0
export const perSearch = 3
const nanoPlaces = 9

export class Fields {
  readonly #record: Entry
  readonly #where: string

  private constructor(where: string, record: Entry) {
    this.#where = where
    this.#record = record
  }

  static of(where: string, value: unknown): Decoded<Fields> {
    return Predicate.isReadonlyRecord(value)
      ? Either.right(new Fields(where, value))
      : invalid(`${where} must be an object`)
  }

  get keys(): ReadonlyArray<string> {
    return Object.keys(this.#record)
  }

  has(key: string): boolean {
    const value = Object.hasOwn(this.#record, key) ? this.#record[key] : undefined
    return value !== undefined && value !== null
  }

  #number(key: string): Decoded<number | undefined> {
    if (!this.has(key)) return Either.right(undefined)
    const value = this.#record[key]
    return typeof value === "number" && Number.isFinite(value) && value >= 0
      ? Either.right(value)
      : invalid(`${this.#where}.${key} must be a number of 0 or more`)
  }

  /** In nano-USD; the feed's price times ten to the power of `places`. */
  nano(key: string, places: number): Decoded<bigint | undefined> {
    return Either.map(this.#number(key), (usd) =>
      usd === undefined ? undefined : shiftDecimal(String(usd), places + nanoPlaces)
    )
  }

  /** As `nano`, of a number written as a string. */
  nanoText(key: string, places: number): Decoded<bigint | undefined> {
    if (!this.has(key)) return Either.right(undefined)
    const value = this.#record[key]
    const nano = typeof value === "string" ? shiftDecimal(value, places + nanoPlaces) : undefined
    return nano === undefined
      ? invalid(`${this.#where}.${key} must be a number of 0 or more, as a string`)
      : Either.right(nano)
  }

  isTrue(key: string): boolean {
    return this.has(key) && this.#record[key] === true
  }

  /** Undefined for anything else than a boolean. */
  flag(key: string): boolean | undefined {
    const value = this.has(key) ? this.#record[key] : undefined
    return typeof value === "boolean" ? value : undefined
  }

  /** Undefined for anything else than a string. */
  text(key: string): string | undefined {
    const value = this.has(key) ? this.#record[key] : undefined
    return typeof value === "string" ? value : undefined
  }

  /** Undefined for anything else than a day of the form 2026-07-21, with or without a time. */
  day(key: string): string | undefined {
    const [day] = /^\d{4}-\d\d-\d\d(?=$|T)/.exec(this.text(key) ?? "") ?? []
    return day === undefined || instantOf(day) === undefined ? undefined : day
  }

  /** The strings of a list; none for anything else. */
  words(key: string): ReadonlyArray<string> {
    const value = this.has(key) ? this.#record[key] : undefined
    return Array.isArray(value) ? value.filter(Predicate.isString) : []
  }

  /** Undefined for anything else than an object. */
  part(key: string): Fields | undefined {
    return Either.getOrUndefined(Fields.of(`${this.#where}.${key}`, this.has(key) ? this.#record[key] : undefined))
  }

  /** Feeds write 0 for unknown. */
  tokens(key: string): Decoded<number | undefined> {
    return Either.map(this.#number(key), (count) => (count === undefined || count < 1 ? undefined : Math.floor(count)))
  }

  within(key: string): Decoded<Fields> {
    return Fields.of(`${this.#where}.${key}`, this.#record[key])
  }

  find(key: string): Decoded<Fields | undefined> {
    return this.has(key) ? this.within(key) : Either.right(undefined)
  }

  list(key: string): Decoded<ReadonlyArray<Fields>> {
    const value = this.#record[key]
    return Array.isArray(value)
      ? Either.all(value.map((item, index) => Fields.of(`${this.#where}.${key}[${index}]`, item)))
      : invalid(`${this.#where}.${key} must be a list`)
  }
}

export const sortTiers = (tiers: ReadonlyArray<FeedTier>): ReadonlyArray<FeedTier> =>
  tiers.toSorted((a, b) => a.above - b.above)

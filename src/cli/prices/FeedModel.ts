import { Data, Either, Predicate } from "effect"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"

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

export interface FeedModel {
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

export interface PriceList {
  readonly kind: "LiteLLM" | "models.dev"
  readonly entries: number
  readonly ofRoute: (route: RouteBase) => Decoded<FeedModel | undefined>
  /** The entry of the model's vendor. */
  readonly ofMaker: (id: string) => Decoded<FeedModel | undefined>
}

const vendors = [
  { host: "generativelanguage.googleapis.com", LiteLLM: "gemini", "models.dev": "google" },
  { host: "api.openai.com", LiteLLM: "openai", "models.dev": "openai" },
  { host: "api.anthropic.com", LiteLLM: "anthropic", "models.dev": "anthropic" },
  { host: "api.x.ai", LiteLLM: "xai", "models.dev": "xai" },
  { host: "openrouter.ai", LiteLLM: "openrouter", "models.dev": "openrouter" },
  { host: "queue.fal.run", LiteLLM: "fal_ai", "models.dev": "fal" },
  { host: "api.replicate.com", LiteLLM: "replicate", "models.dev": "replicate" }
] as const

export const makers = (kind: PriceList["kind"]): ReadonlyArray<string> => vendors.map((vendor) => vendor[kind])

export const hostOf = (url: string | undefined): string | undefined =>
  url !== undefined && URL.canParse(url) ? new URL(url).host : undefined

/** The likeliest first. */
export const vendorNames = ({ baseUrl, name }: ProviderAccount, kind: PriceList["kind"]): ReadonlyArray<string> => {
  const host = hostOf(baseUrl)
  return [...vendors.filter((vendor) => vendor.host === host).map((vendor) => vendor[kind]), name]
}

type Entry = Readonly<Record<string, unknown>>

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

  /** In nano-USD; the feed prices `per` units at a time in USD. */
  nano(key: string, per: number): Decoded<bigint | undefined> {
    return Either.map(this.#number(key), (usd) => (usd === undefined ? undefined : BigInt(Math.round(usd * per * 1e9))))
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

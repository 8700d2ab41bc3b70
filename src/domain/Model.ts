import { type Redacted, Schema } from "effect"
import type { NanoUsd } from "./Money.ts"

export const Surface = Schema.Literal("chat", "image", "video")
export type Surface = typeof Surface.Type
export type Capability = "tools" | "vision" | "response_format" | "web_search" | "reasoning"
/** An image route's shape parameter: `size` in pixels, `aspect_ratio` as a ratio. */
export type ShapeFeature = "size" | "aspect_ratio"
export type Feature = Capability | "sampling" | "edit" | Resolution | ShapeFeature
export const reasoningEfforts = ["low", "medium", "high", "xhigh"] as const
export type ReasoningEffort = (typeof reasoningEfforts)[number]

/** The cap on the output of a chat completion that names none. */
export const defaultMaxTokens = 4096
export const Resolution = Schema.Literal("1K", "2K", "4K")
export type Resolution = typeof Resolution.Type

/** In nano-USD per million tokens. */
export interface TokenPrices {
  readonly prompt: NanoUsd
  readonly completion: NanoUsd
}

/** A missing cached or cache-write price is the tier's prompt price, a missing hour's price its cache-write price. */
interface TierPrices extends TokenPrices {
  readonly cachedPrompt: NanoUsd | undefined
  readonly cacheWrite: NanoUsd | undefined
  readonly cacheWriteHour?: NanoUsd | undefined
}

export interface ChatPricing extends TierPrices {
  /** For the whole request above `above` prompt tokens; missing cache prices are the base tier's. */
  readonly longContext:
    | (TokenPrices & {
        readonly above: number
        readonly cachedPrompt?: NanoUsd | undefined
        readonly cacheWrite?: NanoUsd | undefined
        readonly cacheWriteHour?: NanoUsd | undefined
      })
    | undefined
  /** In nano-USD per thousand searches; without it they are free. */
  readonly webSearch?: NanoUsd | undefined
}

export interface VideoPricing {
  readonly per: "second" | "video"
  readonly price: NanoUsd
}

export interface ProviderAccount {
  readonly name: string
  readonly adapter: string
  /** Without a trailing slash; absent for the sandbox. */
  readonly baseUrl: string | undefined
  readonly credential: Redacted.Redacted | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Calls carry `traceparent` and `tracestate`. */
  readonly sendsTraceContext?: boolean
}

export type RouteOptions = Readonly<Record<string, unknown>>

export interface RouteBase {
  /** `<model>@<provider>`, with `#2`, `#3` for further routes of the pair. */
  readonly id: string
  readonly provider: ProviderAccount
  readonly model: string
  /** Lower is tried first. */
  readonly preference: number
  readonly weight: number
  readonly options: RouteOptions
}

export interface Route extends RouteBase {
  readonly capabilities: ReadonlySet<Capability> | undefined
  readonly cost: ChatPricing | undefined
}

export interface ImageRoute extends RouteBase {
  /** For requests with references; undefined: the route cannot edit. */
  readonly editModel: string | undefined
  readonly resolutions: ReadonlySet<Resolution>
  readonly aspectRatios: ReadonlySet<string>
  /** By `variantKey`, and by resolution. */
  readonly cost: ReadonlyMap<string, NanoUsd>
  /** In nano-USD per million tokens of reference images, beside `cost`. */
  readonly imageInputCost?: NanoUsd | undefined
}

export type SecondsAs = "number" | "text" | "suffixed" | "omitted"

export type ReferenceImage = "none" | "optional" | "required"

export interface VideoRoute extends RouteBase {
  readonly referenceImage: ReferenceImage
  /** For requests with a reference; undefined: the route takes none. */
  readonly imageModel: string | undefined
  readonly seconds: ReadonlyArray<number>
  readonly secondsAs: SecondsAs
  readonly cost: VideoPricing | undefined
}

/** A model from a moment on. */
export interface DatedModel {
  /** Unix milliseconds. */
  readonly at: number
  readonly model: Model
}

interface ModelBase<R extends RouteBase> {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly routes: ReadonlyArray<R>
  /** The same model with other prices or costs, which has its own next. */
  readonly next?: DatedModel | undefined
}

export interface ChatModel extends ModelBase<Route> {
  readonly surface: "chat"
  readonly family: string
  readonly contextLength: number
  readonly maxOutput: number
  /** Where the family's is lower: on Responses and Messages it holds instead. */
  readonly ownMaxOutput?: number | undefined
  readonly maxOutputPolicy: "clamp" | "reject"
  readonly sampling: boolean
  readonly reasoning: ReadonlyArray<ReasoningEffort> | "binary" | "none"
  readonly capabilities: ReadonlySet<Capability>
  readonly pricing: ChatPricing
  readonly official: TokenPrices | undefined
  readonly imageTokens: number
  readonly webSearchTokens: number
  /** Searches of one request that the customer pays for at most. */
  readonly maxWebSearches: number
}

export interface Shape {
  /** Such as `3:2`. */
  readonly aspectRatio: string
  /** Such as `1536x1024`; undefined where the host decides. */
  readonly size: string | undefined
}

export interface ImageVariant {
  readonly resolution: Resolution
  /** Undefined: whatever the routes make. */
  readonly shape: Shape | undefined
  readonly price: NanoUsd
  readonly official: NanoUsd | undefined
}

export interface ImageModel extends ModelBase<ImageRoute> {
  readonly surface: "image"
  /** One per resolution and shape; the first is the default. */
  readonly variants: readonly [ImageVariant, ...ReadonlyArray<ImageVariant>]
  readonly edit: boolean
  readonly maxReferences: number
}

export interface VideoModel extends ModelBase<VideoRoute> {
  readonly surface: "video"
  readonly pricing: VideoPricing
  /** The vendor's list price, in the unit of `pricing`. */
  readonly official: NanoUsd | undefined
  readonly seconds: {
    readonly allowed: readonly [number, ...ReadonlyArray<number>]
    readonly default: number
  }
  readonly referenceImage: ReferenceImage
}

export type Model = ChatModel | ImageModel | VideoModel

/** With the prices and costs of a moment, in Unix milliseconds. */
export const modelAt = (model: Model, at: number): Model => {
  let current = model
  while (current.next !== undefined && current.next.at <= at) current = current.next.model
  return current
}

const longestQuoted = 100

/** In backticks, cut at 100 UTF-16 units, never inside a surrogate pair. */
export const quoteModel = (name: string): string => {
  if (name.length <= longestQuoted) return `\`${name}\``
  const end = /[\uD800-\uDBFF]/.test(name.charAt(longestQuoted - 1)) ? longestQuoted - 1 : longestQuoted
  return `\`${name.slice(0, end)}…\``
}

export const isChat = (model: Model): model is ChatModel => model.surface === "chat"
export const isImage = (model: Model): model is ImageModel => model.surface === "image"
export const isVideo = (model: Model): model is VideoModel => model.surface === "video"

import { type Redacted, Schema } from "effect"
import type { NanoUsd } from "./Money.ts"
import type { PartName } from "./TokenKinds.ts"

export const Surface = Schema.Literal("chat", "image", "video")
export type Surface = typeof Surface.Type
export type Capability = "tools" | "vision" | "response_format" | "web_search" | "reasoning"
/** The parameter in which an image route sends the shape: `size` in pixels, or `aspect_ratio`. */
export type ShapeFeature = "size" | "aspect_ratio"
export type Feature = Capability | "sampling" | "edit" | Resolution | ShapeFeature
export const reasoningEfforts = ["low", "medium", "high", "xhigh"] as const
export type ReasoningEffort = (typeof reasoningEfforts)[number]

/** The output cap of a chat request that sets none, in tokens. */
export const defaultMaxTokens = 4096
export const Resolution = Schema.Literal("1K", "2K", "4K")
export type Resolution = typeof Resolution.Type

/** In nano-USD per million tokens. */
interface TokenPrices {
  readonly prompt: NanoUsd
  readonly completion: NanoUsd
}

/** If the price of a part is missing, that of its parent kind in the same tier applies. */
interface TierPrices extends TokenPrices, Readonly<Partial<Record<PartName, NanoUsd | undefined>>> {}

export interface ChatPricing extends TierPrices {
  /**
   * The prices of the whole request if its prompt has more than `above` tokens. A price that is missing here, such as that
   * of cached tokens, is the base tier's.
   */
  readonly longContext: (TierPrices & { readonly above: number }) | undefined
  /** In nano-USD per thousand searches; absent: free. */
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
  /** Whether calls send the headers `traceparent` and `tracestate`. */
  readonly sendsTraceContext?: boolean
}

export type RouteOptions = Readonly<Record<string, unknown>>

export interface RouteBase {
  /** `<model>@<provider>`; further routes of the same pair end in `#2`, `#3`. */
  readonly id: string
  readonly provider: ProviderAccount
  readonly model: string
  /** Routes with a lower number are tried first. */
  readonly preference: number
  readonly weight: number
  readonly options: RouteOptions
}

export interface Route extends RouteBase {
  readonly capabilities: ReadonlySet<Capability> | undefined
  readonly cost: ChatPricing | undefined
}

export interface ImageRoute extends RouteBase {
  /** The provider's model for requests with reference images; undefined: the route cannot edit. */
  readonly editModel: string | undefined
  readonly resolutions: ReadonlySet<Resolution>
  readonly aspectRatios: ReadonlySet<string>
  /** Costs by `variantKey`, and by resolution for variants without their own. */
  readonly cost: ReadonlyMap<string, NanoUsd>
  /** In nano-USD per million tokens of reference images, in addition to `cost`. */
  readonly imageInputCost?: NanoUsd | undefined
}

export type SecondsAs = "number" | "text" | "suffixed" | "omitted"

export type ReferenceImage = "none" | "optional" | "required"

export interface VideoRoute extends RouteBase {
  readonly referenceImage: ReferenceImage
  /** The provider's model for requests with a reference image; undefined: the route accepts none. */
  readonly imageModel: string | undefined
  readonly seconds: ReadonlyArray<number>
  readonly secondsAs: SecondsAs
  readonly cost: VideoPricing | undefined
}

/** A version of a model and the moment from which it applies. */
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
  /** The next version of the model, with other prices or costs. */
  readonly next?: DatedModel | undefined
}

export interface ChatModel extends ModelBase<Route> {
  readonly surface: "chat"
  readonly family: string
  readonly contextLength: number
  readonly maxOutput: number
  /** The model's own output cap. In the Responses and Messages dialects it applies even if the family's is lower. */
  readonly ownMaxOutput?: number | undefined
  readonly maxOutputPolicy: "clamp" | "reject"
  readonly sampling: boolean
  readonly reasoning: ReadonlyArray<ReasoningEffort> | "binary" | "none"
  readonly capabilities: ReadonlySet<Capability>
  readonly pricing: ChatPricing
  readonly official: TokenPrices | undefined
  readonly imageTokens: number
  readonly webSearchTokens: number
  /** The maximum number of searches of one request that the customer pays for. */
  readonly maxWebSearches: number
}

export interface Shape {
  /** Such as `3:2`. */
  readonly aspectRatio: string
  /** Such as `1536x1024`; undefined if the provider decides. */
  readonly size: string | undefined
}

export interface ImageVariant {
  readonly resolution: Resolution
  /** Undefined: the catalog lists no shapes, and the routes decide. */
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

/** Returns the model with the prices and costs at a moment in Unix milliseconds. */
export const modelAt = (model: Model, at: number): Model => {
  let current = model
  while (current.next !== undefined && current.next.at <= at) current = current.next.model
  return current
}

const maxQuotedLength = 100

/** Returns the name in backticks, cut at 100 UTF-16 units but never inside a surrogate pair. */
export const quoteModel = (name: string): string => {
  if (name.length <= maxQuotedLength) return `\`${name}\``
  const end = /[\uD800-\uDBFF]/.test(name.charAt(maxQuotedLength - 1)) ? maxQuotedLength - 1 : maxQuotedLength
  return `\`${name.slice(0, end)}…\``
}

export const isChat = (model: Model): model is ChatModel => model.surface === "chat"
export const isImage = (model: Model): model is ImageModel => model.surface === "image"
export const isVideo = (model: Model): model is VideoModel => model.surface === "video"

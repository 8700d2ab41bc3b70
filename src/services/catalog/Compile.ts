import { Redacted } from "effect"
import type {
  Capability,
  ChatModel,
  ChatPricing,
  ImageModel,
  ImageRoute,
  ImageVariant,
  Model,
  ProviderAccount,
  Resolution,
  RouteBase,
  RouteOptions,
  SecondsAs,
  VideoModel,
  VideoPricing,
  VideoRoute
} from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { ChatModelEntry, ImageModelEntry, ModelEntry, ProviderEntry, VideoModelEntry } from "./Format.ts"
import { chatRules, type Entries, sandboxAdapter } from "./Rules.ts"
import { routeOptions } from "./Source.ts"

/** Where credentials are read: the process's environment, or a part of it. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A provider of the catalog, and whether it can be called. */
export interface Upstream {
  readonly account: ProviderAccount
  /** The environment variable of its credential; undefined where it needs none. */
  readonly variable: string | undefined
  /** Whether its credential is present, or none is needed. */
  readonly ready: boolean
  readonly options: RouteOptions
}

export interface Compiled {
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** Every model with all its routes, whether they can be called or not. */
  readonly models: ReadonlyArray<Model>
}

const upstream = (name: string, entry: ProviderEntry, environment: Environment): Upstream => {
  const secret = entry.credential === undefined ? undefined : environment[entry.credential]?.trim()
  const present = secret !== undefined && secret !== ""
  return {
    account: {
      name,
      adapter: entry.adapter,
      baseUrl: entry.base_url?.replace(/\/+$/, ""),
      credential: present ? Redacted.make(secret) : undefined,
      headers: entry.headers ?? {}
    },
    variable: entry.credential,
    ready: present || entry.credential === undefined || entry.adapter === sandboxAdapter,
    options: routeOptions(entry.options)
  }
}

/** A value that the catalog's rules guarantee: to go on without it would give a model away. */
const sure = <A>(value: A | undefined, what: string): A => {
  if (value === undefined) throw new Error(`${what} is missing: the catalog's rules were not checked`)
  return value
}

/** Builds the common part of a model's routes, numbering repeated pairs of model and provider. */
const routeMaker = (model: string, upstreams: Compiled["upstreams"]) => {
  const seen = new Map<string, number>()
  return (entry: ModelEntry["routes"][number]): RouteBase => {
    const nth = (seen.get(entry.provider) ?? 0) + 1
    seen.set(entry.provider, nth)
    const provider = sure(upstreams.get(entry.provider), entry.provider)
    return {
      id: `${model}@${entry.provider}${nth === 1 ? "" : `#${nth}`}`,
      provider: provider.account,
      model: entry.model,
      preference: entry.preference ?? 1,
      weight: entry.weight ?? 1,
      options: routeOptions(provider.options, entry.options)
    }
  }
}

type Prices = NonNullable<ChatModelEntry["routes"][number]["cost"]>

const tierOf = (entry: Omit<Prices, "long_context">) => ({
  prompt: entry.prompt_per_1m_usd,
  completion: entry.completion_per_1m_usd,
  cachedPrompt: entry.cached_prompt_per_1m_usd,
  cacheWrite: entry.cache_write_per_1m_usd
})

const chatPricing = (entry: Prices): ChatPricing => ({
  ...tierOf(entry),
  longContext:
    entry.long_context === undefined ? undefined : { above: entry.long_context.above, ...tierOf(entry.long_context) }
})

const chatModel = (entry: ChatModelEntry, { families }: Entries, upstreams: Compiled["upstreams"]): ChatModel => {
  const { capabilities, maxOutput, ...rules } = chatRules(entry, families.get(entry.family))
  const base = routeMaker(entry.id, upstreams)
  const reasons = rules.reasoning !== "none"
  const whole: ReadonlySet<Capability> = new Set(reasons ? [...capabilities, "reasoning"] : capabilities)
  const { official } = entry.pricing
  return {
    id: entry.id,
    surface: "chat",
    created: entry.created ?? 0,
    family: entry.family,
    contextLength: entry.context_length,
    maxOutput: sure(maxOutput, "max_output"),
    ...rules,
    capabilities: whole,
    pricing: chatPricing(entry.pricing),
    official: official && { prompt: official.prompt_per_1m_usd, completion: official.completion_per_1m_usd },
    routes: entry.routes.map((route) => {
      const can: ReadonlyArray<Capability> = route.capabilities ?? capabilities
      const narrowed = route.capabilities !== undefined || route.reasoning === "none"
      return {
        ...base(route),
        capabilities: narrowed
          ? new Set(reasons && route.reasoning !== "none" ? [...can, "reasoning" as const] : can)
          : undefined,
        cost: route.cost && chatPricing(route.cost)
      }
    })
  }
}

const imageVariants = ({ pricing, variants }: ImageModelEntry): ImageModel["variants"] => {
  const variant = ({ resolution, price_usd, official_usd }: NonNullable<typeof variants>[0]): ImageVariant => ({
    resolution,
    price: price_usd,
    official: official_usd
  })
  if (variants !== undefined) return [variant(variants[0]), ...variants.slice(1).map(variant)]
  return [
    { resolution: "1K", price: sure(pricing, "pricing").per_image_usd, official: pricing?.official?.per_image_usd }
  ]
}

const imageCost = (
  cost: ImageModelEntry["routes"][number]["cost"],
  resolutions: ReadonlyArray<Resolution>
): ReadonlyMap<Resolution, NanoUsd> => {
  const flat = cost?.per_image_usd
  if (flat !== undefined) return new Map(resolutions.map((resolution) => [resolution, flat]))
  return new Map(cost?.variants?.map(({ resolution, price_usd }) => [resolution, price_usd]))
}

const imageModel = (entry: ImageModelEntry, upstreams: Compiled["upstreams"]): ImageModel => {
  const base = routeMaker(entry.id, upstreams)
  const variants = imageVariants(entry)
  const edit = entry.edit ?? false
  return {
    id: entry.id,
    surface: "image",
    created: entry.created ?? 0,
    variants,
    edit,
    routes: entry.routes.map((route): ImageRoute => {
      const resolutions = route.resolutions ?? variants.map(({ resolution }) => resolution)
      return {
        ...base(route),
        editModel: edit && route.edit !== false ? (route.edit_model ?? route.model) : undefined,
        resolutions: new Set(resolutions),
        cost: imageCost(route.cost, resolutions)
      }
    })
  }
}

const clipPricing = (entry: NonNullable<VideoModelEntry["routes"][number]["cost"]>): VideoPricing =>
  entry.per_second_usd === undefined
    ? { per: "video", price: sure(entry.per_video_usd, "per_video_usd") }
    : { per: "second", price: entry.per_second_usd }

const secondsAs = (written: VideoModelEntry["routes"][number]["seconds_as"]): SecondsAs => {
  if (written === undefined || typeof written === "number") return "number"
  if (written === "none") return "omitted"
  return written.endsWith("s") ? "suffixed" : "text"
}

const ascending = (
  seconds: readonly [number, ...ReadonlyArray<number>]
): readonly [number, ...ReadonlyArray<number>] => {
  const [first = seconds[0], ...rest] = seconds.toSorted((a, b) => a - b)
  return [first, ...rest]
}

const videoModel = (entry: VideoModelEntry, upstreams: Compiled["upstreams"]): VideoModel => {
  const base = routeMaker(entry.id, upstreams)
  const referenceImage = entry.reference_image ?? "none"
  const allowed = ascending(entry.seconds.allowed)
  const { official } = entry.pricing
  return {
    id: entry.id,
    surface: "video",
    created: entry.created ?? 0,
    pricing: clipPricing(entry.pricing),
    official: official?.per_second_usd ?? official?.per_video_usd,
    seconds: { allowed, default: entry.seconds.default },
    referenceImage,
    routes: entry.routes.map((route): VideoRoute => {
      const narrowed = route.reference_image ?? referenceImage
      return {
        ...base(route),
        referenceImage: narrowed,
        imageModel: narrowed === "none" ? undefined : (route.image_model ?? route.model),
        seconds: route.seconds === undefined ? allowed : ascending(route.seconds),
        secondsAs: secondsAs(route.seconds_as),
        cost: route.cost && clipPricing(route.cost)
      }
    })
  }
}

/** Turns checked entries into the domain's models, with the credentials that the environment has. */
export const compile = (entries: Entries, environment: Environment): Compiled => {
  const upstreams = new Map([...entries.providers].map(([name, entry]) => [name, upstream(name, entry, environment)]))
  const models = entries.models.map(({ entry }): Model => {
    if (entry.surface === "chat") return chatModel(entry, entries, upstreams)
    return entry.surface === "image" ? imageModel(entry, upstreams) : videoModel(entry, upstreams)
  })
  return { upstreams, models }
}

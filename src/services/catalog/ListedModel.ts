import type { Capability, Model, ReferenceImage, Resolution } from "../../domain/Model.ts"

export interface ParamField {
  readonly key: string
  readonly type: "slider" | "number" | "boolean" | "select" | "image" | "text"
  readonly default?: number | string | boolean
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly options?: ReadonlyArray<string>
}

export interface TokenPrices {
  readonly prompt_per_1m_usd: number
  readonly completion_per_1m_usd: number
  readonly cached_prompt_per_1m_usd: number
  readonly cache_write_per_1m_usd: number
  readonly cache_write_1h_per_1m_usd: number
}

export interface ChatPrices extends TokenPrices {
  readonly long_context?: TokenPrices & { readonly above: number }
  /** USD per token, under the names that clients of OpenRouter read. */
  readonly prompt: string
  readonly completion: string
  readonly input_cache_read: string
  readonly input_cache_write: string
  readonly input_cache_write_1h: string
  readonly web_search_per_1k_usd?: number
  /** USD of one. */
  readonly web_search?: string
  readonly max_web_searches?: number
  readonly approximate: boolean
  readonly discount_pct?: number
  readonly official_prompt_per_1m_usd?: number
  readonly official_completion_per_1m_usd?: number
}

export interface VariantPrice {
  readonly resolution: Resolution
  readonly sizes?: ReadonlyArray<string>
  readonly aspect_ratios?: ReadonlyArray<string>
  readonly per_image_usd: number
  readonly official_per_image_usd?: number
}

export interface ImagePrices {
  readonly per_image_usd: number
  readonly per_image_4k_usd?: number
  readonly variants: ReadonlyArray<VariantPrice>
  readonly approximate: boolean
  readonly discount_pct?: number
  readonly official_per_image_usd?: number
}

export interface VideoPrices {
  readonly per_second_usd?: number
  readonly per_video_usd?: number
  readonly approximate: boolean
  readonly discount_pct?: number
  readonly official_per_second_usd?: number
  readonly official_per_video_usd?: number
}

export type Modality = "text" | "image" | "video"

/** What a surface says of its model. */
export interface Listing {
  readonly context_length?: number
  readonly top_provider?: { readonly context_length: number; readonly max_completion_tokens: number }
  readonly architecture: {
    readonly input_modalities: ReadonlyArray<Modality>
    readonly output_modalities: ReadonlyArray<Modality>
  }
  readonly capabilities: ReadonlyArray<Capability | "edit" | "reference_image">
  readonly supported_parameters: ReadonlyArray<string>
  readonly image?: {
    readonly max_references: number
    readonly max_n: number
    readonly resolutions: ReadonlyArray<Resolution>
    readonly sizes: ReadonlyArray<string>
    readonly aspect_ratios: ReadonlyArray<string>
  }
  readonly video?: {
    readonly seconds: { readonly allowed: ReadonlyArray<number>; readonly default: number }
    readonly reference_image: ReferenceImage
  }
  readonly pricing: ChatPrices | ImagePrices | VideoPrices
  readonly params: ReadonlyArray<ParamField>
}

export interface ListedModel extends Listing {
  readonly id: string
  readonly object: "model"
  readonly created: number
  readonly owned_by: "generation-gateway"
  readonly surface: Model["surface"]
}

type Against = readonly [price: bigint, official: bigint | undefined]

/** In whole percent; empty unless every official price is undercut. */
export const discount = (...prices: ReadonlyArray<Against>): { readonly discount_pct?: number } => {
  const saved = prices.flatMap(([price, official]) =>
    official === undefined || official === 0n ? [] : [Number(((official - price) * 100n) / official)]
  )
  const least = Math.min(...saved)
  return saved.length > 0 && least > 0 ? { discount_pct: least } : {}
}

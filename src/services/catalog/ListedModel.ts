import type { Model } from "../../domain/Model.ts"

export interface ParamField {
  readonly key: string
  readonly type: "slider" | "number" | "boolean" | "select" | "image" | "text"
  readonly default?: number | string | boolean
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly options?: ReadonlyArray<string>
}

export interface ChatPrices {
  readonly prompt_per_1m_usd: number
  readonly completion_per_1m_usd: number
  readonly approximate: boolean
  readonly discount_pct?: number
  readonly official_prompt_per_1m_usd?: number
  readonly official_completion_per_1m_usd?: number
}

export interface ImagePrices {
  readonly per_image_usd: number
  readonly per_image_4k_usd?: number
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

export interface ListedModel {
  readonly id: string
  readonly object: "model"
  readonly created: number
  readonly owned_by: "generation-gateway"
  readonly surface: Model["surface"]
  readonly context_length?: number
  readonly pricing: ChatPrices | ImagePrices | VideoPrices
  readonly params: ReadonlyArray<ParamField>
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

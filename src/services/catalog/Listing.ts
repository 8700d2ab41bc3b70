import { type ChatModel, type ImageModel, type Model, reasoningEfforts, type VideoModel } from "../../domain/Model.ts"
import { toUsd } from "../../domain/Money.ts"

export interface ParamField {
  /** The request field, as a client sends it. */
  readonly key: string
  readonly type: "slider" | "number" | "boolean" | "select" | "image" | "text"
  readonly default?: number | string | boolean
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly options?: ReadonlyArray<string>
}

/** USD per million tokens. */
export interface ChatPrices {
  readonly prompt_per_1m_usd: number
  readonly completion_per_1m_usd: number
  readonly approximate: boolean
  readonly discount_pct?: number
  readonly official_prompt_per_1m_usd?: number
  readonly official_completion_per_1m_usd?: number
}

/** USD per image. */
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

export interface ModelList {
  readonly object: "list"
  readonly data: ReadonlyArray<ListedModel>
}

const defaultMaxTokens = 4096

type Against = readonly [price: bigint, official: bigint | undefined]

/** The whole percent saved on every price that has an official one; nothing unless all of them are cheaper. */
const discount = (...prices: ReadonlyArray<Against>): { readonly discount_pct?: number } => {
  const saved = prices.flatMap(([price, official]) =>
    official === undefined || official === 0n ? [] : [Number(((official - price) * 100n) / official)]
  )
  const least = Math.min(...saved)
  return saved.length > 0 && least > 0 ? { discount_pct: least } : {}
}

const chatPrices = ({ official, pricing }: ChatModel): ChatPrices => ({
  prompt_per_1m_usd: toUsd(pricing.prompt),
  completion_per_1m_usd: toUsd(pricing.completion),
  approximate: true,
  ...discount([pricing.prompt, official?.prompt], [pricing.completion, official?.completion]),
  ...(official && {
    official_prompt_per_1m_usd: toUsd(official.prompt),
    official_completion_per_1m_usd: toUsd(official.completion)
  })
})

const imagePrices = ({ variants: [first, ...rest] }: ImageModel): ImagePrices => {
  const large = [first, ...rest].find(({ resolution }) => resolution === "4K")
  return {
    per_image_usd: toUsd(first.price),
    ...(large && { per_image_4k_usd: toUsd(large.price) }),
    approximate: false,
    ...discount([first.price, first.official]),
    ...(first.official !== undefined && { official_per_image_usd: toUsd(first.official) })
  }
}

const videoPrices = ({ official, pricing: { per, price } }: VideoModel): VideoPrices => ({
  ...(per === "second" ? { per_second_usd: toUsd(price) } : { per_video_usd: toUsd(price) }),
  approximate: false,
  ...discount([price, official]),
  ...(official !== undefined &&
    (per === "second" ? { official_per_second_usd: toUsd(official) } : { official_per_video_usd: toUsd(official) }))
})

const penalty = (key: string): ParamField => ({ key, type: "slider", default: 0, min: -2, max: 2, step: 0.1 })

const chatParams = ({ capabilities, maxOutput, reasoning, sampling }: ChatModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  if (sampling) {
    fields.push({ key: "temperature", type: "slider", default: 1, min: 0, max: 2, step: 0.1 })
    fields.push({ key: "top_p", type: "slider", default: 1, min: 0, max: 1, step: 0.05 })
  }
  const tokens = Math.min(defaultMaxTokens, maxOutput)
  fields.push({ key: "max_tokens", type: "number", default: tokens, min: 1, max: maxOutput, step: 1 })
  if (reasoning !== "none") {
    const options = reasoning === "binary" ? reasoningEfforts : reasoning
    fields.push({ key: "reasoning_effort", type: "select", options })
  }
  if (capabilities.has("web_search")) fields.push({ key: "web_search", type: "boolean", default: false })
  fields.push({ key: "stop", type: "text" })
  if (sampling) {
    fields.push({ key: "seed", type: "number", step: 1 }, penalty("frequency_penalty"), penalty("presence_penalty"))
  }
  return fields
}

const imageParams = ({ edit, variants }: ImageModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  if (variants.length > 1) {
    const options = variants.map(({ resolution }) => resolution)
    fields.push({ key: "resolution", type: "select", default: variants[0].resolution, options })
  }
  if (edit) fields.push({ key: "image", type: "image" })
  fields.push({ key: "response_format", type: "select", default: "url", options: ["url", "b64_json"] })
  return fields
}

/** A slider where the lengths are evenly spaced, else a choice. */
const secondsField = ({ allowed, default: usual }: VideoModel["seconds"]): ParamField => {
  const step = (allowed[1] ?? allowed[0]) - allowed[0]
  const even = allowed.every((seconds, index) => seconds === allowed[0] + index * step)
  if (allowed.length < 3 || !even) {
    return { key: "seconds", type: "select", default: String(usual), options: allowed.map(String) }
  }
  return { key: "seconds", type: "slider", default: usual, min: allowed[0], max: Math.max(...allowed), step }
}

const videoParams = ({ referenceImage, seconds }: VideoModel): ReadonlyArray<ParamField> =>
  referenceImage === "none" ? [secondsField(seconds)] : [secondsField(seconds), { key: "image", type: "image" }]

const particulars = (model: Model): Pick<ListedModel, "context_length" | "pricing" | "params"> => {
  if (model.surface === "chat") {
    return { context_length: model.contextLength, pricing: chatPrices(model), params: chatParams(model) }
  }
  if (model.surface === "image") return { pricing: imagePrices(model), params: imageParams(model) }
  return { pricing: videoPrices(model), params: videoParams(model) }
}

/** The body of `GET /models`: each model with its prices in USD and the request fields it can be tuned by. */
export const listing = (models: ReadonlyArray<Model>): ModelList => ({
  object: "list",
  data: models.map((model) => ({
    id: model.id,
    object: "model",
    created: model.created,
    owned_by: "generation-gateway",
    surface: model.surface,
    ...particulars(model)
  }))
})

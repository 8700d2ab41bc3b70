import { type ChatPrices, discount, type Listing, type ParamField, type TokenPrices } from "../../domain/ListedModel.ts"
import { type ChatModel, type ChatPricing, defaultMaxTokens, reasoningEfforts } from "../../domain/Model.ts"
import { toUsd, toUsdPerToken, zero } from "../../domain/Money.ts"
import { type Rates, ratesAt } from "../../domain/Pricing.ts"
import type { Margin } from "./Surface.ts"

const tokenPrices = ({ cachedPrompt, cacheWrite, cacheWriteHour, completion, prompt }: Rates): TokenPrices => ({
  prompt_per_1m_usd: toUsd(prompt),
  completion_per_1m_usd: toUsd(completion),
  cached_prompt_per_1m_usd: toUsd(cachedPrompt),
  cache_write_per_1m_usd: toUsd(cacheWrite),
  cache_write_1h_per_1m_usd: toUsd(cacheWriteHour)
})

const chatPrices = ({ maxWebSearches, official, pricing }: ChatModel): ChatPrices => {
  const rates = ratesAt(pricing, 0)
  const above = pricing.longContext?.above
  return {
    ...tokenPrices(rates),
    ...(above !== undefined && { long_context: { above, ...tokenPrices(ratesAt(pricing, above + 1)) } }),
    prompt: toUsdPerToken(rates.prompt),
    completion: toUsdPerToken(rates.completion),
    input_cache_read: toUsdPerToken(rates.cachedPrompt),
    input_cache_write: toUsdPerToken(rates.cacheWrite),
    input_cache_write_1h: toUsdPerToken(rates.cacheWriteHour),
    ...(pricing.webSearch !== undefined && {
      web_search_per_1k_usd: toUsd(pricing.webSearch),
      web_search: toUsdPerToken(pricing.webSearch * 1_000n),
      max_web_searches: maxWebSearches
    }),
    approximate: true,
    ...discount([pricing.prompt, official?.prompt], [pricing.completion, official?.completion]),
    ...(official && {
      official_prompt_per_1m_usd: toUsd(official.prompt),
      official_completion_per_1m_usd: toUsd(official.completion)
    })
  }
}

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

export const listChat = (model: ChatModel): Listing => {
  const { capabilities, contextLength, maxOutput } = model
  const params = chatParams(model)
  return {
    context_length: contextLength,
    top_provider: { context_length: contextLength, max_completion_tokens: maxOutput },
    architecture: {
      input_modalities: capabilities.has("vision") ? ["text", "image"] : ["text"],
      output_modalities: ["text"]
    },
    capabilities: [...capabilities],
    supported_parameters: [
      ...params.map(({ key }) => key),
      "max_completion_tokens",
      ...(capabilities.has("tools") ? ["tools", "tool_choice", "parallel_tool_calls"] : []),
      ...(capabilities.has("response_format") ? ["response_format"] : [])
    ],
    pricing: chatPrices(model),
    params
  }
}

/** Compares at the prompt sizes where either side changes its prices. */
export const chatMargins = (pricing: ChatPricing, cost: ChatPricing | undefined): ReadonlyArray<Margin> => {
  const marks = new Set([0, pricing.longContext?.above ?? 0, cost?.longContext?.above ?? 0])
  const searched = cost && (cost.webSearch ?? zero)
  const search = { unit: "1000 web searches", price: pricing.webSearch ?? zero, cost: searched }
  const tokens = [...marks].flatMap((mark) => {
    const price = ratesAt(pricing, mark + 1)
    const paid = cost && ratesAt(cost, mark + 1)
    const unit = (name: string) => `${name} per 1M${mark === 0 ? "" : ` above ${mark}`}`
    const hour = { unit: unit("one-hour cache write"), price: price.cacheWriteHour, cost: paid?.cacheWriteHour }
    const isSame = hour.price === price.cacheWrite && hour.cost === paid?.cacheWrite
    return [
      { unit: unit("prompt"), price: price.prompt, cost: paid?.prompt },
      { unit: unit("cached prompt"), price: price.cachedPrompt, cost: paid?.cachedPrompt },
      { unit: unit("cache write"), price: price.cacheWrite, cost: paid?.cacheWrite },
      ...(isSame ? [] : [hour]),
      { unit: unit("completion"), price: price.completion, cost: paid?.completion }
    ]
  })
  return pricing.webSearch === undefined && cost?.webSearch === undefined ? tokens : [...tokens, search]
}

import { imagePrice } from "../../domain/Image.ts"
import type { ChatModel, ImageModel, ImageVariant, VideoModel } from "../../domain/Model.ts"
import { maxStored, min, type NanoUsd, toUsd } from "../../domain/Money.ts"
import type { ChatQuote } from "../../domain/Pricing.ts"
import { listModel } from "../../services/catalog/Surfaces.ts"
import type { Quote } from "./Schema.ts"

/** What a request would hold, without whether it can. */
export interface Offer {
  readonly upTo: NanoUsd
  readonly shown: Omit<Quote, "affordable">
}

/** Of the listed prices, the rates that charges are made of. */
const rates: ReadonlySet<string> = new Set([
  "prompt_per_1m_usd",
  "completion_per_1m_usd",
  "cached_prompt_per_1m_usd",
  "cache_write_per_1m_usd",
  "cache_write_1h_per_1m_usd",
  "long_context",
  "web_search_per_1k_usd",
  "per_second_usd",
  "per_video_usd"
])

const listedRates = (model: ChatModel | VideoModel): Quote["unit_prices"] =>
  Object.fromEntries(Object.entries(listModel(model).pricing).filter(([name]) => rates.has(name)))

const offer = (id: string, asked: NanoUsd, unit_prices: Quote["unit_prices"], chat?: ChatQuote): Offer => {
  const upTo = min(asked, maxStored)
  return {
    upTo,
    shown: {
      object: "quote",
      model: id,
      hold_usd: toUsd(upTo),
      max_charge_usd: toUsd(upTo),
      prompt_tokens_bound: chat?.price.promptTokens ?? null,
      max_output_tokens: chat?.price.cap ?? null,
      unit_prices
    }
  }
}

export const chatOffer = (model: ChatModel, quote: ChatQuote): Offer =>
  offer(model.id, quote.upTo, listedRates(model), quote)

export const imageOffer = ({ id }: ImageModel, variant: ImageVariant): Offer => {
  const price = imagePrice(variant)
  return offer(id, price, { per_image_usd: toUsd(price) })
}

export const videoOffer = (model: VideoModel, price: NanoUsd): Offer => offer(model.id, price, listedRates(model))

export const quoteJson = ({ shown }: Offer, affordable: boolean): Quote => ({ ...shown, affordable })

import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { imagePrice } from "../../domain/Image.ts"
import type { ChatModel, ImageModel, ImageVariant, VideoModel } from "../../domain/Model.ts"
import { maxStored, min, type NanoUsd, toUsd } from "../../domain/Money.ts"
import type { ChatQuote } from "../../domain/Pricing.ts"
import { listModel } from "../../services/catalog/Surfaces.ts"
import { completeChat } from "../chat/ChatSchema.ts"
import { CountTokensErrors } from "../errors/Schemas.ts"
import { editImage, generateImage } from "../images/ImageBody.ts"
import { createMessage } from "../messages/MessagesSchema.ts"
import { createResponse } from "../responses/ResponsesSchema.ts"
import { problem } from "../schema/Decoding.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { AnyObject } from "../schema/SharedFields.ts"
import { createVideo } from "../videos/VideoBody.ts"

/** In the order in which a refusal names them. */
const quotable = [completeChat, createMessage, createResponse, generateImage, editImage, createVideo]
const quotablePaths: ReadonlyArray<string> = quotable.map(servedPath)

const listed = quotablePaths.join(", ")

export const QuoteRequest = Schema.Struct({
  endpoint: Schema.String.pipe(
    Schema.filter((path) => quotablePaths.includes(path), { jsonSchema: { enum: [...quotablePaths] } })
  ).annotations({ ...problem(`must be one of ${listed}`), description: "The path of the request." }),
  body: AnyObject.annotations({
    ...problem("must be an object: the JSON body of the request"),
    description: "What you would send there, as JSON."
  })
}).annotations({ identifier: "QuoteRequest" })

const Usd = Schema.Number
const Tokens = Schema.NullOr(Integer)

const Quote = Schema.Struct({
  object: Schema.Literal("quote"),
  model: Schema.String.annotations({ description: "The catalog id." }),
  hold_usd: Usd.annotations({ description: "What the request holds of the balance while it runs." }),
  max_charge_usd: Usd.annotations({
    description: "The most that it is charged: of images and videos exactly what it is charged."
  }),
  prompt_tokens_bound: Tokens.annotations({
    description: "The most tokens that its prompt can have; null for images and videos."
  }),
  max_output_tokens: Tokens.annotations({
    description: "The output that the hold covers; null for images and videos."
  }),
  unit_prices: AnyObject.annotations({
    description: "The rates that its charge is made of, named as in `pricing` of the list of models."
  }),
  affordable: Schema.Boolean.annotations({
    description:
      "Whether the hold would be placed now, by the balance and the spending caps of the key and its organization."
  })
}).annotations({ identifier: "Quote", description: "What the request would cost." })
type Quote = typeof Quote.Type

export const createQuote = HttpApiEndpoint.post("create", "/quote")
  .setHeaders(GatewayTag)
  .setPayload(QuoteRequest)
  .addSuccess(Quote)
  .addError(CountTokensErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createQuote",
      summary: "Ask what a request would cost",
      description:
        "Takes the body of a request that generates, and answers what it would be held and charged, or the error that it would get before its hold. Nothing is held, fetched or asked; it takes one request of the key's rate."
    })
  )

export const Quotes = HttpApiGroup.make("quotes")
  .add(createQuote)
  .annotate(OpenApi.Description, "What a request would cost, before you send it.")
  .middleware(Authenticated)

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

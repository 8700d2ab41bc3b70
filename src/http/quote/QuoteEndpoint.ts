import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { BodyTooLarge, type Failure, InvalidRequest } from "../../domain/Failure.ts"
import { imagePrice } from "../../domain/Image.ts"
import type { ChatModel, ImageModel, ImageVariant, Surface, VideoModel } from "../../domain/Model.ts"
import { maxStored, min, type NanoUsd, toUsd } from "../../domain/Money.ts"
import type { ChatQuote } from "../../domain/Pricing.ts"
import { tokenKinds } from "../../domain/TokenKinds.ts"
import { listModel } from "../../services/catalog/ModelEntry.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { termsOf } from "../../services/ledger/HoldPlacement.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { VideoJobs } from "../../services/videos/VideoJobs.ts"
import { type Admission, type Endpoint, findScopeRefusal } from "../admission/Admission.ts"
import { Limits, readJsonBody } from "../body/BodyReader.ts"
import type { JsonObject } from "../body/Guards.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { completeChat } from "../chat/ChatSchema.ts"
import { makeTaskDecoder } from "../chat/ChatTasks.ts"
import { CountTokensErrors, renameField } from "../errors/ErrorMessages.ts"
import { json } from "../HttpAnswer.ts"
import { editImage, generateImage, makeImageReader } from "../images/ImageBody.ts"
import { decodeReferences } from "../images/ImageReferences.ts"
import { createMessage } from "../messages/MessagesSchema.ts"
import { createResponse } from "../responses/ResponsesSchema.ts"
import { makeBodyDecoder, problem } from "../schema/Decoding.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { AnyObject, mustBeOneOf } from "../schema/SharedFields.ts"
import { createVideo, makeVideoReader } from "../videos/VideoBody.ts"

/** The endpoints whose requests can be quoted, in the order of the error message that lists them. */
const quotableEndpoints = [completeChat, createMessage, createResponse, generateImage, editImage, createVideo]
const quotablePaths: ReadonlyArray<string> = quotableEndpoints.map(servedPath)

const QuoteRequest = Schema.Struct({
  endpoint: Schema.String.pipe(
    Schema.filter((path) => quotablePaths.includes(path), { jsonSchema: { enum: [...quotablePaths] } })
  ).annotations({ ...problem(mustBeOneOf(quotablePaths)), description: "The path of the request." }),
  body: AnyObject.annotations({
    ...problem("must be an object: the JSON body of the request"),
    description: "The JSON body of the request."
  })
}).annotations({ identifier: "QuoteRequest" })

const Usd = Schema.Number
const Tokens = Schema.NullOr(Integer)

const Quote = Schema.Struct({
  object: Schema.Literal("quote"),
  model: Schema.String.annotations({ description: "The catalog id." }),
  hold_usd: Usd.annotations({ description: "The amount that the request reserves while it runs." }),
  max_charge_usd: Usd.annotations({
    description: "The maximum charge. For images and videos, the exact charge."
  }),
  prompt_tokens_bound: Tokens.annotations({
    description: "The prompt tokens that the hold covers. Null for images and videos."
  }),
  max_output_tokens: Tokens.annotations({
    description: "The output tokens that the hold covers. Null for images and videos."
  }),
  unit_prices: AnyObject.annotations({
    description: "The prices that determine the charge, named as in `pricing` in the list of models."
  }),
  affordable: Schema.Boolean.annotations({
    description: "Whether the balance and the spending caps cover the hold now."
  })
}).annotations({ identifier: "Quote", description: "The quote." })
type Quote = typeof Quote.Type

const createQuote = HttpApiEndpoint.post("create", "/quote")
  .setHeaders(GatewayTag)
  .setPayload(QuoteRequest)
  .addSuccess(Quote)
  .addError(CountTokensErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createQuote",
      summary: "Get a quote",
      description:
        "Returns the hold and the charge of a request, or the error that the request would return. A quote reserves nothing, fetches nothing and calls no provider. It uses one request of the key's rate limit."
    })
  )

export const Quotes = HttpApiGroup.make("quotes")
  .add(createQuote)
  .annotate(OpenApi.Description, "The price of a request before you send it.")
  .middleware(Authenticated)

/** A quote before the balance check. `upTo` is the hold. */
interface PricedRequest {
  readonly upTo: NanoUsd
  readonly quote: Omit<Quote, "affordable">
}

/** The names in `pricing` that determine a charge. A quote lists only these. */
const chargedPrices: ReadonlySet<string> = new Set([
  ...Object.values(tokenKinds).map(({ price }) => price),
  "long_context",
  "web_search_per_1k_usd",
  "per_second_usd",
  "per_video_usd"
])

const listUnitPrices = (model: ChatModel | VideoModel): Quote["unit_prices"] =>
  Object.fromEntries(Object.entries(listModel(model).pricing).filter(([name]) => chargedPrices.has(name)))

const priceRequest = (
  id: string,
  price: NanoUsd,
  unit_prices: Quote["unit_prices"],
  chat?: ChatQuote
): PricedRequest => {
  const upTo = min(price, maxStored)
  return {
    upTo,
    quote: {
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

export const priceChat = (model: ChatModel, quote: ChatQuote): PricedRequest =>
  priceRequest(model.id, quote.upTo, listUnitPrices(model), quote)

const priceImage = ({ id }: ImageModel, variant: ImageVariant): PricedRequest => {
  const price = imagePrice(variant)
  return priceRequest(id, price, { per_image_usd: toUsd(price) })
}

const priceVideo = (model: VideoModel, price: NanoUsd): PricedRequest =>
  priceRequest(model.id, price, listUnitPrices(model))

export const quoteJson = ({ quote }: PricedRequest, affordable: boolean): Quote => ({ ...quote, affordable })

interface QuoteInput {
  readonly admission: Admission
  readonly body: JsonObject
  /** The length of the whole quote request in bytes. */
  readonly bytes: number
}

/** Prices the requests of an endpoint. `price` fails as the request would before its hold. */
interface Quoter {
  readonly surface: Surface
  readonly price: (
    input: QuoteInput
  ) => Effect.Effect<PricedRequest & { readonly canReduceHold?: boolean | undefined }, Failure>
}

export const decodeQuoteBody = makeBodyDecoder(QuoteRequest)

/** Quotes a request without a hold, a charge, a call of a provider or a row in the request log. */
export const quoteEndpoint = Effect.fnUntraced(function* (dialects: ReadonlyArray<ChatDialect>) {
  const chat = yield* ChatCompletions
  const decodeTask = yield* makeTaskDecoder
  const ledger = yield* Ledger
  const limits = yield* Limits
  const readImage = yield* makeImageReader
  const readVideo = yield* makeVideoReader
  const videos = yield* VideoJobs

  const quoteChat = (dialect: ChatDialect): Quoter => ({
    surface: "chat",
    price: ({ admission, body, bytes }) =>
      Effect.gen(function* () {
        const limitBytes = limits.chatBodyBytes
        if (bytes > limitBytes) return yield* new BodyTooLarge({ limitBytes })
        const task = yield* decodeTask(dialect, admission, { value: body, bytes })
        return { ...priceChat(task.model, yield* chat.quote(task)), canReduceHold: task.canReduceHold }
      }).pipe(
        Effect.catchTag(
          "InvalidRequest",
          (refusal) => new InvalidRequest(renameField(refusal, dialect.fieldNames ?? {}))
        )
      )
  })

  const quoteImage = (needsReference: boolean): Quoter => ({
    surface: "image",
    price: Effect.fnUntraced(function* ({ admission, body }) {
      const { selection } = yield* readImage(admission, yield* decodeReferences(body), needsReference)
      const { model, variant } = yield* selection
      return priceImage(model, variant)
    })
  })

  const quoteVideo: Quoter = {
    surface: "video",
    price: Effect.fnUntraced(function* ({ admission, body }) {
      const { params, selection } = yield* readVideo(admission, body)
      const { model, seconds } = yield* selection
      return priceVideo(model, yield* videos.quote({ model, params, seconds }))
    })
  }

  const quoters: ReadonlyMap<string, Quoter> = new Map([
    ...dialects.map((dialect) => [dialect.path, quoteChat(dialect)] as const),
    [servedPath(generateImage), quoteImage(false)],
    [servedPath(editImage), quoteImage(true)],
    [servedPath(createVideo), quoteVideo]
  ])

  const endpoint: Endpoint = {
    path: servedPath(createQuote),
    surface: "chat",
    checksScope: true,
    admitsWithHold: false,
    handle: Effect.fnUntraced(function* (admission) {
      const { headers, record } = admission
      record.add({ type: "unlogged" })
      const { bytes, value } = yield* readJsonBody(admission, Math.max(limits.chatBodyBytes, limits.mediaBodyBytes))
      const { body, endpoint: path } = yield* decodeQuoteBody(value)
      const quoter = quoters.get(path)
      if (quoter === undefined) return yield* Effect.dieMessage(`no quoter for ${path}`)
      const { caller } = record.facts
      const refusal = findScopeRefusal(caller, quoter.surface)
      if (refusal !== undefined) return yield* refusal
      const pricedRequest = yield* quoter.price({ admission, body, bytes })
      const { canReduceHold, upTo } = pricedRequest
      const affordable = yield* ledger.canAfford({ ...termsOf(caller), upTo, canReduceHold })
      return json(200, quoteJson(pricedRequest, affordable), headers())
    })
  }
  return endpoint
})

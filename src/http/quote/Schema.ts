import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { completeChat } from "../chat/ChatSchema.ts"
import { CountTokensErrors } from "../errors/Schemas.ts"
import { editImage, generateImage } from "../images/Schema.ts"
import { createMessage } from "../messages/MessagesSchema.ts"
import { createResponse } from "../responses/ResponsesSchema.ts"
import { problem } from "../schema/Decoding.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { servedPath } from "../schema/ServedPath.ts"
import { AnyObject } from "../schema/SharedFields.ts"
import { createVideo } from "../videos/Schema.ts"

/** In the order in which a refusal names them. */
const quotable = [completeChat, createMessage, createResponse, generateImage, editImage, createVideo]
export const quotablePaths: ReadonlyArray<string> = quotable.map(servedPath)

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

export const Quote = Schema.Struct({
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
export type Quote = typeof Quote.Type

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

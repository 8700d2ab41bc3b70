import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ReadErrors, UnknownModel } from "../errors/Schemas.ts"
import { atLeast, between, Integer, matching } from "../schema/Constraints.ts"
import { Authenticated } from "../schema/Headers.ts"

const Usd = Schema.Number.pipe(atLeast(0))
const Discount = Schema.optional(Integer.pipe(between(1, 100))).annotations({
  description: "Saving against the official list price, in percent; present when cheaper."
})
const Approximate = Schema.Boolean.annotations({ description: "Billing uses what was actually used." })

const tokenPrices = {
  prompt_per_1m_usd: Usd,
  completion_per_1m_usd: Usd,
  cached_prompt_per_1m_usd: Usd.annotations({ description: "Prompt tokens read from the provider's cache." }),
  cache_write_per_1m_usd: Usd.annotations({ description: "Prompt tokens written to it." }),
  cache_write_1h_per_1m_usd: Usd.annotations({ description: "Those to be kept for an hour." })
}
const UsdPerToken = matching(/^\d+(?:\.\d+)?$/)

const ChatPricing = Schema.Struct({
  ...tokenPrices,
  long_context: Schema.optional(Schema.Struct({ above: Integer.pipe(atLeast(1)), ...tokenPrices })).annotations({
    description: "The prices of the whole request where its prompt has more than `above` tokens."
  }),
  prompt: UsdPerToken.annotations({ description: "USD per token, exact, as are the following four." }),
  completion: UsdPerToken,
  input_cache_read: UsdPerToken,
  input_cache_write: UsdPerToken,
  input_cache_write_1h: UsdPerToken,
  web_search_per_1k_usd: Schema.optional(Usd).annotations({ description: "A thousand web searches; if they cost." }),
  web_search: Schema.optional(UsdPerToken).annotations({ description: "USD per search, exact." }),
  max_web_searches: Schema.optional(Integer).annotations({
    description: "Searches of one request that are charged at most."
  }),
  approximate: Approximate,
  discount_pct: Discount,
  official_prompt_per_1m_usd: Schema.optional(Usd),
  official_completion_per_1m_usd: Schema.optional(Usd)
}).annotations({ identifier: "ChatPricing", description: "USD per million tokens." })

const Resolution = Schema.Literal("1K", "2K", "4K")

const VariantPrice = Schema.Struct({
  resolution: Resolution,
  sizes: Schema.optional(Schema.Array(Schema.String)),
  aspect_ratios: Schema.optional(Schema.Array(Schema.String)),
  per_image_usd: Usd,
  official_per_image_usd: Schema.optional(Usd)
}).annotations({ identifier: "VariantPrice", description: "A resolution, and its shapes of this price." })

const ImagePricing = Schema.Struct({
  per_image_usd: Usd,
  per_image_4k_usd: Schema.optional(Usd).annotations({ description: "The cheapest 4K variant, when offered." }),
  variants: Schema.Array(VariantPrice).annotations({ description: "Every price; the default one first." }),
  approximate: Approximate,
  discount_pct: Discount,
  official_per_image_usd: Schema.optional(Usd)
}).annotations({ identifier: "ImagePricing", description: "USD per image." })

const VideoPricing = Schema.Struct({
  per_second_usd: Schema.optional(Usd).annotations({ description: "Models priced by length." }),
  per_video_usd: Schema.optional(Usd).annotations({ description: "Models priced by clip." }),
  approximate: Approximate,
  discount_pct: Discount,
  official_per_second_usd: Schema.optional(Usd),
  official_per_video_usd: Schema.optional(Usd)
}).annotations({ identifier: "VideoPricing", description: "USD per second or per clip." })

const ParamField = Schema.Struct({
  key: Schema.String.annotations({ description: "The request field's name." }),
  type: Schema.Literal("slider", "number", "boolean", "select", "image", "text"),
  default: Schema.optional(Schema.Union(Schema.Number, Schema.String, Schema.Boolean)),
  min: Schema.optional(Schema.Number),
  max: Schema.optional(Schema.Number),
  step: Schema.optional(Schema.Number),
  options: Schema.optional(Schema.Array(Schema.String))
}).annotations({ identifier: "ParamField" })

const Modality = Schema.Literal("text", "image", "video")

const ImageLimits = Schema.Struct({
  max_references: Integer.annotations({ description: "Reference images of one request; 0 without `edit`." }),
  max_n: Integer.annotations({ description: "Images of one request." }),
  resolutions: Schema.Array(Resolution),
  sizes: Schema.Array(Schema.String).annotations({
    description: "Exact sizes; where empty, a `size` stands for its aspect ratio."
  }),
  aspect_ratios: Schema.Array(Schema.String)
}).annotations({ identifier: "ImageLimits" })

const VideoLimits = Schema.Struct({
  seconds: Schema.Struct({ allowed: Schema.Array(Integer), default: Integer }),
  reference_image: Schema.Literal("none", "optional", "required")
}).annotations({ identifier: "VideoLimits" })

export const Model = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Integer.annotations({ description: "Unix seconds." }),
  owned_by: Schema.Literal("generation-gateway"),
  surface: Schema.Literal("chat", "image", "video"),
  context_length: Schema.optional(Integer).annotations({ description: "Tokens; chat models." }),
  top_provider: Schema.optional(Schema.Struct({ context_length: Integer, max_completion_tokens: Integer })).annotations(
    {
      description: "Limits in tokens; chat models."
    }
  ),
  architecture: Schema.Struct({
    input_modalities: Schema.Array(Modality),
    output_modalities: Schema.Array(Modality)
  }),
  capabilities: Schema.Array(
    Schema.Literal("tools", "vision", "response_format", "web_search", "reasoning", "edit", "reference_image")
  ).annotations({ description: "A request for one that is not here is refused." }),
  supported_parameters: Schema.Array(Schema.String).annotations({
    description: "The optional fields that decide what is generated, as far as the model honours them."
  }),
  image: Schema.optional(ImageLimits).annotations({ description: "Image models." }),
  video: Schema.optional(VideoLimits).annotations({ description: "Video models." }),
  pricing: Schema.Union(ChatPricing, ImagePricing, VideoPricing),
  params: Schema.Array(ParamField)
}).annotations({ identifier: "Model" })

export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Model)
}).annotations({ identifier: "ModelList", description: "Every callable model, in the catalog's order." })

export const ModelInfo = Schema.Struct({
  type: Schema.Literal("model"),
  id: Schema.String,
  display_name: Schema.String,
  created_at: Schema.String.annotations({ description: "As RFC 3339 has it." }),
  max_input_tokens: Integer,
  max_tokens: Integer
}).annotations({ identifier: "ModelInfo", description: "A chat model, to a request with `anthropic-version`." })
export type ModelInfo = typeof ModelInfo.Type

export const ModelPage = Schema.Struct({
  data: Schema.Array(ModelInfo),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
}).annotations({ identifier: "ModelPage", description: "Chat models, to a request with `anthropic-version`." })
export type ModelPage = typeof ModelPage.Type

const list = HttpApiEndpoint.get("list", "/models")
  .addSuccess(Schema.Union(ModelList, ModelPage))
  .addError(ReadErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "listModels",
      summary: "List models",
      description:
        "To a request with the header `anthropic-version`, which Anthropic's clients send, a page of the chat models in their shape, with `limit`, `after_id` and `before_id`."
    })
  )

const retrieve = HttpApiEndpoint.get("retrieve", "/models/:id")
  .setPath(Schema.Struct({ id: Schema.String.annotations({ description: "May contain slashes, escaped or not." }) }))
  .addSuccess(Schema.Union(Model, ModelInfo))
  .addError(ReadErrors)
  .addError(UnknownModel)
  .annotateContext(OpenApi.annotations({ identifier: "getModel", summary: "Get a model" }))

/** What the router serves: an id may hold slashes. */
const retrieveAnyPath = HttpApiEndpoint.get("retrieve", "/models/*")
  .setPath(Schema.Struct({ "*": Schema.String }))
  .addSuccess(Schema.Union(Model, ModelInfo))
  .addError(ReadErrors)
  .addError(UnknownModel)

export const Models = HttpApiGroup.make("models")
  .add(list)
  .add(retrieve)
  .annotate(OpenApi.Description, "What can be called, with prices and the parameters that each model takes.")
  .middleware(Authenticated)
export const ModelsRead = HttpApiGroup.make("models").add(list).add(retrieveAnyPath).middleware(Authenticated)

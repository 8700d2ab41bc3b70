import { Schema } from "effect"
import { atLeast, between, described, Integer, matching } from "./Constraints.ts"
import { Resolution, Surface } from "./Model.ts"

const Usd = Schema.Number.pipe(atLeast(0))
const Discount = described(
  Integer.pipe(between(1, 100)),
  "Saving against the official list price, in percent; present when cheaper."
)
const Approximate = Schema.Boolean.annotations({ description: "Billing uses what was actually used." })

const TokenPrices = Schema.Struct({
  prompt_per_1m_usd: Usd,
  completion_per_1m_usd: Usd,
  cached_prompt_per_1m_usd: Usd.annotations({ description: "Prompt tokens read from the provider's cache." }),
  cache_write_per_1m_usd: Usd.annotations({ description: "Prompt tokens written to it." }),
  cache_write_1h_per_1m_usd: Usd.annotations({ description: "Those to be kept for an hour." })
})
export type TokenPrices = typeof TokenPrices.Type
const UsdPerToken = matching(/^\d+(?:\.\d+)?$/)

const ChatPrices = Schema.Struct({
  ...TokenPrices.fields,
  long_context: described(
    Schema.Struct({ above: Integer.pipe(atLeast(1)), ...TokenPrices.fields }),
    "The prices of the whole request where its prompt has more than `above` tokens."
  ),
  prompt: UsdPerToken.annotations({ description: "USD per token, exact, as are the following four." }),
  completion: UsdPerToken,
  input_cache_read: UsdPerToken,
  input_cache_write: UsdPerToken,
  input_cache_write_1h: UsdPerToken,
  web_search_per_1k_usd: described(Usd, "A thousand web searches; if they cost."),
  web_search: described(UsdPerToken, "USD per search, exact."),
  max_web_searches: described(Integer, "Searches of one request that are charged at most."),
  approximate: Approximate,
  discount_pct: Discount,
  official_prompt_per_1m_usd: Schema.optional(Usd),
  official_completion_per_1m_usd: Schema.optional(Usd)
}).annotations({ identifier: "ChatPricing", description: "USD per million tokens." })
export type ChatPrices = typeof ChatPrices.Type

const VariantPrice = Schema.Struct({
  resolution: Resolution,
  sizes: Schema.optional(Schema.Array(Schema.String)),
  aspect_ratios: Schema.optional(Schema.Array(Schema.String)),
  per_image_usd: Usd,
  official_per_image_usd: Schema.optional(Usd)
}).annotations({ identifier: "VariantPrice", description: "A resolution, and its shapes of this price." })
export type VariantPrice = typeof VariantPrice.Type

const ImagePrices = Schema.Struct({
  per_image_usd: Usd,
  per_image_4k_usd: described(Usd, "The cheapest 4K variant, when offered."),
  variants: Schema.Array(VariantPrice).annotations({ description: "Every price; the default one first." }),
  approximate: Approximate,
  discount_pct: Discount,
  official_per_image_usd: Schema.optional(Usd)
}).annotations({ identifier: "ImagePricing", description: "USD per image." })
export type ImagePrices = typeof ImagePrices.Type

const VideoPrices = Schema.Struct({
  per_second_usd: described(Usd, "Models priced by length."),
  per_video_usd: described(Usd, "Models priced by clip."),
  approximate: Approximate,
  discount_pct: Discount,
  official_per_second_usd: Schema.optional(Usd),
  official_per_video_usd: Schema.optional(Usd)
}).annotations({ identifier: "VideoPricing", description: "USD per second or per clip." })
export type VideoPrices = typeof VideoPrices.Type

const withDate = <Fields extends Schema.Struct.Fields>({ fields }: Schema.Struct<Fields>) =>
  Schema.Struct({ at: Integer.annotations({ description: "Unix seconds." }), ...fields })

const ParamField = Schema.Struct({
  key: Schema.String.annotations({ description: "The request field's name." }),
  type: Schema.Literal("slider", "number", "boolean", "select", "image", "text"),
  default: Schema.optional(Schema.Union(Schema.Number, Schema.String, Schema.Boolean)),
  min: Schema.optional(Schema.Number),
  max: Schema.optional(Schema.Number),
  step: Schema.optional(Schema.Number),
  options: Schema.optional(Schema.Array(Schema.String))
}).annotations({ identifier: "ParamField" })
export type ParamField = typeof ParamField.Type

const Modality = Schema.Literal("text", "image", "video")

const ImageLimits = Schema.Struct({
  max_references: Integer.annotations({ description: "Reference images of one request; 0 without `edit`." }),
  max_n: Integer.annotations({ description: "Images of one request." }),
  resolutions: Schema.Array(Resolution),
  sizes: Schema.Array(Schema.String).annotations({
    description: "Exact sizes; where empty, a `size` stands for its aspect ratio; without either, images are squares."
  }),
  aspect_ratios: Schema.Array(Schema.String)
}).annotations({ identifier: "ImageLimits" })

const VideoLimits = Schema.Struct({
  seconds: Schema.Struct({ allowed: Schema.Array(Integer), default: Integer }),
  reference_image: Schema.Literal("none", "optional", "required")
}).annotations({ identifier: "VideoLimits" })

export const ListedModel = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Integer.annotations({ description: "Unix seconds." }),
  owned_by: Schema.Literal("generation-gateway"),
  surface: Surface,
  context_length: described(Integer, "Tokens; chat models."),
  top_provider: described(
    Schema.Struct({ context_length: Integer, max_completion_tokens: Integer }),
    "Limits in tokens; chat models."
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
  image: described(ImageLimits, "Image models."),
  video: described(VideoLimits, "Video models."),
  pricing: Schema.Union(ChatPrices, ImagePrices, VideoPrices),
  next_pricing: described(
    Schema.Union(withDate(ChatPrices), withDate(ImagePrices), withDate(VideoPrices)),
    "The prices of requests that arrive from `at` on, where a change is known."
  ),
  params: Schema.Array(ParamField)
}).annotations({ identifier: "Model" })
export type ListedModel = typeof ListedModel.Type

/** What a surface says of its model. */
export type Listing = Omit<ListedModel, "id" | "object" | "created" | "owned_by" | "surface" | "next_pricing">

type Against = readonly [price: bigint, official: bigint | undefined]

/** In whole percent; empty unless every official price is undercut. */
export const discount = (...prices: ReadonlyArray<Against>): { readonly discount_pct?: number } => {
  const saved = prices.flatMap(([price, official]) =>
    official === undefined || official === 0n ? [] : [Number(((official - price) * 100n) / official)]
  )
  const least = Math.min(...saved)
  return saved.length > 0 && least > 0 ? { discount_pct: least } : {}
}

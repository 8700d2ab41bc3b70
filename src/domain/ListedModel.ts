import { Record, Schema } from "effect"
import { atLeast, between, describedField, Integer, matching } from "./Constraints.ts"
import { Resolution, Surface } from "./Model.ts"
import { baseKinds, partKinds, tokenKinds } from "./TokenKinds.ts"

const Usd = Schema.Number.pipe(atLeast(0))
const Discount = describedField(
  Integer.pipe(between(1, 100)),
  "The saving compared with the official list price, in percent. Present if the price is lower."
)
const Approximate = Schema.Boolean.annotations({ description: "If true, the charge depends on actual usage." })

const tokenPrices = {
  ...Record.mapEntries(baseKinds, ({ price }) => [price, Usd]),
  ...Record.mapEntries(partKinds, ({ description, price }) => [price, Usd.annotations({ description })])
}
const UsdPerToken = matching(/^\d+(?:\.\d+)?$/)

const ChatPrices = Schema.Struct({
  ...tokenPrices,
  long_context: describedField(
    Schema.Struct({ above: Integer.pipe(atLeast(1)), ...tokenPrices }),
    "The prices of the whole request if its prompt has more than `above` tokens."
  ),
  ...Record.mapEntries(tokenKinds, ({ exact }) => [exact, UsdPerToken]),
  prompt: UsdPerToken.annotations({
    description: "USD per token, as an exact decimal. `completion` and the `input_cache_…` fields have the same form."
  }),
  web_search_per_1k_usd: describedField(Usd, "The price of 1,000 web searches. Absent if they are free."),
  web_search: describedField(UsdPerToken, "USD per search, as an exact decimal."),
  max_web_searches: describedField(Integer, "The maximum number of searches that one request pays for."),
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
}).annotations({
  identifier: "VariantPrice",
  description: "A resolution, and the sizes or aspect ratios that have this price."
})
export type VariantPrice = typeof VariantPrice.Type

const ImagePrices = Schema.Struct({
  per_image_usd: Usd,
  per_image_4k_usd: describedField(Usd, "The cheapest 4K variant, if the model has one."),
  variants: Schema.Array(VariantPrice).annotations({ description: "All prices. The first one is the default." }),
  approximate: Approximate,
  discount_pct: Discount,
  official_per_image_usd: Schema.optional(Usd)
}).annotations({ identifier: "ImagePricing", description: "USD per image." })
export type ImagePrices = typeof ImagePrices.Type

const VideoPrices = Schema.Struct({
  per_second_usd: describedField(Usd, "Models priced by length."),
  per_video_usd: describedField(Usd, "Models priced by clip."),
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
  max_references: Integer.annotations({
    description: "The maximum number of reference images per request; 0 if the model cannot edit."
  }),
  max_n: Integer.annotations({ description: "The maximum number of images per request." }),
  resolutions: Schema.Array(Resolution),
  sizes: Schema.Array(Schema.String).annotations({
    description:
      "Exact sizes. If empty, `size` selects only its aspect ratio. Without sizes and aspect ratios, images are square."
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
  context_length: describedField(Integer, "Tokens, for chat models."),
  top_provider: describedField(
    Schema.Struct({ context_length: Integer, max_completion_tokens: Integer }),
    "Limits in tokens, for chat models."
  ),
  architecture: Schema.Struct({
    input_modalities: Schema.Array(Modality),
    output_modalities: Schema.Array(Modality)
  }),
  capabilities: Schema.Array(
    Schema.Literal("tools", "vision", "response_format", "web_search", "reasoning", "edit", "reference_image")
  ).annotations({ description: "A request for an unlisted capability is refused." }),
  supported_parameters: Schema.Array(Schema.String).annotations({
    description: "The optional fields that the model supports."
  }),
  image: describedField(ImageLimits, "For image models."),
  video: describedField(VideoLimits, "For video models."),
  pricing: Schema.Union(ChatPrices, ImagePrices, VideoPrices),
  next_pricing: describedField(
    Schema.Union(withDate(ChatPrices), withDate(ImagePrices), withDate(VideoPrices)),
    "The prices of requests that arrive at `at` or later. Present if a change is scheduled."
  ),
  params: Schema.Array(ParamField)
}).annotations({ identifier: "Model" })
export type ListedModel = typeof ListedModel.Type

/** The fields that depend on the model's surface. */
export type Listing = Omit<ListedModel, "id" | "object" | "created" | "owned_by" | "surface" | "next_pricing">

type PricePair = readonly [price: bigint, official: bigint | undefined]

/**
 * Returns the smallest saving of the prices in whole percent; an empty object if that is below one, or if no
 * price has an official one.
 */
export const saving = (...prices: ReadonlyArray<PricePair>): { readonly discount_pct?: number } => {
  const savings = prices.flatMap(([price, official]) =>
    official === undefined || official === 0n ? [] : [Number(((official - price) * 100n) / official)]
  )
  const minSaving = Math.min(...savings)
  return savings.length > 0 && minSaving > 0 ? { discount_pct: minSaving } : {}
}

import { Array as Arr, Schema } from "effect"
import { maxReferences } from "../../domain/Media.ts"
import type { ImageVariant, Resolution, Shape } from "../../domain/Model.ts"
import { shapeOf } from "../../domain/Shape.ts"
import { latest, routeAt } from "./DatedPrices.ts"
import {
  AspectRatio,
  dated,
  ImageSize,
  Instant,
  integer,
  model,
  Name,
  oneOf,
  optional,
  route,
  Usd,
  UsdPerMillion
} from "./EntryFields.ts"

const ResolutionName = oneOf("1K", "2K", "4K")
const AspectRatios = Schema.NonEmptyArray(AspectRatio)
const shapes = { sizes: optional(Schema.NonEmptyArray(ImageSize)), aspect_ratios: optional(AspectRatios) }
const Variants = Schema.NonEmptyArray(
  Schema.Struct({ resolution: ResolutionName, ...shapes, price_usd: Usd, official_usd: optional(Usd) })
)
export const VariantCosts = Schema.NonEmptyArray(
  Schema.Struct({ resolution: ResolutionName, ...shapes, price_usd: Usd })
)
const costs = {
  per_image_usd: optional(Usd),
  variants: optional(VariantCosts),
  /** For the tokens of reference images, beside the price of what is made. */
  image_input_per_1m_usd: optional(UsdPerMillion)
}
export const RouteEntry = Schema.Struct({
  ...route,
  edit: optional(Schema.Boolean),
  edit_model: optional(Name),
  resolutions: optional(Schema.NonEmptyArray(ResolutionName)),
  aspect_ratios: optional(AspectRatios),
  cost: optional(Schema.Struct(costs)),
  cost_from: dated(Schema.Struct({ at: Instant, ...costs }))
})
const Official = Schema.Struct({ per_image_usd: Usd })
export const ImageModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("image"),
  variants: optional(Variants),
  pricing: optional(Schema.Struct({ per_image_usd: Usd, official: optional(Official) })),
  pricing_from: dated(
    Schema.Struct({
      at: Instant,
      per_image_usd: optional(Usd),
      official: optional(Official),
      variants: optional(Variants)
    })
  ),
  ...shapes,
  edit: optional(Schema.Boolean),
  max_references: optional(integer(1, maxReferences)),
  routes: Schema.NonEmptyArray(RouteEntry)
})
export type ImageModelEntry = typeof ImageModelEntry.Type

type Variant = (typeof Variants.Type)[number]
type Shapes = Pick<Variant, "sizes" | "aspect_ratios">

/** A model without variants has one; none where the price is missing. */
const rowsOf = ({ pricing, variants }: ImageModelEntry): ReadonlyArray<Variant> => {
  if (variants !== undefined || pricing === undefined) return variants ?? []
  const official = pricing.official?.per_image_usd
  return [
    {
      resolution: "1K",
      price_usd: pricing.per_image_usd,
      ...(official === undefined ? {} : { official_usd: official })
    }
  ]
}

export const resolutionsOf = (entry: ImageModelEntry): ReadonlyArray<Resolution> => [
  ...new Set(rowsOf(entry).map(({ resolution }) => resolution))
]

/** `[undefined]` where none is named. */
export const shapesOf = ({ aspect_ratios, sizes }: Shapes): ReadonlyArray<Shape | undefined> =>
  sizes?.map(shapeOf) ?? aspect_ratios?.map((aspectRatio) => ({ aspectRatio, size: undefined })) ?? [undefined]

const hasShapes = ({ aspect_ratios, sizes }: Shapes): boolean => aspect_ratios !== undefined || sizes !== undefined

/** A variant's own shapes win over the model's. */
export const variantsOf = (entry: ImageModelEntry): ReadonlyArray<ImageVariant> =>
  rowsOf(entry).flatMap((row) =>
    shapesOf(hasShapes(row) ? row : entry).map((shape) => ({
      resolution: row.resolution,
      shape,
      price: row.price_usd,
      official: row.official_usd
    }))
  )

/** Later prices are of the same variants, by whichever way they are written. */
export const imageEntryAt = ({ pricing, variants, ...entry }: ImageModelEntry, at: number): ImageModelEntry => {
  const {
    official,
    per_image_usd,
    variants: datedVariants
  } = latest(entry.pricing_from, at) ?? {
    ...pricing,
    variants
  }
  return {
    ...entry,
    ...(per_image_usd !== undefined && { pricing: { per_image_usd, ...(official !== undefined && { official }) } }),
    ...(datedVariants !== undefined && { variants: datedVariants }),
    routes: Arr.map(entry.routes, (route) => routeAt(route, at))
  }
}

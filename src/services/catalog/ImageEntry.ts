import { Array as Arr, Schema } from "effect"
import { defaultFormat, distinct, makesShape, variantCost } from "../../domain/Image.ts"
import { type ImagePrices, type Listing, type ParamField, saving, type VariantPrice } from "../../domain/ListedModel.ts"
import { maxReferences } from "../../domain/Media.ts"
import type { ImageModel, ImageRoute, ImageVariant, Resolution, Shape, ShapeFeature } from "../../domain/Model.ts"
import { min, type NanoUsd, toUsd } from "../../domain/Money.ts"
import { changePrice } from "../../domain/Pricing.ts"
import { shapeOf, variantKey } from "../../domain/Shape.ts"
import type { Path } from "./CatalogSource.ts"
import {
  AspectRatio,
  datedList,
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
import {
  type BaseOf,
  checkNarrowing,
  type EntryOperations,
  findRepeats,
  list,
  type Margin,
  type NonEmpty,
  type Report,
  requireValue,
  sandboxMargin
} from "./EntryOperations.ts"
import { effectiveAt, routeAt } from "./PriceLists.ts"

const ResolutionName = oneOf("1K", "2K", "4K")
const AspectRatios = Schema.NonEmptyArray(AspectRatio)
const shapes = { sizes: optional(Schema.NonEmptyArray(ImageSize)), aspect_ratios: optional(AspectRatios) }
const Variants = Schema.NonEmptyArray(
  Schema.Struct({ resolution: ResolutionName, ...shapes, price_usd: Usd, official_usd: optional(Usd) })
)
const VariantCosts = Schema.NonEmptyArray(Schema.Struct({ resolution: ResolutionName, ...shapes, price_usd: Usd }))
const costs = {
  per_image_usd: optional(Usd),
  variants: optional(VariantCosts),
  /** The cost of reference images by their tokens, in addition to that of the generated image. */
  image_input_per_1m_usd: optional(UsdPerMillion)
}
const RouteEntry = Schema.Struct({
  ...route,
  edit: optional(Schema.Boolean),
  edit_model: optional(Name),
  resolutions: optional(Schema.NonEmptyArray(ResolutionName)),
  aspect_ratios: optional(AspectRatios),
  cost: optional(Schema.Struct(costs)),
  cost_from: datedList(Schema.Struct({ at: Instant, ...costs }))
})
const Official = Schema.Struct({ per_image_usd: Usd })
export const ImageModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("image"),
  variants: optional(Variants),
  pricing: optional(Schema.Struct({ per_image_usd: Usd, official: optional(Official) })),
  pricing_from: datedList(
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

/** Returns the variants; for a model with `pricing` instead, one with its price. Empty if the model has no price. */
const variantEntriesOf = ({ pricing, variants }: ImageModelEntry): ReadonlyArray<Variant> => {
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

const resolutionsOf = (entry: ImageModelEntry): ReadonlyArray<Resolution> => [
  ...new Set(variantEntriesOf(entry).map(({ resolution }) => resolution))
]

/** Returns the shapes that the entry lists, or `[undefined]` if it lists none. */
const shapesOf = ({ aspect_ratios, sizes }: Shapes): ReadonlyArray<Shape | undefined> =>
  sizes?.map(shapeOf) ?? aspect_ratios?.map((aspectRatio) => ({ aspectRatio, size: undefined })) ?? [undefined]

const hasShapes = ({ aspect_ratios, sizes }: Shapes): boolean => aspect_ratios !== undefined || sizes !== undefined

/** Returns a variant per resolution and shape. Shapes of a variant's entry override those of the model. */
const variantsOf = (entry: ImageModelEntry): ReadonlyArray<ImageVariant> =>
  variantEntriesOf(entry).flatMap((row) =>
    shapesOf(hasShapes(row) ? row : entry).map((shape) => ({
      resolution: row.resolution,
      shape,
      price: row.price_usd,
      official: row.official_usd
    }))
  )

/**
 * Later prices are for the same variants. They may use `variants` where the first prices use `per_image_usd`, and vice
 * versa.
 */
const imageEntryAt = ({ pricing, variants, ...entry }: ImageModelEntry, at: number): ImageModelEntry => {
  const {
    official,
    per_image_usd,
    variants: datedVariants
  } = effectiveAt(entry.pricing_from, at) ?? {
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

const listedResolutions = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<Resolution> =>
  Arr.dedupe(variants.map(({ resolution }) => resolution))

const ratiosOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<string> =>
  distinct(variants.map(({ shape }) => shape?.aspectRatio))

const sizesOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<string> =>
  distinct(variants.map(({ shape }) => shape?.size))

/** Returns one entry per resolution and price, with all shapes that have this price. */
const variantPrices = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<VariantPrice> =>
  Object.values(Arr.groupBy(variants, ({ official, price, resolution }) => `${resolution} ${price} ${official}`)).map(
    (group) => {
      const [{ official, price, resolution }] = group
      const sizes = sizesOf(group)
      const ratios = ratiosOf(group)
      return {
        resolution,
        ...(sizes.length > 0 ? { sizes } : ratios.length > 0 && { aspect_ratios: ratios }),
        per_image_usd: toUsd(price),
        ...(official !== undefined && { official_per_image_usd: toUsd(official) })
      }
    }
  )

const imagePrices = ({ variants }: ImageModel): ImagePrices => {
  const [first] = variants
  const prices4k = variants.filter(({ resolution }) => resolution === "4K").map(({ price }) => price)
  return {
    per_image_usd: toUsd(first.price),
    ...(prices4k.length > 0 && { per_image_4k_usd: toUsd(prices4k.reduce(min)) }),
    variants: variantPrices(variants),
    approximate: false,
    ...saving([first.price, first.official]),
    ...(first.official !== undefined && { official_per_image_usd: toUsd(first.official) })
  }
}

const imageParams = ({ edit, id, variants }: ImageModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  const resolutions = listedResolutions(variants)
  if (resolutions.length > 1) {
    fields.push({ key: "resolution", type: "select", default: variants[0].resolution, options: resolutions })
  }
  const ratios = ratiosOf(variants)
  const sizes = sizesOf(variants)
  for (const [key, options] of [
    ["aspect_ratio", ratios],
    ["size", sizes]
  ] as const) {
    if (options.length > 1) fields.push({ key, type: "select", default: "auto", options: ["auto", ...options] })
  }
  if (edit) fields.push({ key: "image", type: "image" })
  const defaultsToUrl = defaultFormat(id) === "url"
  fields.push({
    key: "response_format",
    type: "select",
    ...(defaultsToUrl && { default: "url" }),
    options: ["url", "b64_json"]
  })
  return fields
}

export const listImage = (model: ImageModel): Listing => {
  const { edit, maxReferences, variants } = model
  const params = imageParams(model)
  const ratios = ratiosOf(variants)
  return {
    architecture: { input_modalities: edit ? ["text", "image"] : ["text"], output_modalities: ["image"] },
    capabilities: edit ? ["edit"] : [],
    supported_parameters: distinct([...params.map(({ key }) => key), ratios.length > 1 ? "size" : undefined]),
    image: {
      max_references: edit ? maxReferences : 0,
      max_n: 1,
      resolutions: listedResolutions(variants),
      sizes: sizesOf(variants),
      aspect_ratios: ratios
    },
    pricing: imagePrices(model),
    params
  }
}

const imageMargins = ({ variants }: ImageModel, route: ImageRoute): ReadonlyArray<Margin> => {
  const margins = new Map<string, Margin>()
  for (const variant of variants) {
    const { price, resolution } = variant
    const cost = variantCost(route, variant)
    if (!route.resolutions.has(resolution)) continue
    const isFirst = ![...margins.values()].some(({ unit }) => unit.startsWith(resolution))
    const key = `${resolution} ${price} ${cost}`
    if (!margins.has(key))
      margins.set(key, { unit: `${isFirst ? resolution : variantKey(variant)} image`, price, cost })
  }
  return [...margins.values()]
}

const checkDatedVariants = (report: Report, at: Path, entry: ImageModelEntry) => {
  const own = variantsOf(entry).map(variantKey)
  entry.pricing_from?.forEach(({ at: date, per_image_usd, variants }, index) => {
    const path = [...at, "pricing_from", index]
    if ((per_image_usd === undefined) === (variants === undefined))
      return report(path, "set exactly one of per_image_usd and variants")
    const pricedKeys = variantsOf(imageEntryAt(entry, date)).map(variantKey)
    const isSame = pricedKeys.length === own.length && pricedKeys.every((key) => own.includes(key))
    if (!isSame) report(path, `must price exactly the model's variants: ${list(own)}`)
  })
}

type VariantCost = (typeof VariantCosts.Type)[number]

const costKeys = ({ resolution, ...shapes }: VariantCost): ReadonlyArray<string> =>
  shapesOf(shapes).map((shape) => variantKey({ resolution, shape }))

const checkImage = (report: Report, at: Path, entry: ImageModelEntry) => {
  const { edit = false, pricing, routes, variants } = entry
  if (pricing === undefined && variants === undefined) report(at, "the price is missing: set pricing or variants")
  if (pricing !== undefined && variants !== undefined) report([...at, "pricing"], "set pricing or variants, not both")
  const resolutions = resolutionsOf(entry)
  const ownVariants = variantsOf(entry)
  for (const repeated of findRepeats(ownVariants.map(variantKey)))
    report([...at, "variants"], `resolution ${repeated} appears twice: remove one`)
  const levels = [entry, ...(variants ?? []), ...routes.flatMap(({ cost }) => cost?.variants ?? [])]
  if (levels.some((level) => level.sizes !== undefined && level.aspect_ratios !== undefined))
    report([...at, "sizes"], "set sizes or aspect_ratios, not both")
  const checkRoutes = checkNarrowing(report, at, routes)
  checkDatedVariants(report, at, entry)
  checkRoutes("aspect_ratios", ratiosOf(ownVariants), (route) => route.aspect_ratios)
  checkRoutes("resolutions", resolutions, (route) => route.resolutions)
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    if (!edit && (route.edit === true || route.edit_model !== undefined))
      report(path, "the model does not set edit: true; add it, or remove edit and edit_model here")
    if (route.edit === false && route.edit_model !== undefined)
      report([...path, "edit_model"], "contradicts edit: false: remove one of them")
    const { cost } = route
    if (cost !== undefined && (cost.per_image_usd === undefined) === (cost.variants === undefined)) {
      report([...path, "cost"], "set exactly one of per_image_usd and variants")
    }
    const costedKeys = cost?.variants?.flatMap(costKeys) ?? []
    for (const repeated of findRepeats(costedKeys))
      report([...path, "cost", "variants"], `resolution ${repeated} appears twice: remove one`)
    const own = new Set([...resolutions, ...ownVariants.map(variantKey)])
    const unknownKeys = costedKeys.filter((key) => !own.has(key))
    if (unknownKeys.length > 0)
      report(
        [...path, "cost", "variants"],
        `the model does not have ${list(unknownKeys)}: add it to the model's variants, or remove it here`
      )
  })
  if (edit && routes.every((route) => route.edit === false))
    report([...at, "routes"], "no route serves edit: remove edit: true from the model, or edit: false from a route")
}

const imageCost = (
  cost: ImageModelEntry["routes"][number]["cost"],
  resolutions: ReadonlyArray<Resolution>
): ReadonlyMap<string, NanoUsd> => {
  const flatCost = cost?.per_image_usd
  if (flatCost !== undefined) return new Map(resolutions.map((resolution) => [resolution, flatCost]))
  const costs = new Map<string, NanoUsd>()
  for (const variant of cost?.variants ?? []) {
    for (const key of costKeys(variant)) costs.set(key, variant.price_usd)
    if (!costs.has(variant.resolution)) costs.set(variant.resolution, variant.price_usd)
  }
  return costs
}

const compileImage = (entry: ImageModelEntry, base: BaseOf): ImageModel => {
  const edit = entry.edit ?? false
  const [first, ...others] = variantsOf(entry)
  const variants = [requireValue(first, "pricing"), ...others] as const
  const ratios = ratiosOf(variants)
  return {
    id: entry.id,
    surface: "image",
    created: entry.created ?? 0,
    variants,
    edit,
    maxReferences: entry.max_references ?? maxReferences,
    routes: entry.routes.map((route): ImageRoute => {
      const resolutions = route.resolutions ?? resolutionsOf(entry)
      return {
        ...base(route),
        editModel: edit && route.edit !== false ? (route.edit_model ?? route.model) : undefined,
        resolutions: new Set(resolutions),
        aspectRatios: new Set(route.aspect_ratios ?? ratios),
        cost: imageCost(route.cost, resolutions),
        imageInputCost: route.cost?.image_input_per_1m_usd
      }
    })
  }
}

const narrowImage = (model: ImageModel, routes: NonEmpty<ImageRoute>): ImageModel => {
  const servedVariants = model.variants.filter(({ resolution, shape }) =>
    routes.some((route) => makesShape(route, resolution, shape))
  )
  return {
    ...model,
    routes,
    variants: Arr.isNonEmptyReadonlyArray(servedVariants) ? servedVariants : model.variants,
    edit: routes.some((route) => route.editModel !== undefined)
  }
}

/** Returns the parameter in which calls of the route send the shape; none if they send no shape. */
const shapeFeatures = (entry: ImageModelEntry, route: typeof RouteEntry.Type): ReadonlyArray<ShapeFeature> => {
  const resolutions = new Set(route.resolutions ?? resolutionsOf(entry))
  const variants = variantsOf(entry).filter(({ resolution }) => resolutions.has(resolution))
  const ratios = new Set(route.aspect_ratios ?? ratiosOf(variants))
  const shapedVariants = variants.filter(({ shape }) => shape !== undefined && ratios.has(shape.aspectRatio))
  const hasOneEach = findRepeats(shapedVariants.map(({ resolution }) => resolution)).length === 0
  if (ratios.size < 2 && hasOneEach) return []
  return shapedVariants.every(({ shape }) => shape?.size !== undefined) ? ["size"] : ["aspect_ratio"]
}

export const imageOperations: EntryOperations<ImageModelEntry, ImageModel, ImageRoute> = {
  check: checkImage,
  promises: (entry) =>
    entry.routes.map((route) => {
      const resolutions = route.resolutions ?? resolutionsOf(entry)
      return [
        ...(entry.edit && route.edit !== false ? ["edit" as const] : []),
        ...(resolutions.length > 1 ? resolutions : []),
        ...shapeFeatures(entry, route)
      ]
    }),
  entryAt: imageEntryAt,
  compile: compileImage,
  narrow: narrowImage,
  inSandbox: (model, sandboxRoutes) => {
    const editModel = model.edit ? model.id : undefined
    const resolutions = new Set(model.variants.map(({ resolution }) => resolution))
    const aspectRatios = new Set(
      model.variants.flatMap(({ shape }) => (shape === undefined ? [] : [shape.aspectRatio]))
    )
    const costed = model.routes.find(({ cost }) => cost.size > 0)
    const cost = new Map(
      model.variants.map((variant) => {
        const own = costed && variantCost(costed, variant)
        const isMargin = own !== undefined && own !== variant.price
        return [variantKey(variant), isMargin ? own : changePrice(variant.price, -sandboxMargin)] as const
      })
    )
    const own = { editModel, resolutions, aspectRatios, cost, imageInputCost: undefined }
    return { ...model, routes: sandboxRoutes.map((base) => ({ ...base, ...own })) }
  },
  list: listImage,
  margins: imageMargins
}

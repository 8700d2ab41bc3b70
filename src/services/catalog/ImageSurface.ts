import { Array as Arr, Schema } from "effect"
import type { ImageModel, ImageRoute, ImageVariant, Resolution } from "../../domain/Model.ts"
import { type NanoUsd, toUsd } from "../../domain/Money.ts"
import type { Path } from "./CatalogSource.ts"
import { model, Name, oneOf, optional, route, Usd } from "./EntryFields.ts"
import { discount, type ImagePrices, type ParamField } from "./ListedModel.ts"
import {
  type BaseOf,
  checkNarrowing,
  list,
  type NonEmpty,
  type Report,
  repeats,
  required,
  type Surface
} from "./Surface.ts"

const ResolutionName = oneOf("1K", "2K", "4K")
const Variants = Schema.NonEmptyArray(
  Schema.Struct({ resolution: ResolutionName, price_usd: Usd, official_usd: optional(Usd) })
)
const VariantCosts = Schema.NonEmptyArray(Schema.Struct({ resolution: ResolutionName, price_usd: Usd }))
const RouteEntry = Schema.Struct({
  ...route,
  edit: optional(Schema.Boolean),
  edit_model: optional(Name),
  resolutions: optional(Schema.NonEmptyArray(ResolutionName)),
  cost: optional(Schema.Struct({ per_image_usd: optional(Usd), variants: optional(VariantCosts) }))
})
export const ImageModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("image"),
  variants: optional(Variants),
  pricing: optional(Schema.Struct({ per_image_usd: Usd, official: optional(Schema.Struct({ per_image_usd: Usd })) })),
  edit: optional(Schema.Boolean),
  routes: Schema.NonEmptyArray(RouteEntry)
})
export type ImageModelEntry = typeof ImageModelEntry.Type

const resolutionsOf = ({ variants }: ImageModelEntry): ReadonlyArray<Resolution> =>
  variants?.map(({ resolution }) => resolution) ?? ["1K"]

const checkImage = (report: Report, at: Path, entry: ImageModelEntry) => {
  const { edit = false, pricing, routes, variants } = entry
  if (pricing === undefined && variants === undefined) report(at, "the price is missing: give pricing or variants")
  if (pricing !== undefined && variants !== undefined) report([...at, "pricing"], "give pricing or variants, not both")
  const resolutions = resolutionsOf(entry)
  for (const twice of repeats(resolutions)) report([...at, "variants"], `resolution ${twice} stands twice`)
  checkNarrowing(
    report,
    at,
    "resolutions",
    resolutions,
    routes.map((route) => route.resolutions)
  )
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    if (!edit && (route.edit === true || route.edit_model !== undefined)) report(path, "the model has no edit: true")
    if (route.edit === false && route.edit_model !== undefined)
      report([...path, "edit_model"], "contradicts edit: false")
    const { cost } = route
    if (cost !== undefined && (cost.per_image_usd === undefined) === (cost.variants === undefined)) {
      report([...path, "cost"], "give per_image_usd or variants")
    }
    const costed = cost?.variants?.map(({ resolution }) => resolution) ?? []
    for (const twice of repeats(costed)) report([...path, "cost", "variants"], `resolution ${twice} stands twice`)
    const foreign = costed.filter((resolution) => !resolutions.includes(resolution))
    if (foreign.length > 0) report([...path, "cost", "variants"], `the model itself does not have ${list(foreign)}`)
  })
  if (edit && routes.every((route) => route.edit === false)) report([...at, "routes"], "no route serves edit")
}

const imageVariants = ({ pricing, variants }: ImageModelEntry): ImageModel["variants"] => {
  const variant = ({ resolution, price_usd, official_usd }: NonNullable<typeof variants>[0]): ImageVariant => ({
    resolution,
    price: price_usd,
    official: official_usd
  })
  if (variants !== undefined) return [variant(variants[0]), ...variants.slice(1).map(variant)]
  return [
    { resolution: "1K", price: required(pricing, "pricing").per_image_usd, official: pricing?.official?.per_image_usd }
  ]
}

const imageCost = (
  cost: ImageModelEntry["routes"][number]["cost"],
  resolutions: ReadonlyArray<Resolution>
): ReadonlyMap<Resolution, NanoUsd> => {
  const flat = cost?.per_image_usd
  if (flat !== undefined) return new Map(resolutions.map((resolution) => [resolution, flat]))
  return new Map(cost?.variants?.map(({ resolution, price_usd }) => [resolution, price_usd]))
}

const compileImage = (entry: ImageModelEntry, base: BaseOf): ImageModel => {
  const variants = imageVariants(entry)
  const edit = entry.edit ?? false
  return {
    id: entry.id,
    surface: "image",
    created: entry.created ?? 0,
    variants,
    edit,
    routes: entry.routes.map((route): ImageRoute => {
      const resolutions = route.resolutions ?? variants.map(({ resolution }) => resolution)
      return {
        ...base(route),
        editModel: edit && route.edit !== false ? (route.edit_model ?? route.model) : undefined,
        resolutions: new Set(resolutions),
        cost: imageCost(route.cost, resolutions)
      }
    })
  }
}

const narrowImage = (model: ImageModel, routes: NonEmpty<ImageRoute>): ImageModel => {
  const served = model.variants.filter(({ resolution }) => routes.some((route) => route.resolutions.has(resolution)))
  return {
    ...model,
    routes,
    variants: Arr.isNonEmptyReadonlyArray(served) ? served : model.variants,
    edit: routes.some((route) => route.editModel !== undefined)
  }
}

const imagePrices = ({ variants: [first, ...rest] }: ImageModel): ImagePrices => {
  const large = [first, ...rest].find(({ resolution }) => resolution === "4K")
  return {
    per_image_usd: toUsd(first.price),
    ...(large && { per_image_4k_usd: toUsd(large.price) }),
    approximate: false,
    ...discount([first.price, first.official]),
    ...(first.official !== undefined && { official_per_image_usd: toUsd(first.official) })
  }
}

const imageParams = ({ edit, variants }: ImageModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  if (variants.length > 1) {
    const options = variants.map(({ resolution }) => resolution)
    fields.push({ key: "resolution", type: "select", default: variants[0].resolution, options })
  }
  if (edit) fields.push({ key: "image", type: "image" })
  fields.push({ key: "response_format", type: "select", default: "url", options: ["url", "b64_json"] })
  return fields
}

export const imageSurface: Surface<ImageModelEntry, ImageModel, ImageRoute> = {
  check: checkImage,
  promises: (entry) =>
    entry.routes.map((route) => {
      const sizes = route.resolutions ?? resolutionsOf(entry)
      return [...(entry.edit && route.edit !== false ? ["edit" as const] : []), ...(sizes.length > 1 ? sizes : [])]
    }),
  compile: compileImage,
  narrow: narrowImage,
  inSandbox: (model, bases) => {
    const editModel = model.edit ? model.id : undefined
    const resolutions = new Set(model.variants.map(({ resolution }) => resolution))
    return { ...model, routes: bases.map((base) => ({ ...base, editModel, resolutions, cost: new Map() })) }
  },
  list: (model) => ({ pricing: imagePrices(model), params: imageParams(model) }),
  margins: ({ variants }, route) =>
    variants.flatMap(({ price, resolution }) => {
      const cost = route.cost.get(resolution)
      return cost === undefined ? [] : [{ unit: `${resolution} image`, price, cost }]
    })
}

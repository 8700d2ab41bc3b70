import { Array as Arr } from "effect"
import { makesShape } from "../../domain/Image.ts"
import { maxReferences } from "../../domain/Media.ts"
import type { ImageModel, ImageRoute, Resolution, ShapeFeature } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import { variantKey } from "../../domain/Shape.ts"
import type { Path } from "./CatalogSource.ts"
import {
  type ImageModelEntry,
  imageEntryAt,
  type RouteEntry,
  resolutionsOf,
  shapesOf,
  type VariantCosts,
  variantsOf
} from "./ImageEntry.ts"
import { imageMargins, listImage, ratiosOf } from "./ImageListing.ts"
import {
  type BaseOf,
  checkNarrowing,
  findRepeats,
  list,
  type NonEmpty,
  type Report,
  requireValue,
  type Surface
} from "./Surface.ts"

const checkDatedVariants = (report: Report, at: Path, entry: ImageModelEntry) => {
  const own = variantsOf(entry).map(variantKey)
  entry.pricing_from?.forEach(({ at: date, per_image_usd, variants }, index) => {
    const path = [...at, "pricing_from", index]
    if ((per_image_usd === undefined) === (variants === undefined))
      return report(path, "give exactly one of per_image_usd and variants")
    const priced = variantsOf(imageEntryAt(entry, date)).map(variantKey)
    const isSame = priced.length === own.length && priced.every((key) => own.includes(key))
    if (!isSame) report(path, `must price what the model has: ${list(own)}`)
  })
}

type VariantCost = (typeof VariantCosts.Type)[number]

const costKeys = ({ resolution, ...shapes }: VariantCost): ReadonlyArray<string> =>
  shapesOf(shapes).map((shape) => variantKey({ resolution, shape }))

const checkImage = (report: Report, at: Path, entry: ImageModelEntry) => {
  const { edit = false, pricing, routes, variants } = entry
  if (pricing === undefined && variants === undefined) report(at, "the price is missing: give pricing or variants")
  if (pricing !== undefined && variants !== undefined) report([...at, "pricing"], "give pricing or variants, not both")
  const resolutions = resolutionsOf(entry)
  const sold = variantsOf(entry)
  for (const twice of findRepeats(sold.map(variantKey)))
    report([...at, "variants"], `resolution ${twice} stands twice: leave one out`)
  const levels = [entry, ...(variants ?? []), ...routes.flatMap(({ cost }) => cost?.variants ?? [])]
  if (levels.some((level) => level.sizes !== undefined && level.aspect_ratios !== undefined))
    report([...at, "sizes"], "give sizes or aspect_ratios, not both")
  const checkNarrowed = checkNarrowing(report, at, routes)
  checkDatedVariants(report, at, entry)
  checkNarrowed("aspect_ratios", ratiosOf(sold), (route) => route.aspect_ratios)
  checkNarrowed("resolutions", resolutions, (route) => route.resolutions)
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    if (!edit && (route.edit === true || route.edit_model !== undefined))
      report(path, "the model has no edit: true: add it, or leave edit and edit_model out here")
    if (route.edit === false && route.edit_model !== undefined)
      report([...path, "edit_model"], "contradicts edit: false: leave one of them out")
    const { cost } = route
    if (cost !== undefined && (cost.per_image_usd === undefined) === (cost.variants === undefined)) {
      report([...path, "cost"], "give per_image_usd or variants")
    }
    const costed = cost?.variants?.flatMap(costKeys) ?? []
    for (const twice of findRepeats(costed))
      report([...path, "cost", "variants"], `resolution ${twice} stands twice: leave one out`)
    const own = new Set([...resolutions, ...sold.map(variantKey)])
    const foreign = costed.filter((key) => !own.has(key))
    if (foreign.length > 0)
      report(
        [...path, "cost", "variants"],
        `the model itself does not have ${list(foreign)}: add it to variants of the model, or leave it out here`
      )
  })
  if (edit && routes.every((route) => route.edit === false))
    report([...at, "routes"], "no route serves edit: leave edit: true out of the model, or edit: false out of a route")
}

const imageCost = (
  cost: ImageModelEntry["routes"][number]["cost"],
  resolutions: ReadonlyArray<Resolution>
): ReadonlyMap<string, NanoUsd> => {
  const flat = cost?.per_image_usd
  if (flat !== undefined) return new Map(resolutions.map((resolution) => [resolution, flat]))
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
  const served = model.variants.filter(({ resolution, shape }) =>
    routes.some((route) => makesShape(route, resolution, shape))
  )
  return {
    ...model,
    routes,
    variants: Arr.isNonEmptyReadonlyArray(served) ? served : model.variants,
    edit: routes.some((route) => route.editModel !== undefined)
  }
}

/** None for a route that is sent no shape. */
const shapeFeatures = (entry: ImageModelEntry, route: typeof RouteEntry.Type): ReadonlyArray<ShapeFeature> => {
  const resolutions = new Set(route.resolutions ?? resolutionsOf(entry))
  const sold = variantsOf(entry).filter(({ resolution }) => resolutions.has(resolution))
  const ratios = new Set(route.aspect_ratios ?? ratiosOf(sold))
  const made = sold.filter(({ shape }) => shape !== undefined && ratios.has(shape.aspectRatio))
  const hasOneEach = findRepeats(made.map(({ resolution }) => resolution)).length === 0
  if (ratios.size < 2 && hasOneEach) return []
  return made.every(({ shape }) => shape?.size !== undefined) ? ["size"] : ["aspect_ratio"]
}

export const imageSurface: Surface<ImageModelEntry, ImageModel, ImageRoute> = {
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
  inSandbox: (model, bases) => {
    const editModel = model.edit ? model.id : undefined
    const resolutions = new Set(model.variants.map(({ resolution }) => resolution))
    const aspectRatios = new Set(
      model.variants.flatMap(({ shape }) => (shape === undefined ? [] : [shape.aspectRatio]))
    )
    const costs = model.routes.find(({ cost }) => cost.size > 0)?.cost ?? []
    const cost = new Map([...[...resolutions].map((resolution) => [resolution, zero] as const), ...costs])
    const own = { editModel, resolutions, aspectRatios, cost, imageInputCost: undefined }
    return { ...model, routes: bases.map((base) => ({ ...base, ...own })) }
  },
  list: listImage,
  margins: imageMargins
}

import { Array as Arr } from "effect"
import { distinct, usualFormat, variantCost } from "../../domain/Image.ts"
import {
  discount,
  type ImagePrices,
  type Listing,
  type ParamField,
  type VariantPrice
} from "../../domain/ListedModel.ts"
import type { ImageModel, ImageRoute, ImageVariant, Resolution } from "../../domain/Model.ts"
import { min, toUsd } from "../../domain/Money.ts"
import { variantKey } from "../../domain/Shape.ts"
import type { Margin } from "./Surface.ts"

const resolutionsOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<Resolution> =>
  Arr.dedupe(variants.map(({ resolution }) => resolution))

export const ratiosOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<string> =>
  distinct(variants.map(({ shape }) => shape?.aspectRatio))

const sizesOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<string> =>
  distinct(variants.map(({ shape }) => shape?.size))

/** One entry for the shapes of a resolution that cost the same. */
const variantPrices = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<VariantPrice> =>
  Object.values(Arr.groupBy(variants, ({ official, price, resolution }) => `${resolution} ${price} ${official}`)).map(
    (alike) => {
      const [{ official, price, resolution }] = alike
      const sizes = sizesOf(alike)
      const ratios = ratiosOf(alike)
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
  const large = variants.filter(({ resolution }) => resolution === "4K").map(({ price }) => price)
  return {
    per_image_usd: toUsd(first.price),
    ...(large.length > 0 && { per_image_4k_usd: toUsd(large.reduce(min)) }),
    variants: variantPrices(variants),
    approximate: false,
    ...discount([first.price, first.official]),
    ...(first.official !== undefined && { official_per_image_usd: toUsd(first.official) })
  }
}

const imageParams = ({ edit, id, variants }: ImageModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  const resolutions = resolutionsOf(variants)
  if (resolutions.length > 1) {
    fields.push({ key: "resolution", type: "select", default: variants[0].resolution, options: resolutions })
  }
  const ratios = ratiosOf(variants)
  const sizes = sizesOf(variants)
  for (const [key, named] of [
    ["aspect_ratio", ratios],
    ["size", sizes]
  ] as const) {
    if (named.length > 1) fields.push({ key, type: "select", default: "auto", options: ["auto", ...named] })
  }
  if (edit) fields.push({ key: "image", type: "image" })
  const isLinked = usualFormat(id) === "url"
  fields.push({
    key: "response_format",
    type: "select",
    ...(isLinked && { default: "url" }),
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
      resolutions: resolutionsOf(variants),
      sizes: sizesOf(variants),
      aspect_ratios: ratios
    },
    pricing: imagePrices(model),
    params
  }
}

export const imageMargins = ({ variants }: ImageModel, route: ImageRoute): ReadonlyArray<Margin> => {
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

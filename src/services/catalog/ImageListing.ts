import { distinct, variantCost } from "../../domain/Image.ts"
import type { ImageModel, ImageRoute, ImageVariant } from "../../domain/Model.ts"
import { toUsd } from "../../domain/Money.ts"
import { variantKey } from "../../domain/Shape.ts"
import { discount, type ImagePrices, type ParamField } from "./ListedModel.ts"
import type { Margin } from "./Surface.ts"

export const ratiosOf = (variants: ReadonlyArray<ImageVariant>): ReadonlyArray<string> =>
  distinct(variants.map(({ shape }) => shape?.aspectRatio))

export const imagePrices = ({ variants: [first, ...rest] }: ImageModel): ImagePrices => {
  const large = [first, ...rest].find(({ resolution }) => resolution === "4K")
  return {
    per_image_usd: toUsd(first.price),
    ...(large && { per_image_4k_usd: toUsd(large.price) }),
    approximate: false,
    ...discount([first.price, first.official]),
    ...(first.official !== undefined && { official_per_image_usd: toUsd(first.official) })
  }
}

export const imageParams = ({ edit, variants }: ImageModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  const resolutions = distinct(variants.map(({ resolution }) => resolution))
  if (resolutions.length > 1) {
    fields.push({ key: "resolution", type: "select", default: variants[0].resolution, options: resolutions })
  }
  const ratios = ratiosOf(variants)
  const sizes = distinct(variants.map(({ shape }) => shape?.size))
  for (const [key, named] of [
    ["aspect_ratio", ratios],
    ["size", sizes]
  ] as const) {
    if (named.length > 1) fields.push({ key, type: "select", default: "auto", options: ["auto", ...named] })
  }
  if (edit) fields.push({ key: "image", type: "image" })
  fields.push({ key: "response_format", type: "select", default: "url", options: ["url", "b64_json"] })
  return fields
}

export const imageMargins = ({ variants }: ImageModel, route: ImageRoute): ReadonlyArray<Margin> => {
  const margins = new Map<string, Margin>()
  for (const variant of variants) {
    const { price, resolution } = variant
    const cost = variantCost(route, variant)
    if (cost === undefined || !route.resolutions.has(resolution)) continue
    const isFirst = ![...margins.values()].some(({ unit }) => unit.startsWith(resolution))
    const key = `${resolution} ${price} ${cost}`
    if (!margins.has(key))
      margins.set(key, { unit: `${isFirst ? resolution : variantKey(variant)} image`, price, cost })
  }
  return [...margins.values()]
}

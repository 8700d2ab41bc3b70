import { Array as Arr, Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { Picture, Reference } from "./Media.ts"
import {
  type ImageModel,
  type ImageRoute,
  type ImageVariant,
  quoteModel,
  type Resolution,
  type Shape
} from "./Model.ts"
import { NanoUsd } from "./Money.ts"
import { roundUp } from "./Pricing.ts"
import { nearestShape, square, variantKey } from "./Shape.ts"
import { oneOfWords, pluralize } from "./Wording.ts"

/** `both`: a permanent URL and the bytes. */
export type ImageFormat = "url" | "b64_json" | "both"

/** For `gpt-image` ids OpenAI's clients send no format and expect the bytes. */
export const defaultFormat = (id: string): ImageFormat => (id.startsWith("gpt-image") ? "both" : "url")

export interface ImageParams {
  readonly model: string
  readonly prompt: string
  readonly references: ReadonlyArray<Reference>
  /** Such as `2K`, already in upper case, not validated; undefined: the model's default. */
  readonly resolution: string | undefined
  /** Such as `1536x1024`, not validated; undefined: the default. */
  readonly size: string | undefined
  /** Such as `3:2`, not validated; undefined: the default. */
  readonly aspectRatio: string | undefined
  readonly responseFormat: ImageFormat
}

export interface ImageRequest {
  readonly prompt: string
  readonly resolution: Resolution
  /** Undefined: the provider's default, which for an edit is often the reference's aspect ratio. */
  readonly shape: Shape | undefined
  readonly references: ReadonlyArray<Picture>
}

interface ImageChoice {
  /** The variant that is charged. */
  readonly variant: ImageVariant
  /** The variant's shape if the request asks for one; undefined also if the catalog lists no shapes for the model. */
  readonly shape: Shape | undefined
}

type ChoiceResult = Either.Either<ImageChoice, InvalidRequest>

const refuse = (param: string, message: string) => Either.left(new InvalidRequest({ message, param }))

/** Returns each defined word once. */
export const distinct = (words: ReadonlyArray<string | undefined>): ReadonlyArray<string> =>
  [...new Set(words)].filter((word) => word !== undefined)

export const makesShape = (route: ImageRoute, resolution: Resolution, shape: Shape | undefined): boolean =>
  route.resolutions.has(resolution) && (shape === undefined || route.aspectRatios.has(shape.aspectRatio))

/**
 * Whether calls of the route name a shape. False if the route has only one for the resolution: the provider generates it by
 * default.
 */
export const sendsShape = ({ variants }: ImageModel, route: ImageRoute, resolution: Resolution): boolean =>
  route.aspectRatios.size > 1 ||
  variants.filter((variant) => variant.resolution === resolution && makesShape(route, resolution, variant.shape))
    .length > 1

const shapeIn = ({ shape = square }: ImageVariant): Shape => shape

const defaultSquareSize = "1024x1024"

const sizeRefusal = (id: string, offeredVariants: ReadonlyArray<ImageVariant>) => {
  const ratios = distinct(
    offeredVariants.map(({ shape }) => (shape?.size === undefined ? shape?.aspectRatio : undefined))
  )
  const sizes = distinct(offeredVariants.map(({ shape }) => (shape === undefined ? defaultSquareSize : shape.size)))
  const sizeRule = sizes.length === 0 ? "auto" : oneOfWords(["auto", ...sizes])
  const ratioRule = ratios.length === 0 ? "" : `, or have an aspect ratio of ${ratios.join(", ")},`
  return refuse("size", `\`size\` must be ${sizeRule}${ratioRule} for ${quoteModel(id)}.`)
}

const ratioRefusal = (id: string, offeredVariants: ReadonlyArray<ImageVariant>) => {
  const ratios = distinct(["auto", ...offeredVariants.map((variant) => shapeIn(variant).aspectRatio)])
  return refuse("aspect_ratio", `\`aspect_ratio\` must be ${oneOfWords(ratios)} for ${quoteModel(id)}.`)
}

const shapedVariant = (
  { id, variants }: ImageModel,
  defaultVariant: ImageVariant,
  { aspectRatio, resolution, size }: ImageParams,
  canMake: (variant: ImageVariant) => boolean
): ChoiceResult => {
  const possibleVariants = variants.filter(canMake)
  const offeredVariants = possibleVariants.filter((variant) => variant.resolution === defaultVariant.resolution)
  const findNearestVariant = (requested: string) => nearestShape(offeredVariants, shapeIn, requested)
  const variantBySize = size === undefined ? undefined : findNearestVariant(size)
  if (size !== undefined && variantBySize === undefined)
    return sizeRefusal(id, resolution === undefined ? possibleVariants : offeredVariants)
  const variantByRatio = aspectRatio === undefined ? undefined : findNearestVariant(aspectRatio)
  if (aspectRatio !== undefined && variantByRatio === undefined) return ratioRefusal(id, offeredVariants)
  const variant = variantBySize ?? variantByRatio ?? defaultVariant
  return variantByRatio !== undefined && shapeIn(variant).aspectRatio !== shapeIn(variantByRatio).aspectRatio
    ? refuse("aspect_ratio", "`aspect_ratio` must match `size`.")
    : Either.right({ variant, shape: variant.shape })
}

export const chooseVariant = (model: ImageModel, params: ImageParams): ChoiceResult => {
  const { aspectRatio, references, size } = params
  if (references.length > 0 && !model.edit) {
    return refuse("image", `Image editing is not available for ${quoteModel(model.id)}.`)
  }
  const max = model.maxReferences
  if (references.length > max) {
    return refuse("image", `\`image\` must hold at most ${pluralize(max, "image")} for ${quoteModel(model.id)}.`)
  }
  const capableRoutes = model.routes.filter(({ editModel }) => references.length === 0 || editModel !== undefined)
  const servedVariants = model.variants.filter(({ resolution }) =>
    capableRoutes.some(({ resolutions }) => resolutions.has(resolution))
  )
  const variants = Arr.isNonEmptyReadonlyArray(servedVariants) ? servedVariants : model.variants
  const exactVariant = size === undefined ? undefined : variants.find(({ shape }) => shape?.size === size)
  const resolution = params.resolution ?? exactVariant?.resolution ?? variants[0].resolution
  const defaultVariant = variants.find((variant) => variant.resolution === resolution)
  if (defaultVariant === undefined) {
    return refuse("resolution", `Resolution ${resolution.toLowerCase()} is not available for ${quoteModel(model.id)}.`)
  }
  if (size === undefined && aspectRatio === undefined)
    return Either.right({ variant: defaultVariant, shape: undefined })
  return shapedVariant(model, defaultVariant, params, (variant) =>
    capableRoutes.some((route) => makesShape(route, variant.resolution, variant.shape))
  )
}

/** Returns the price of an image: the amount of its hold and of its charge. */
export const imagePrice = ({ price }: ImageVariant): NanoUsd => price

/** Returns the provider's cost of an image including its reported input tokens, rounded up to a nano-dollar. */
export const answerCost = (
  route: ImageRoute,
  variant: Pick<ImageVariant, "resolution" | "shape">,
  inputTokens: number
): NanoUsd | undefined => {
  const cost = variantCost(route, variant)
  const { imageInputCost } = route
  if (cost === undefined || imageInputCost === undefined) return cost
  return NanoUsd(cost + roundUp(BigInt(inputTokens) * imageInputCost))
}

/** Returns the provider's cost of an image. Shapes without a cost have the first cost listed for their resolution. */
export const variantCost = (
  { cost }: ImageRoute,
  { resolution, shape }: Pick<ImageVariant, "resolution" | "shape">
): NanoUsd | undefined => cost.get(variantKey({ resolution, shape })) ?? cost.get(resolution)

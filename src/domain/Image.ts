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
import { pluralize } from "./Plural.ts"
import { roundUp } from "./Pricing.ts"
import { nearestShape, square, variantKey } from "./Shape.ts"

/** `both`: a link, which stays, and the bytes. */
export type ImageFormat = "url" | "b64_json" | "both"

/** Official clients send no format for these ids and read the bytes. */
export const usualFormat = (id: string): ImageFormat => (id.startsWith("gpt-image") ? "both" : "url")

export interface ImageParams {
  readonly model: string
  readonly prompt: string
  readonly references: ReadonlyArray<Reference>
  /** In capitals, not yet checked; undefined: the model's default. */
  readonly resolution: string | undefined
  /** Such as `1536x1024`, not yet checked; undefined: the default. */
  readonly size: string | undefined
  /** Such as `3:2`, not yet checked; undefined: the default. */
  readonly aspectRatio: string | undefined
  readonly responseFormat: ImageFormat
}

export interface ImageRequest {
  readonly prompt: string
  readonly resolution: Resolution
  /** Undefined: the host's default, for an edit often that of the reference. */
  readonly shape: Shape | undefined
  readonly references: ReadonlyArray<Picture>
}

interface ImageChoice {
  /** What is paid for. */
  readonly variant: ImageVariant
  /** The variant's, if the request names one and the model's are known. */
  readonly shape: Shape | undefined
}

type Chosen = Either.Either<ImageChoice, InvalidRequest>

const refuse = (param: string, message: string) => Either.left(new InvalidRequest({ message, param }))

export const distinct = (words: ReadonlyArray<string | undefined>): ReadonlyArray<string> =>
  [...new Set(words)].filter((word) => word !== undefined)

export const makesShape = (route: ImageRoute, resolution: Resolution, shape: Shape | undefined): boolean =>
  route.resolutions.has(resolution) && (shape === undefined || route.aspectRatios.has(shape.aspectRatio))

/** False where the route has a single shape for the resolution, which its host makes unasked. */
export const sendsShape = ({ variants }: ImageModel, route: ImageRoute, resolution: Resolution): boolean =>
  route.aspectRatios.size > 1 ||
  variants.filter((variant) => variant.resolution === resolution && makesShape(route, resolution, variant.shape))
    .length > 1

const shapeIn = ({ shape = square }: ImageVariant): Shape => shape

const usualSquare = "1024x1024"

const sizeRefusal = (id: string, offered: ReadonlyArray<ImageVariant>) => {
  const ratios = distinct(offered.map(({ shape }) => (shape?.size === undefined ? shape?.aspectRatio : undefined)))
  const sizes = distinct(offered.map(({ shape }) => (shape === undefined ? usualSquare : shape.size)))
  const listed = sizes.length === 0 ? "auto" : `one of ${["auto", ...sizes].join(", ")}`
  const shaped = ratios.length === 0 ? "" : `, or have an aspect ratio of ${ratios.join(", ")},`
  return refuse("size", `\`size\` must be ${listed}${shaped} for ${quoteModel(id)}.`)
}

const ratioRefusal = (id: string, offered: ReadonlyArray<ImageVariant>) => {
  const ratios = distinct(["auto", ...offered.map((variant) => shapeIn(variant).aspectRatio)]).join(", ")
  return refuse("aspect_ratio", `\`aspect_ratio\` must be one of ${ratios} for ${quoteModel(id)}.`)
}

const shapedVariant = (
  { id, variants }: ImageModel,
  usual: ImageVariant,
  { aspectRatio, resolution, size }: ImageParams,
  isMade: (variant: ImageVariant) => boolean
): Chosen => {
  const made = variants.filter(isMade)
  const offered = made.filter((variant) => variant.resolution === usual.resolution)
  const nearest = (requested: string) => nearestShape(offered, shapeIn, requested)
  const ofSize = size === undefined ? undefined : nearest(size)
  if (size !== undefined && ofSize === undefined) return sizeRefusal(id, resolution === undefined ? made : offered)
  const ofRatio = aspectRatio === undefined ? undefined : nearest(aspectRatio)
  if (aspectRatio !== undefined && ofRatio === undefined) return ratioRefusal(id, offered)
  const variant = ofSize ?? ofRatio ?? usual
  return ofRatio !== undefined && shapeIn(variant).aspectRatio !== shapeIn(ofRatio).aspectRatio
    ? refuse("aspect_ratio", "`aspect_ratio` must be that of `size`.")
    : Either.right({ variant, shape: variant.shape })
}

export const variantFor = (model: ImageModel, params: ImageParams): Chosen => {
  const { aspectRatio, references, size } = params
  if (references.length > 0 && !model.edit) {
    return refuse("image", `Image editing is not available for ${quoteModel(model.id)}.`)
  }
  const most = model.maxReferences
  if (references.length > most) {
    return refuse("image", `\`image\` must hold at most ${pluralize(most, "image")} for ${quoteModel(model.id)}.`)
  }
  const able = model.routes.filter(({ editModel }) => references.length === 0 || editModel !== undefined)
  const served = model.variants.filter(({ resolution }) => able.some(({ resolutions }) => resolutions.has(resolution)))
  const made = Arr.isNonEmptyReadonlyArray(served) ? served : model.variants
  const exact = size === undefined ? undefined : made.find(({ shape }) => shape?.size === size)
  const resolution = params.resolution ?? exact?.resolution ?? made[0].resolution
  const usual = made.find((variant) => variant.resolution === resolution)
  if (usual === undefined) {
    return refuse("resolution", `Resolution ${resolution.toLowerCase()} is not available for ${quoteModel(model.id)}.`)
  }
  if (size === undefined && aspectRatio === undefined) return Either.right({ variant: usual, shape: undefined })
  return shapedVariant(model, usual, params, (variant) =>
    able.some((route) => makesShape(route, variant.resolution, variant.shape))
  )
}

/** What an image is held for, and charged. */
export const imagePrice = ({ price }: ImageVariant): NanoUsd => price

/** What the provider charges for an image that it has counted; rounded up to a nano-dollar. */
export const answerCost = (
  route: ImageRoute,
  variant: Pick<ImageVariant, "resolution" | "shape">,
  inputTokens: number
): NanoUsd | undefined => {
  const made = variantCost(route, variant)
  const { imageInputCost } = route
  if (made === undefined || imageInputCost === undefined) return made
  return NanoUsd(made + roundUp(BigInt(inputTokens) * imageInputCost))
}

/** What the provider charges for an image; a resolution's first cost holds for shapes without one. */
export const variantCost = (
  { cost }: ImageRoute,
  { resolution, shape }: Pick<ImageVariant, "resolution" | "shape">
): NanoUsd | undefined => cost.get(variantKey({ resolution, shape })) ?? cost.get(resolution)

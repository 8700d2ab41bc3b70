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
import type { NanoUsd } from "./Money.ts"
import { nearestRatio, tolerance, variantKey } from "./Shape.ts"

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
  readonly responseFormat: "url" | "b64_json"
}

export interface ImageRequest {
  readonly prompt: string
  readonly resolution: Resolution
  /** Undefined: the host's default, for an edit often that of the reference. */
  readonly shape: Shape | undefined
  readonly references: ReadonlyArray<Picture>
}

export interface ImageChoice {
  /** What is paid for. */
  readonly variant: ImageVariant
  /** The variant's, if the request names one. */
  readonly shape: Shape | undefined
}

type Chosen = Either.Either<ImageChoice, InvalidRequest>

const refuse = (param: string, message: string) => Either.left(new InvalidRequest({ message, param }))

/** Sizes that many official clients always send: moved to the nearest shape that the model makes. */
const conventionalSizes: ReadonlySet<string | undefined> = new Set([
  "256x256",
  "512x512",
  "1024x1024",
  "1536x1024",
  "1024x1536",
  "1792x1024",
  "1024x1792"
])

export const distinct = (words: ReadonlyArray<string | undefined>): ReadonlyArray<string> =>
  [...new Set(words)].filter((word) => word !== undefined)

export const makesShape = (route: ImageRoute, resolution: Resolution, shape: Shape | undefined): boolean =>
  route.resolutions.has(resolution) && (shape === undefined || route.aspectRatios.has(shape.aspectRatio))

/** False where the route has a single shape for the resolution, which its host makes unasked. */
export const sendsShape = ({ variants }: ImageModel, route: ImageRoute, resolution: Resolution): boolean =>
  route.aspectRatios.size > 1 ||
  variants.filter((variant) => variant.resolution === resolution && makesShape(route, resolution, variant.shape))
    .length > 1

type Shaped = ImageVariant & { readonly shape: Shape }
const isShaped = (variant: ImageVariant): variant is Shaped => variant.shape !== undefined

const ofSize = (offered: ReadonlyArray<Shaped>, size: string): ReadonlyArray<Shaped> => {
  const exact = offered.filter(({ shape }) => shape.size === size)
  if (exact.length > 0) return exact
  const isMoved = conventionalSizes.has(size)
  const free = offered.filter(({ shape }) => shape.size === undefined || isMoved)
  const ratio = nearestRatio(distinct(free.map(({ shape }) => shape.aspectRatio)), size, isMoved ? Infinity : tolerance)
  return free.filter(({ shape }) => shape.aspectRatio === ratio)
}

const sizeRefusal = (id: string, offered: ReadonlyArray<Shaped>) => {
  const ratios = distinct(offered.map(({ shape }) => (shape.size === undefined ? shape.aspectRatio : undefined)))
  const sizes = distinct(["auto", "1024x1024", ...offered.map(({ shape }) => shape.size)]).join(", ")
  const shaped = ratios.length === 0 ? "" : `, or have an aspect ratio of ${ratios.join(", ")},`
  return refuse("size", `\`size\` must be one of ${sizes}${shaped} for ${quoteModel(id)}.`)
}

const shapedVariant = (
  { id, variants }: ImageModel,
  usual: ImageVariant,
  { aspectRatio, resolution, size }: ImageParams,
  isMade: (variant: ImageVariant) => boolean
): Chosen => {
  const made = variants.filter(isShaped).filter(isMade)
  const offered = made.filter((variant) => variant.resolution === usual.resolution)
  const sized = size === undefined ? offered : ofSize(offered, size)
  if (size !== undefined && !conventionalSizes.has(size) && sized.length === 0) {
    return sizeRefusal(id, resolution === undefined ? made : offered)
  }
  const ratios = distinct(offered.map(({ shape }) => shape.aspectRatio))
  if (aspectRatio !== undefined && !ratios.includes(aspectRatio)) {
    const message = ratios.length === 0 ? "is not available" : `must be one of auto, ${ratios.join(", ")}`
    return refuse("aspect_ratio", `\`aspect_ratio\` ${message} for ${quoteModel(id)}.`)
  }
  const [first] = sized.filter(({ shape }) => aspectRatio === undefined || shape.aspectRatio === aspectRatio)
  if (first !== undefined) return Either.right({ variant: first, shape: first.shape })
  return aspectRatio === undefined
    ? Either.right({ variant: usual, shape: undefined })
    : refuse("aspect_ratio", "`aspect_ratio` must be that of `size`.")
}

export const variantFor = (model: ImageModel, params: ImageParams): Chosen => {
  const { aspectRatio, references, size } = params
  if (references.length > 0 && !model.edit) {
    return refuse("image", `Image editing is not available for ${quoteModel(model.id)}.`)
  }
  const most = model.maxReferences
  if (references.length > most) {
    const images = most === 1 ? "1 image" : `${most} images`
    return refuse("image", `\`image\` must hold at most ${images} for ${quoteModel(model.id)}.`)
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

/** What the provider charges; a resolution's first cost holds for shapes without one. */
export const variantCost = (
  { cost }: ImageRoute,
  { resolution, shape }: Pick<ImageVariant, "resolution" | "shape">
): NanoUsd | undefined => cost.get(variantKey({ resolution, shape })) ?? cost.get(resolution)

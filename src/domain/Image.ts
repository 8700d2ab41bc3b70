import { Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { Picture, Reference } from "./Media.ts"
import { type ImageModel, type ImageVariant, quoteModel, type Resolution } from "./Model.ts"

export interface ImageParams {
  readonly model: string
  readonly prompt: string
  readonly references: ReadonlyArray<Reference>
  /** In capitals, not yet checked; undefined: the model's default. */
  readonly resolution: string | undefined
  readonly responseFormat: "url" | "b64_json"
}

export interface ImageRequest {
  readonly prompt: string
  readonly resolution: Resolution
  readonly references: ReadonlyArray<Picture>
}

export const variantFor = (model: ImageModel, params: ImageParams): Either.Either<ImageVariant, InvalidRequest> => {
  if (params.references.length > 0 && !model.edit) {
    return Either.left(
      new InvalidRequest({ message: `Image editing is not available for ${quoteModel(model.id)}.`, param: "image" })
    )
  }
  const { resolution } = params
  if (resolution === undefined) return Either.right(model.variants[0])
  const variant = model.variants.find((one) => one.resolution === resolution)
  if (variant !== undefined) return Either.right(variant)
  return Either.left(
    new InvalidRequest({
      message: `Resolution ${resolution.toLowerCase()} is not available for ${quoteModel(model.id)}.`,
      param: "resolution"
    })
  )
}

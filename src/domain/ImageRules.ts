import { Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { ImageAsk } from "./Image.ts"
import type { ImageModel, ImageVariant } from "./Model.ts"
import { quoteModel } from "./ModelName.ts"

/** The variant that a request gets and pays for, or what the model cannot do of it. */
export const variantFor = (model: ImageModel, ask: ImageAsk): Either.Either<ImageVariant, InvalidRequest> => {
  if (ask.references.length > 0 && !model.edit) {
    return Either.left(
      new InvalidRequest({ message: `Image editing is not available for ${quoteModel(model.id)}.`, param: "image" })
    )
  }
  const { resolution } = ask
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

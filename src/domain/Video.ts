import { Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { Picture, Reference } from "./Media.ts"
import { nearestSeconds, quoteModel, type VideoModel, type VideoPricing } from "./Model.ts"
import { NanoUsd } from "./Money.ts"

export interface VideoParams {
  readonly model: string
  readonly prompt: string
  readonly seconds: number | undefined
  /** Only the first is used. */
  readonly references: ReadonlyArray<Reference>
}

export interface VideoRequest {
  readonly prompt: string
  readonly seconds: number
  readonly reference: Picture | undefined
}

export type VideoStatus = "queued" | "in_progress" | "completed" | "failed"

export const secondsFor = (model: VideoModel, params: VideoParams): Either.Either<number, InvalidRequest> => {
  const hasReference = params.references.length > 0
  if (model.referenceImage === "required" && !hasReference) {
    return Either.left(
      new InvalidRequest({
        message: `Text-to-video is not available for ${quoteModel(model.id)} - a reference image is required.`,
        param: null
      })
    )
  }
  if (model.referenceImage === "none" && hasReference) {
    return Either.left(
      new InvalidRequest({ message: `Image-to-video is not available for ${quoteModel(model.id)}.`, param: "image" })
    )
  }
  const { allowed, default: usual } = model.seconds
  return Either.right(params.seconds === undefined ? usual : nearestSeconds(allowed, params.seconds))
}

export const clipPrice = ({ per, price }: VideoPricing, seconds: number): NanoUsd =>
  per === "video" ? price : NanoUsd(price * BigInt(seconds))

import { Array as Arr, Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { Picture, Reference } from "./Media.ts"
import { quoteModel, type VideoModel, type VideoPricing, type VideoRoute } from "./Model.ts"
import { NanoUsd } from "./Money.ts"

export interface VideoParams {
  readonly model: string
  readonly prompt: string
  readonly seconds: number | undefined
  /** Only the first is used. */
  readonly references: ReadonlyArray<Reference>
  /** Where to send the video once it is over, beside the organization's endpoints. */
  readonly webhookUrl: string | undefined
}

export interface VideoRequest {
  readonly prompt: string
  readonly seconds: number
  readonly reference: Picture | undefined
}

export type VideoStatus = "queued" | "in_progress" | "completed" | "failed"

export const clipPrice = ({ per, price }: VideoPricing, seconds: number): NanoUsd =>
  per === "video" ? price : NanoUsd(price * BigInt(seconds))

/** Ties go to the shorter; `allowed` is ascending. */
export const nearestSeconds = (allowed: readonly [number, ...ReadonlyArray<number>], asked: number): number =>
  allowed.reduce((best, seconds) => (Math.abs(seconds - asked) < Math.abs(best - asked) ? seconds : best))

export const rendersWith = ({ imageModel, referenceImage }: VideoRoute, hasReference: boolean): boolean =>
  hasReference ? imageModel !== undefined : referenceImage !== "required"

/** The allowed length that a request gets, or what the model cannot do of it. */
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
  const routes = model.routes.filter((route) => rendersWith(route, hasReference))
  const served = allowed.filter((seconds) => routes.some((route) => route.seconds.includes(seconds)))
  return Either.right(nearestSeconds(Arr.isNonEmptyReadonlyArray(served) ? served : allowed, params.seconds ?? usual))
}

import { Array as Arr, Either } from "effect"
import { InvalidRequest } from "./Failure.ts"
import type { Picture, Reference } from "./Media.ts"
import { quoteModel, type VideoModel, type VideoPricing, type VideoRoute } from "./Model.ts"
import { NanoUsd } from "./Money.ts"

export interface VideoParams {
  readonly model: string
  readonly prompt: string
  readonly seconds: number | undefined
  /** Only the first one is used. */
  readonly references: ReadonlyArray<Reference>
  /** An additional webhook URL for this video's final event. */
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

/** Returns the shorter length on a tie. `allowed` is ascending. */
export const nearestSeconds = (allowed: readonly [number, ...ReadonlyArray<number>], requested: number): number =>
  allowed.reduce((best, seconds) => (Math.abs(seconds - requested) < Math.abs(best - requested) ? seconds : best))

export const canRender = ({ imageModel, referenceImage }: VideoRoute, hasReference: boolean): boolean =>
  hasReference ? imageModel !== undefined : referenceImage !== "required"

/** Returns the clip length of a request in seconds. Fails if the model does not support the request. */
export const chooseSeconds = (model: VideoModel, params: VideoParams): Either.Either<number, InvalidRequest> => {
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
  const { allowed, default: defaultSeconds } = model.seconds
  const routes = model.routes.filter((route) => canRender(route, hasReference))
  const servedSeconds = allowed.filter((seconds) => routes.some((route) => route.seconds.includes(seconds)))
  return Either.right(
    nearestSeconds(
      Arr.isNonEmptyReadonlyArray(servedSeconds) ? servedSeconds : allowed,
      params.seconds ?? defaultSeconds
    )
  )
}

import { Data } from "effect"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"

export type VideoErrorCode = "content_policy_violation" | "upstream_error" | "timeout" | "internal_error"

/** Why a render failed, as its customer is told. */
export interface VideoError {
  readonly code: VideoErrorCode
  readonly message: string
}

export const contentRejected: VideoError = {
  code: "content_policy_violation",
  message: "Content was rejected by the moderation system."
}
export const upstreamFailed: VideoError = {
  code: "upstream_error",
  message: "The upstream provider returned an error."
}
export const outOfTime: VideoError = { code: "timeout", message: "The request exceeded the allowed time." }
export const internalError: VideoError = { code: "internal_error", message: "Internal server error." }
export const cancelled: VideoError = {
  code: "internal_error",
  message: "The video was cancelled by the operator."
}

/** What a submit that no route took means for a job whose customer has been told of it. */
export const errorOf = (failure: RoutingFailure | InvalidRequest): VideoError => {
  if (failure._tag === "ContentRejected") return contentRejected
  if (failure._tag === "TimedOut") return outOfTime
  return failure._tag === "InvalidRequest" ? { code: "upstream_error", message: failure.message } : upstreamFailed
}

/** Another owner has the job, or it is over: nothing more is to be done for it here. */
export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly id: string }> {}

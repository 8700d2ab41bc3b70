import { Context, type Effect } from "effect"
import type {
  IdempotencyConflict,
  InsufficientCredits,
  InvalidRequest,
  RoutingFailure,
  SettleFailed,
  SpendLimitReached
} from "../domain/Failure.ts"
import type { ImageAsk } from "../domain/Image.ts"
import type { ImageModel, ImageVariant } from "../domain/Model.ts"
import type { RequestRecord } from "./RequestRecord.ts"

export interface ImageJob {
  readonly model: ImageModel
  /** What the model's rules made of the ask; its price is what is held and charged. */
  readonly variant: ImageVariant
  readonly ask: ImageAsk
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

export interface ImageResult {
  /** Unix seconds. */
  readonly created: number
  readonly image: { readonly url: string } | { readonly b64_json: string }
  readonly revisedPrompt: string | undefined
  /** Whether the sandbox made it. */
  readonly sandbox: boolean
  /** Whether it is the kept result of an earlier request. */
  readonly replayed: boolean
}

export type ImageFailure =
  | InvalidRequest
  | IdempotencyConflict
  | InsufficientCredits
  | SpendLimitReached
  | RoutingFailure
  | SettleFailed

/** An image from hold to settle: references in, a picture made, stored, charged and kept for a retry. */
export class ImageGenerations extends Context.Tag("gateway/ImageGenerations")<
  ImageGenerations,
  {
    readonly generate: (job: ImageJob) => Effect.Effect<ImageResult, ImageFailure>
  }
>() {}

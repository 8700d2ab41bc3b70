import type { Picture, Reference } from "./Media.ts"
import type { Resolution } from "./Model.ts"

/** What a customer asks for, well-formed; the model's rules have not been applied. */
export interface ImageAsk {
  readonly model: string
  readonly prompt: string
  readonly references: ReadonlyArray<Reference>
  /** In capitals, whether or not any model has it. Undefined: the model's own default. */
  readonly resolution: string | undefined
  readonly responseFormat: "url" | "b64_json"
}

/** What a provider is asked for. */
export interface ImageRequest {
  readonly prompt: string
  readonly resolution: Resolution
  /** With any the request is an edit. */
  readonly references: ReadonlyArray<Picture>
}

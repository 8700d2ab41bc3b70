import type { Picture, Reference } from "./Media.ts"

/** What a customer asks for, well-formed; the model's rules have not been applied. */
export interface VideoAsk {
  readonly model: string
  readonly prompt: string
  /** Undefined: the model's own default. */
  readonly seconds: number | undefined
  /** Of several the first is used. */
  readonly references: ReadonlyArray<Reference>
}

/** What a provider is asked for. */
export interface VideoRequest {
  readonly prompt: string
  /** One of the model's own lengths. */
  readonly seconds: number
  readonly reference: Picture | undefined
}

export type VideoStatus = "queued" | "in_progress" | "completed" | "failed"

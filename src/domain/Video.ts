import type { Picture, Reference } from "./Media.ts"
import type { VideoPricing } from "./Model.ts"
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

import { Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow, toUsd } from "../../domain/Money.ts"
import type { VideoStatus } from "../../domain/VideoRules.ts"

export const VideoView = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  seconds: Schema.Number,
  createdAt: Schema.DateFromSelf,
  completedAt: Schema.NullOr(Schema.DateFromSelf),
  media: Schema.NullOr(Schema.String),
  errorCode: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  progress: Schema.Number,
  /** Null until the video is completed. */
  charge: Schema.NullOr(NanoUsdFromRow),
  sandbox: Schema.Boolean
})
export type VideoView = typeof VideoView.Type

/** Times are Unix seconds. */
export interface Video {
  readonly id: string
  readonly model: string
  readonly status: VideoStatus
  readonly createdAt: number
  readonly completedAt: number | undefined
  /** In percent; 0 where the provider does not tell. */
  readonly progress: number
  readonly seconds: number
  readonly url: string | undefined
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** Undefined until the video is completed; a refund changes nothing. */
  readonly charge: NanoUsd | undefined
  readonly sandbox: boolean
}

export const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)

export const toVideo = (view: VideoView, link: (media: string) => string): Video => ({
  id: view.id,
  model: view.model,
  status: view.status,
  createdAt: unixSeconds(view.createdAt),
  completedAt: view.completedAt === null ? undefined : unixSeconds(view.completedAt),
  progress: view.progress,
  seconds: view.seconds,
  url: view.media === null ? undefined : link(view.media),
  error: view.errorCode === null ? undefined : { code: view.errorCode, message: view.errorMessage ?? "" },
  charge: view.charge ?? undefined,
  sandbox: view.sandbox
})

/** As the API and webhooks show it; a replay equals the first response to the byte. */
export const videoJson = ({
  charge,
  completedAt,
  createdAt,
  error,
  id,
  model,
  progress,
  seconds,
  status,
  url
}: Video) => ({
  id,
  object: "video",
  model,
  status,
  progress,
  created_at: createdAt,
  ...(completedAt === undefined ? {} : { completed_at: completedAt }),
  seconds,
  ...(charge === undefined ? {} : { charge_usd: toUsd(charge) }),
  ...(url === undefined ? {} : { url, data: [{ url }] }),
  ...(error === undefined ? {} : { error: { code: error.code, message: error.message } })
})

import { Data, Duration, Effect, Random, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { type NanoUsd, NanoUsdFromRow, toUsd } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { VideoStatus } from "../../domain/VideoRules.ts"
import { isSameAccount } from "../catalog/Catalog.ts"
import { internalFailure } from "../requests/RequestEntry.ts"

const orNull = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.transform(Schema.NullOr(schema), Schema.UndefinedOr(Schema.typeSchema(schema)), {
    strict: true,
    decode: (value) => value ?? undefined,
    encode: (value) => value ?? null
  })

/** The route of a running render, independent of catalog changes. It excludes the credential. */
export const FrozenRoute = Schema.Struct({
  id: Schema.String,
  provider: Schema.Struct({ name: Schema.String, adapter: Schema.String, baseUrl: orNull(Schema.String) }),
  model: Schema.String,
  imageModel: orNull(Schema.String),
  referenceImage: Schema.Literal("none", "optional", "required"),
  seconds: Schema.Array(Schema.Number),
  secondsAs: Schema.Literal("number", "text", "suffixed", "omitted"),
  options: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  cost: orNull(Schema.Struct({ per: Schema.Literal("second", "video"), price: NanoUsdFromRow }))
})
export type FrozenRoute = typeof FrozenRoute.Type

/** Null if another version of the gateway wrote it in an unknown format. */
export const StoredRoute = Schema.NullOr(Schema.parseJson(FrozenRoute)).annotations({
  decodingFallback: () => Effect.succeed(null)
})

export const encodeRoute: (route: VideoRoute) => string = Schema.encodeSync(Schema.parseJson(FrozenRoute))

/** Returns the route with its credential; undefined if the catalog no longer has its account at the same address. */
export const restoreRoute = (route: FrozenRoute, accounts: ReadonlyArray<ProviderAccount>): VideoRoute | undefined => {
  const provider = accounts.find((one) => isSameAccount(one, route.provider))
  return provider && { ...route, provider, preference: 1, weight: 1 }
}

const VideoState = Schema.Union(
  Schema.Struct({ step: Schema.Literal("submit") }),
  /** The submit may or may not have reached the route. */
  Schema.Struct({ step: Schema.Literal("submitting"), route: StoredRoute }),
  Schema.Struct({ step: Schema.Literal("rendering"), route: StoredRoute, handle: Schema.String }),
  /** Leased only to cancel the render at the provider. */
  Schema.Struct({ step: Schema.Literal("over"), route: StoredRoute, handle: Schema.NullOr(Schema.String) })
)
export type VideoStep = typeof VideoState.Type.step

interface Transition {
  readonly from: readonly [VideoStep, ...ReadonlyArray<VideoStep>]
  readonly to: VideoStep
  readonly by: "lease holder" | "anyone"
}
const unfinishedSteps = ["submit", "submitting", "rendering"] as const

/** `VideoSql` builds the guards of its statements from these. */
export const transitions = {
  storeReference: { from: ["submit"], to: "submit", by: "lease holder" },
  submit: { from: ["submit", "submitting"], to: "submitting", by: "lease holder" },
  recordUncertainSubmit: { from: ["submitting"], to: "submitting", by: "lease holder" },
  // Also from `rendering`, because the statement is repeated if its answer was lost.
  render: { from: ["submitting", "rendering"], to: "rendering", by: "lease holder" },
  poll: { from: ["rendering"], to: "rendering", by: "lease holder" },
  resubmit: { from: ["submitting", "rendering"], to: "submit", by: "lease holder" },
  complete: { from: ["rendering"], to: "over", by: "lease holder" },
  fail: { from: unfinishedSteps, to: "over", by: "lease holder" },
  cancel: { from: unfinishedSteps, to: "over", by: "anyone" },
  cancelUpstream: { from: ["over"], to: "over", by: "lease holder" }
} as const satisfies Record<string, Transition>

type Transitions = typeof transitions
export type LeasedTransition = {
  [T in keyof Transitions]: Transitions[T]["by"] extends "lease holder" ? T : never
}[keyof Transitions]

export const LeasedJob = Schema.extend(
  Schema.Struct({
    id: Schema.String,
    orgId: OrgId,
    keyId: KeyId,
    holdId: Schema.String,
    /** Trace context of the creating request. */
    trace: Schema.NullOr(Schema.String),
    createdAt: Schema.DateFromSelf,
    model: Schema.String,
    seconds: Schema.Number,
    price: NanoUsdFromRow,
    prompt: Schema.String,
    referenceUrl: Schema.NullOr(Schema.String),
    reference: Schema.NullOr(Schema.String),
    attemptedRoutes: Schema.Array(Schema.String),
    /** One more route may be used after an uncertain submit or a failed render. */
    mayRetryRoute: Schema.Boolean,
    uncertainSubmits: Schema.Number,
    polls: Schema.Number,
    /** The error of the last poll or download. Null if it succeeded. */
    lastError: Schema.NullOr(Schema.String),
    isAccepted: Schema.Boolean,
    lease: Schema.String,
    /** Milliseconds until the deadline. Negative after it. */
    leftMs: Schema.Number
  }),
  VideoState
)
export type LeasedJob = typeof LeasedJob.Type
export type Lease = Pick<LeasedJob, "id" | "lease">
export type JobAt<S extends VideoStep> = Extract<LeasedJob, { readonly step: S }>

export type Next = Data.TaggedEnum<{
  Finish: {}
  PollAfter: { readonly afterMs: number }
  SkipFor: { readonly forMs: number }
}>
export const Next = Data.taggedEnum<Next>()

const maxDelayGrowth = 5

/** Delays grow from `first` to five times `first`, with a jitter of a tenth. */
export const makePollDelay = (first: Duration.Duration) => (polls: number) =>
  Effect.map(Random.nextRange(0.9, 1.1), (spread) =>
    Next.PollAfter({
      afterMs: Duration.toMillis(first) * Math.min(1.3 ** Math.max(0, polls - 2), maxDelayGrowth) * spread
    })
  )

/** Returns 3 s, multiplied by four after each further failure. A long wait is cheaper than another render. */
export const downloadDelay = (failureCount: number) =>
  Next.PollAfter({ afterMs: 3_000 * 4 ** Math.max(0, failureCount - 1) })

export interface VideoError {
  readonly code: "content_policy_violation" | "upstream_error" | "timeout" | "internal_error"
  readonly message: string
}

export const rejectedError: VideoError = {
  code: "content_policy_violation",
  message: "Content was rejected by the moderation system."
}
export const upstreamError: VideoError = {
  code: "upstream_error",
  message: "The upstream provider returned an error."
}
export const timeoutError: VideoError = { code: "timeout", message: "The request exceeded the allowed time." }
export const internalError: VideoError = { code: "internal_error", message: internalFailure.message }
export const cancelledError: VideoError = {
  code: "internal_error",
  message: "The video was cancelled by the operator."
}

export const errorOf = (failure: RoutingFailure | InvalidRequest): VideoError => {
  if (failure._tag === "ContentRejected") return rejectedError
  if (failure._tag === "TimedOut") return timeoutError
  return failure._tag === "InvalidRequest" ? { code: "upstream_error", message: failure.message } : upstreamError
}

export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly id: string }> {}

export const VideoView = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  seconds: Schema.Number,
  createdAt: Schema.DateFromSelf,
  completedAt: Schema.NullOr(Schema.DateFromSelf),
  /** The name of its file in the media store. */
  mediaName: Schema.NullOr(Schema.String),
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
  /** In percent. 0 if the provider reports no progress. */
  readonly progress: number
  readonly seconds: number
  readonly url: string | undefined
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** Undefined until the video is completed. Refunds do not change it. */
  readonly charge: NanoUsd | undefined
  readonly sandbox: boolean
}

export const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)

export const toVideo = (view: VideoView, link: (mediaName: string) => string): Video => ({
  id: view.id,
  model: view.model,
  status: view.status,
  createdAt: unixSeconds(view.createdAt),
  completedAt: view.completedAt === null ? undefined : unixSeconds(view.completedAt),
  progress: view.progress,
  seconds: view.seconds,
  url: view.mediaName === null ? undefined : link(view.mediaName),
  error: view.errorCode === null ? undefined : { code: view.errorCode, message: view.errorMessage ?? "" },
  charge: view.charge ?? undefined,
  sandbox: view.sandbox
})

/** The JSON of the API and webhooks. A replay must equal the first response byte for byte. */
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

import { Data, Duration, Effect, Random, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { isSameAccount } from "../catalog/Catalog.ts"
import { internalFailure } from "../requests/RequestEntry.ts"

const orNull = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.transform(Schema.NullOr(schema), Schema.UndefinedOr(Schema.typeSchema(schema)), {
    strict: true,
    decode: (value) => value ?? undefined,
    encode: (value) => value ?? null
  })

/** The route of a running render, unaffected by catalog changes; without its credential. */
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

/** Null where another version wrote what this one cannot read. */
export const KeptRoute = Schema.NullOr(Schema.parseJson(FrozenRoute)).annotations({
  decodingFallback: () => Effect.succeed(null)
})

export const encodeRoute: (route: VideoRoute) => string = Schema.encodeSync(Schema.parseJson(FrozenRoute))

/** Undefined while the catalog has no such account at that address. */
export const restoreRoute = (frozen: FrozenRoute, accounts: ReadonlyArray<ProviderAccount>): VideoRoute | undefined => {
  const provider = accounts.find((one) => isSameAccount(one, frozen.provider))
  return provider && { ...frozen, provider, preference: 1, weight: 1 }
}

const VideoState = Schema.Union(
  Schema.Struct({ step: Schema.Literal("submit") }),
  /** It is unknown whether the submit has reached the route. */
  Schema.Struct({ step: Schema.Literal("submitting"), route: KeptRoute }),
  Schema.Struct({ step: Schema.Literal("rendering"), route: KeptRoute, handle: Schema.String }),
  /** Leased again only to cancel upstream. */
  Schema.Struct({ step: Schema.Literal("over"), route: KeptRoute, handle: Schema.NullOr(Schema.String) })
)
export type VideoStep = typeof VideoState.Type.step

interface Transition {
  readonly from: readonly [VideoStep, ...ReadonlyArray<VideoStep>]
  readonly to: VideoStep
  readonly by: "lease holder" | "anyone"
}
const unfinished = ["submit", "submitting", "rendering"] as const

/** `VideoSql` takes the guard of each statement from here. */
export const transitions = {
  storeReference: { from: ["submit"], to: "submit", by: "lease holder" },
  submit: { from: ["submit", "submitting"], to: "submitting", by: "lease holder" },
  recordUncertainSubmit: { from: ["submitting"], to: "submitting", by: "lease holder" },
  // The statement is repeated when its answer is lost.
  render: { from: ["submitting", "rendering"], to: "rendering", by: "lease holder" },
  poll: { from: ["rendering"], to: "rendering", by: "lease holder" },
  resubmit: { from: ["submitting", "rendering"], to: "submit", by: "lease holder" },
  complete: { from: ["rendering"], to: "over", by: "lease holder" },
  fail: { from: unfinished, to: "over", by: "lease holder" },
  cancel: { from: unfinished, to: "over", by: "anyone" },
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
    /** Trace context of the request that created it. */
    trace: Schema.NullOr(Schema.String),
    createdAt: Schema.DateFromSelf,
    model: Schema.String,
    seconds: Schema.Number,
    price: NanoUsdFromRow,
    prompt: Schema.String,
    referenceUrl: Schema.NullOr(Schema.String),
    reference: Schema.NullOr(Schema.String),
    tried: Schema.Array(Schema.String),
    /** One more route may be asked after a doubtful submit or a failed render. */
    spare: Schema.Boolean,
    doubts: Schema.Number,
    polls: Schema.Number,
    /** The error of the last poll or download; null if it succeeded. */
    lastError: Schema.NullOr(Schema.String),
    isAccepted: Schema.Boolean,
    lease: Schema.String,
    /** Milliseconds to the deadline, negative afterwards. */
    leftMs: Schema.Number
  }),
  VideoState
)
export type LeasedJob = typeof LeasedJob.Type
export type Lease = Pick<LeasedJob, "id" | "lease">
export type JobAt<S extends VideoStep> = Extract<LeasedJob, { readonly step: S }>

export type Next = Data.TaggedEnum<{
  Finish: {}
  LookAgain: { readonly afterMs: number }
  PassOver: { readonly forMs: number }
}>
export const Next = Data.taggedEnum<Next>()

const maxDelayGrowth = 5

/** Delays from `first` rising to five times as much, spread by a tenth. */
export const makePollDelay = (first: Duration.Duration) => (polls: number) =>
  Effect.map(Random.nextRange(0.9, 1.1), (spread) =>
    Next.LookAgain({
      afterMs: Duration.toMillis(first) * Math.min(1.3 ** Math.max(0, polls - 2), maxDelayGrowth) * spread
    })
  )

/** From 3 s, times four after each failure: the clip may come back, and another render costs again. */
export const downloadDelay = (failed: number) => Next.LookAgain({ afterMs: 3_000 * 4 ** Math.max(0, failed - 1) })

export interface VideoError {
  readonly code: "content_policy_violation" | "upstream_error" | "timeout" | "internal_error"
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
export const internalError: VideoError = { code: "internal_error", message: internalFailure.message }
export const cancelled: VideoError = { code: "internal_error", message: "The video was cancelled by the operator." }

export const errorOf = (failure: RoutingFailure | InvalidRequest): VideoError => {
  if (failure._tag === "ContentRejected") return contentRejected
  if (failure._tag === "TimedOut") return outOfTime
  return failure._tag === "InvalidRequest" ? { code: "upstream_error", message: failure.message } : upstreamFailed
}

export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly id: string }> {}

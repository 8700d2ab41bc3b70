import { Context, Data, Effect, FiberRef, type Option, type Scope, type Stream } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, NativeRequest, Usage } from "../../domain/Chat.ts"
import type { ReasonCode } from "../../domain/Failure.ts"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Feature, ImageRoute, Route, RouteBase, RouteOptions, Surface, VideoRoute } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { type Adapters, allFeatures, type DecodeOptions, type Features } from "../catalog/EntryFields.ts"
import type { Span } from "../tracing/Tracing.ts"

/** `account` (401, 402, 403, quota) opens the circuit for longer. `request` and `moderation` are final. */
export type FailureClass = "retry" | "limit" | "account" | "network" | "timeout" | "request" | "moderation"

/** Returns whether no other route is tried. The route is not blamed. */
export const isFinal = (kind: FailureClass): boolean => kind === "request" || kind === "moderation"

/** Returns whether the request may have caused the failure: a timeout, a bad status or a broken answer. */
export const mayDependOnRequest = ({ class: kind, isRequestFault, status, isUnsent }: ProviderFailure): boolean => {
  if (isRequestFault === true || kind === "retry") return true
  return (kind === "network" && status !== undefined) || (kind === "timeout" && isUnsent !== true)
}

export class ProviderFailure extends Data.TaggedError("ProviderFailure")<{
  readonly class: FailureClass
  readonly status: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** True if the request was not sent. Otherwise it may have reached the provider even if there is no status. */
  readonly isUnsent?: boolean | undefined
  /** This request may have caused the failure, although the class usually excludes it. */
  readonly isRequestFault?: boolean | undefined
  readonly param?: string | undefined
  /** Usage that the provider charges despite the failure. `complete`: all requested output. */
  readonly spent?: Usage | "complete" | undefined
  /** The provider's reason for refusing the request, without ids, keys and addresses. */
  readonly reason?: string | undefined
  readonly reasonCode?: ReasonCode | undefined
  /** For the operator's log only, because it may contain the provider's ids. */
  readonly detail: string
}> {}

/** State that the upstream client shares with the attempt of a call. */
export interface CurrentAttempt {
  readonly span: Span | undefined
  /** The id in the last response that has one. */
  providerRequestId: string | undefined
  /** Set at the deadline if the adapter cancels its own calls. Later calls fail with it at once. */
  abortedBy: ProviderFailure | undefined
  /** Cancels the running call if its adapter cancels its own calls. The call then fails with `failure`. */
  endCall: ((failure: ProviderFailure | undefined) => void) | undefined
}

/** Each run returns at least one event. Fails with `Option.none()` at the regular end. */
export type ChatPull = Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<ProviderFailure>>

export interface ChatAdapter {
  /** Supported features. A catalog that claims more is invalid. */
  readonly features: (options: RouteOptions) => ReadonlySet<Feature>
  /** Interruption cancels the upstream call. */
  readonly complete: (route: Route, request: ChatRequest) => Effect.Effect<ChatAnswer, ProviderFailure>
  /** Like `complete`, for adapters whose calls the attempt cancels at its deadline or when interrupted. */
  readonly completeWithin?:
    | ((attempt: CurrentAttempt, route: Route, request: ChatRequest) => Effect.Effect<ChatAnswer, ProviderFailure>)
    | undefined
  /**
   * The pull fails if the stream stops without an end marker. Closing the scope cancels the call and fails a pending
   * pull.
   */
  readonly stream: (route: Route, request: ChatRequest) => Effect.Effect<ChatPull, ProviderFailure, Scope.Scope>
  /** Returns whether images must be `data:` URLs; false if the provider fetches URLs. Default: true. */
  readonly requiresInlineImages?: ((route: Route) => boolean) | undefined
  /** Returns whether the route gets the client's original body. */
  readonly acceptsNative?: ((route: Route, native: NativeRequest) => boolean) | undefined
  /** Returns the provider's token count of the prompt. */
  readonly countTokens?: ((route: Route, request: ChatRequest) => Effect.Effect<number, ProviderFailure>) | undefined
  /** Returns the field that a route cannot combine with the other fields. */
  readonly findUnsupportedField?: ((route: Route, request: ChatRequest) => string | undefined) | undefined
}

export interface ImageAnswer {
  /** Unverified. The caller checks that the bytes are an image. */
  readonly bytes: Uint8Array
  readonly revisedPrompt: string | undefined
  /** Tokens of the reference images, if the provider counts them. */
  readonly inputTokens?: number | undefined
  /** The cost that the provider reports; null if it is not an amount. */
  readonly statedCost?: NanoUsd | null | undefined
}

export interface ImageAdapter {
  /** Supported features. Default: all. They need not contain the resolution of a route that has only one. */
  readonly features?: ((options: RouteOptions) => ReadonlySet<Feature>) | undefined
  /** Edits the reference images if there are any. Interruption cancels the upstream call. */
  readonly generate: (route: ImageRoute, request: ImageRequest) => Effect.Effect<ImageAnswer, ProviderFailure>
}

/** JSON text that the adapter needs for polling. */
export type VideoHandle = string

/** `percent` is undefined if the provider reports no progress. */
export type VideoProgress =
  | { readonly state: "queued" | "in_progress"; readonly percent?: number | undefined }
  | { readonly state: "done" }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

export interface VideoAdapter {
  /** After a `network` or `timeout` failure the provider may have accepted the job. */
  readonly submit: (route: VideoRoute, request: VideoRequest) => Effect.Effect<VideoHandle, ProviderFailure>
  /** Fails if the poll fails. A failed render is a result. */
  readonly poll: (route: VideoRoute, handle: VideoHandle) => Effect.Effect<VideoProgress, ProviderFailure>
  /** Sends the credential only to the origin of the route. */
  readonly download: (route: VideoRoute, handle: VideoHandle) => Stream.Stream<Uint8Array, ProviderFailure>
  readonly cancel?: ((route: VideoRoute, handle: VideoHandle) => Effect.Effect<void, ProviderFailure>) | undefined
}

export interface Provider {
  readonly adapter: string
  readonly options?: DecodeOptions | undefined
  readonly chat?: ChatAdapter | undefined
  readonly image?: ImageAdapter | undefined
  readonly video?: VideoAdapter | undefined
}

/** The attempt of the running call. The upstream client sets its request id and propagates its trace. */
export const currentAttempt = FiberRef.unsafeMake<CurrentAttempt | undefined>(undefined)

/** Does not restore `currentAttempt` after the call, because the next attempt replaces it. */
export const withAttempt = <A, E, R>(attempt: CurrentAttempt, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(FiberRef.set(currentAttempt, attempt), call)

export class Providers extends Context.Tag("gateway/Providers")<Providers, ReadonlyMap<string, Provider>>() {}

const featuresOf = ({ chat, image, video }: Provider): ReadonlyMap<Surface, Features> => {
  const features = new Map<Surface, Features>()
  if (chat !== undefined) features.set("chat", chat.features)
  if (image !== undefined) features.set("image", image.features ?? allFeatures)
  if (video !== undefined) features.set("video", allFeatures)
  return features
}

export const adaptersOf = (providers: ReadonlyMap<string, Provider>): Adapters =>
  new Map(
    [...providers].map(([name, provider]) => [name, { surfaces: featuresOf(provider), options: provider.options }])
  )

export const missingAdapter = ({ provider }: RouteBase, surface: Surface): ProviderFailure =>
  new ProviderFailure({
    class: "network",
    status: undefined,
    isUnsent: true,
    detail: `no ${surface} adapter is called ${provider.adapter}`
  })

export const requireAdapter = <S extends Surface>(
  providers: Context.Tag.Service<Providers>,
  route: RouteBase,
  surface: S
) => {
  const adapter: Provider[S] = providers.get(route.provider.adapter)?.[surface]
  return adapter === undefined ? missingAdapter(route, surface) : Effect.succeed(adapter)
}

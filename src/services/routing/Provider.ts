import { Context, Data, Effect, FiberRef, type Option, type Scope, type Stream } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, NativeRequest, Usage } from "../../domain/Chat.ts"
import type { ReasonCode } from "../../domain/Failure.ts"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Feature, ImageRoute, Route, RouteBase, RouteOptions, Surface, VideoRoute } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { type Adapters, type DecodeOptions, everything, type Features } from "../catalog/AdapterFeatures.ts"
import type { Span } from "../tracing/Tracing.ts"

/** `account` (401, 402, 403, quota) closes the route for longer; `request` and `moderation` are final. */
export type FailureClass = "retry" | "limit" | "account" | "network" | "timeout" | "request" | "moderation"

/** No other route is asked, and the route is not to blame. */
export const isFinal = (kind: FailureClass): boolean => kind === "request" || kind === "moderation"

/** A request may cause it: no time, a bad status, a broken answer; else nothing that happens before any answer. */
export const mayDependOnRequest = ({ class: kind, ofRequest, status, unsent }: ProviderFailure): boolean => {
  if (ofRequest === true || kind === "retry") return true
  return (kind === "network" && status !== undefined) || (kind === "timeout" && unsent !== true)
}

export class ProviderFailure extends Data.TaggedError("ProviderFailure")<{
  readonly class: FailureClass
  readonly status: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** The request certainly never left; otherwise, without a status, it may have arrived. */
  readonly unsent?: boolean | undefined
  /** This request may have caused it, although others of its kind meet it without fault. */
  readonly ofRequest?: boolean | undefined
  readonly param?: string | undefined
  /** Charged by the provider all the same; `whole`: all that was requested. */
  readonly spent?: Usage | "whole" | undefined
  /** What the host said of a request that it refuses, without ids, keys and addresses. */
  readonly reason?: string | undefined
  readonly reasonCode?: ReasonCode | undefined
  /** For the operator's log only: may hold the provider's ids. */
  readonly detail: string
}> {}

/** What the upstream client is told, and tells, of the attempt that a call is part of. */
export interface CurrentAttempt {
  readonly span: Span | undefined
  /** The provider's own, of its last response that had one. */
  providerRequestId: string | undefined
  /** Set at the deadline of an attempt that ends its call itself: later calls fail with it at once. */
  abortedBy: ProviderFailure | undefined
  /** Cancels the call that such an attempt waits for, which fails with it. */
  endCall: ((failure: ProviderFailure | undefined) => void) | undefined
}

/** At least one event; fails with `Option.none()` at the proper end. */
export type ChatPull = Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<ProviderFailure>>

export interface ChatAdapter {
  /** A catalog that promises more is refused. */
  readonly features: (options: RouteOptions) => ReadonlySet<Feature>
  /** Interruption cancels the upstream call. */
  readonly complete: (route: Route, request: ChatRequest) => Effect.Effect<ChatAnswer, ProviderFailure>
  /** The same where it waits for nothing but calls that the attempt ends itself, at its deadline or when interrupted. */
  readonly completeWithin?:
    | ((attempt: CurrentAttempt, route: Route, request: ChatRequest) => Effect.Effect<ChatAnswer, ProviderFailure>)
    | undefined
  /** Fails unless the upstream marks its end; closing the scope cancels the call and fails a pending pull. */
  readonly stream: (route: Route, request: ChatRequest) => Effect.Effect<ChatPull, ProviderFailure, Scope.Scope>
  /** Undefined: every picture becomes a `data:` URL; false: the host fetches URLs. */
  readonly inlines?: ((route: Route) => boolean) | undefined
  /** Whether the route is sent the client's own body. */
  readonly acceptsNative?: ((route: Route, native: NativeRequest) => boolean) | undefined
  /** Counts the prompt's tokens as the host does. */
  readonly countTokens?: ((route: Route, request: ChatRequest) => Effect.Effect<number, ProviderFailure>) | undefined
  /** The field for which a route cannot serve a combination of supported features. */
  readonly declines?: ((route: Route, request: ChatRequest) => string | undefined) | undefined
}

export interface ImageAnswer {
  /** Unchecked: the caller verifies that they are a picture. */
  readonly bytes: Uint8Array
  readonly revisedPrompt: string | undefined
  /** Tokens of the reference images, where the provider counts them. */
  readonly inputTokens?: number | undefined
  /** What the provider says that it charges; null: it says no amount. */
  readonly statedCost?: NanoUsd | null | undefined
}

export interface ImageAdapter {
  /** Undefined: all; a route with a single resolution need not name it. */
  readonly features?: ((options: RouteOptions) => ReadonlySet<Feature>) | undefined
  /** With references an edit; interruption cancels the upstream call. */
  readonly generate: (route: ImageRoute, request: ImageRequest) => Effect.Effect<ImageAnswer, ProviderFailure>
}

/** JSON text of what the adapter needs for polling. */
export type VideoHandle = string

/** `percent`: as far as the provider tells. */
export type VideoProgress =
  | { readonly state: "queued" | "in_progress"; readonly percent?: number | undefined }
  | { readonly state: "done" }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

export interface VideoAdapter {
  /** `network` or `timeout`: the provider may have taken it. */
  readonly submit: (route: VideoRoute, request: VideoRequest) => Effect.Effect<VideoHandle, ProviderFailure>
  /** Fails where the poll fails, not the render. */
  readonly poll: (route: VideoRoute, handle: VideoHandle) => Effect.Effect<VideoProgress, ProviderFailure>
  /** The credential goes to the route's own origin only. */
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

/** The attempt that the upstream client adds a request id to, and whose trace it passes on. */
export const currentAttempt = FiberRef.unsafeMake<CurrentAttempt | undefined>(undefined)

/** Without `Effect.locally`: nothing comes after but the next attempt. */
export const askAs = <A, E, R>(attempt: CurrentAttempt, ask: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(FiberRef.set(currentAttempt, attempt), ask)

export class Providers extends Context.Tag("gateway/Providers")<Providers, ReadonlyMap<string, Provider>>() {}

const featuresOf = ({ chat, image, video }: Provider): ReadonlyMap<Surface, Features> => {
  const features = new Map<Surface, Features>()
  if (chat !== undefined) features.set("chat", chat.features)
  if (image !== undefined) features.set("image", image.features ?? everything)
  if (video !== undefined) features.set("video", everything)
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
    unsent: true,
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

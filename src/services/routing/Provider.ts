import { Data, type Effect, type Option, type Scope, type Stream } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Feature, ImageRoute, Route, RouteOptions, VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/Video.ts"
import type { DecodeOptions } from "../catalog/Adapters.ts"

/**
 * What a provider's failure means for the request and for the route:
 * - `retry`: this attempt failed, another route may do better (5xx, 404, broken body, an error inside a 200)
 * - `limit`: the provider throttles (429, overload); `retryAfterSeconds` where it said so
 * - `account`: the operator's account is at fault (401, 402, 403, quota): another route, this one closed for longer
 * - `network`: the connection failed (connect, DNS, TLS, reset), or ended before the answer was whole
 * - `timeout`: a deadline of this attempt passed
 * - `request`: the request is at fault, no route would take it
 * - `moderation`: the content was refused, final for the request
 */
export type FailureClass = "retry" | "limit" | "account" | "network" | "timeout" | "request" | "moderation"

/** Whether the failure is the request's own: no other route is asked, and the route is not to blame. */
export const isFinal = (kind: FailureClass): boolean => kind === "request" || kind === "moderation"

export class ProviderFailure extends Data.TaggedError("ProviderFailure")<{
  readonly class: FailureClass
  readonly status: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** The request certainly never left for the provider; otherwise, without a status, it may have arrived. */
  readonly unsent?: boolean | undefined
  /** The request field at fault, for class `request`. */
  readonly param?: string | undefined
  /** What the provider charges for all the same: the tokens it counted, or the whole of what was asked for. */
  readonly spent?: Usage | "whole" | undefined
  /** For the operator's log only: it may hold the provider's ids and names. */
  readonly detail: string
}> {}

/** Next events of a stream, at least one; `Option.none()` fails the pull when the stream is whole and over. */
export type ChatPull = Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<ProviderFailure>>

export interface ChatAdapter {
  /** What reaches the host of a route with these options; a catalog that promises more is refused. */
  readonly features: (options: RouteOptions) => ReadonlySet<Feature>
  /** One JSON answer. Interrupting it cancels the upstream call. */
  readonly complete: (route: Route, request: ChatRequest) => Effect.Effect<ChatAnswer, ProviderFailure>
  /**
   * Opens a stream. Failures before the first event are the effect's or the first pull's own; an upstream
   * that ends without its own mark of a whole stream fails the pull with a ProviderFailure. The upstream call
   * is cancelled when the scope closes, and a pull that waits just then fails.
   */
  readonly stream: (route: Route, request: ChatRequest) => Effect.Effect<ChatPull, ProviderFailure, Scope.Scope>
  /** Whether a route gets every picture as a `data:` URL; left out, it does. Else its host fetches, from outside. */
  readonly inlines?: ((route: Route) => boolean) | undefined
  /**
   * The field of our API for which a route cannot take a request, although it can do each thing that is asked:
   * undefined where it can. A route that declines is no candidate.
   */
  readonly declines?: ((route: Route, request: ChatRequest) => string | undefined) | undefined
}

export interface ImageAnswer {
  /** As the provider gave them; whoever asked checks that they are a picture. */
  readonly bytes: Uint8Array
  readonly revisedPrompt: string | undefined
}

export interface ImageAdapter {
  /** As for chats; everything where it is left out. A route of one resolution does not need to name it. */
  readonly features?: ((options: RouteOptions) => ReadonlySet<Feature>) | undefined
  /** One picture; with references an edit. Interrupting it cancels the upstream call. */
  readonly generate: (route: ImageRoute, request: ImageRequest) => Effect.Effect<ImageAnswer, ProviderFailure>
}

/** What a provider knows a render by: whatever its adapter needs to ask after it, as JSON text. */
export type VideoHandle = string

export type VideoProgress =
  | { readonly state: "queued" | "in_progress" }
  | { readonly state: "done" }
  /** The provider says that the render failed, and as what. */
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** A render at a provider: submitted once, asked after until it is over, then downloaded. */
export interface VideoAdapter {
  /** Fails with `network` or `timeout` where it is not known whether the provider took it. */
  readonly submit: (route: VideoRoute, request: VideoRequest) => Effect.Effect<VideoHandle, ProviderFailure>
  /** A failure is that of the asking, not of the render. */
  readonly poll: (route: VideoRoute, handle: VideoHandle) => Effect.Effect<VideoProgress, ProviderFailure>
  /** The clip's bytes, once it is done; the route's credential goes to the route's own origin only. */
  readonly download: (route: VideoRoute, handle: VideoHandle) => Stream.Stream<Uint8Array, ProviderFailure>
  /** Asks the provider to give the render up, where it offers that. */
  readonly cancel?: ((route: VideoRoute, handle: VideoHandle) => Effect.Effect<void, ProviderFailure>) | undefined
}

/** The port every upstream implements: one adapter a wire format, halves by surface. */
export interface Provider {
  readonly adapter: string
  /** Decodes a route's options, for a catalog that is checked as a whole; left out, they may say anything. */
  readonly options?: DecodeOptions | undefined
  readonly chat?: ChatAdapter | undefined
  readonly image?: ImageAdapter | undefined
  readonly video?: VideoAdapter | undefined
}

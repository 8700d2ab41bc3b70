import type { Effect, Layer, Scope } from "effect"
import type { Picture } from "../../src/domain/Media.ts"
import type { VideoRoute } from "../../src/domain/Model.ts"
import type { VideoRequest } from "../../src/domain/Video.ts"
import type { Upstream } from "../../src/providers/client/Upstream.ts"
import type { Fetcher } from "../../src/services/media/Fetcher.ts"
import type { Provider } from "../../src/services/routing/Provider.ts"

/** What the host renders, and where it can be had: in the answer, behind a URL of the host itself, of another host. */
export interface Clip {
  readonly bytes: Uint8Array
  readonly where: "inside" | "own" | "elsewhere"
}

/** What can be asked of the host. */
export type Step = "submit" | "poll" | "result"

export type Weather =
  | "limit"
  | "funds"
  | "key"
  | "request"
  | "image"
  | "moderation"
  | "server"
  | "missing"
  | "page"
  | "garbage"
  | "empty"
  | "cut answer"

/** How a render ends that gave no clip. */
export type Ending = "request" | "image" | "moderation" | "flagged" | "runner" | "no clip"

/** A submit as the host understood it, whatever its wire. */
export interface Understood {
  readonly model: string
  readonly prompt: string
  /** As it stands on the wire; a symbol where the host cannot tell. */
  readonly seconds: unknown
  /** A symbol where the host cannot tell. */
  readonly reference: Picture | undefined | symbol
  readonly credential: string | undefined | symbol
}

export const unseen = Symbol("unseen")

/** A call that the host holds open before it answers. */
export interface Held {
  /** The call has arrived. */
  readonly arrived: Effect.Effect<unknown>
  /** Ends when the adapter has let go of the connection. */
  readonly gone: Effect.Effect<void>
}

export interface Host {
  /** With a model of its own for renders from a reference. */
  readonly route: VideoRoute
  /** The next submit not yet looked at. */
  readonly understood: Effect.Effect<Understood>
  /** The job runs. */
  readonly starts: Effect.Effect<void>
  /** The job stands where no protocol says it can. */
  readonly strays?: Effect.Effect<void> | undefined
  /** The job is done. */
  readonly finishes: (clip: Clip) => Effect.Effect<void>
  /** The job is over without a clip. */
  readonly fails: (ending: Ending) => Effect.Effect<void>
  /** How the next call of a step is met. */
  readonly meets: (step: Step, weather: Weather) => Effect.Effect<void>
  /** How the next download is met. */
  readonly serves?: ((how: "missing" | "server" | "cut") => Effect.Effect<void>) | undefined
  /** The credential that came with the next download not yet looked at. */
  readonly fetched: Effect.Effect<string | undefined>
  /** Waits for a job to be cancelled. */
  readonly cancelled: Effect.Effect<void>
  readonly holds?: ((step: Step) => Effect.Effect<Held>) | undefined
}

export interface Harness {
  readonly name: string
  readonly make: Effect.Effect<Provider, never, Upstream | Fetcher>
  readonly services: Layer.Layer<Upstream | Fetcher>
  readonly host: Effect.Effect<Host, never, Scope.Scope>
  /** What the host can be made to do at each step. */
  readonly weathers: Readonly<Record<Step, ReadonlyArray<Weather>>>
  readonly endings: ReadonlyArray<Ending>
  /** Where its clips can be. */
  readonly where: ReadonlyArray<Clip["where"]>
}

/** What carries the upstream secret, and what must never leave the route's own origin. */
export const secret = "sk-upstream-secret"

export const request = (given: Partial<VideoRequest> = {}): VideoRequest => ({
  prompt: "A red bicycle rides by",
  seconds: 8,
  reference: undefined,
  ...given
})

/** Bytes of every value, so that no decoder can mistake them for text. */
export const bytes = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed) % 256)

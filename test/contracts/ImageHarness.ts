import type { Effect, Layer, Scope } from "effect"
import type { ImageRequest } from "../../src/domain/Image.ts"
import type { ImageType, Picture } from "../../src/domain/Media.ts"
import type { ImageRoute } from "../../src/domain/Model.ts"
import type { Upstream } from "../../src/providers/client/Upstream.ts"
import type { Fetcher } from "../../src/services/media/Fetcher.ts"
import type { Provider } from "../../src/services/routing/Provider.ts"

/** What the host makes, in our words; the host puts it on its wire. */
export interface Painting {
  readonly bytes: Uint8Array
  readonly revisedPrompt?: string | undefined
  readonly where: Place
}

/** Where a picture is: inside the answer, behind a URL of the host itself, behind one of another host. */
export type Place = "inside" | "own" | "elsewhere"

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
  | "error inside"
  | "no picture"
  | "broken picture"
  | "empty picture"
  | "cut answer"

/** A request as the host understood it, whatever its wire. */
export interface Understood {
  readonly model: string
  readonly prompt: string
  /** Undefined where the host cannot tell. */
  readonly references: ReadonlyArray<Picture> | undefined
  readonly credential: string | undefined
}

/** How a picture behind a URL was asked for. */
export interface Fetched {
  readonly credential: string | undefined
}

/** A call that the host holds open before it answers. */
export interface Held {
  readonly release: Effect.Effect<void>
  /** Ends when the adapter has let go of the connection. */
  readonly gone: Effect.Effect<void>
}

export interface Host {
  /** With an edit model of another name. */
  readonly route: ImageRoute
  /** Scripts the next call, whatever its kind. */
  readonly answers: (painting: Painting) => Effect.Effect<void>
  readonly meets: (weather: Weather) => Effect.Effect<void>
  /** The next request for a picture not yet looked at. */
  readonly understood: Effect.Effect<Understood>
  /** The next download of a picture not yet looked at. */
  readonly fetched?: Effect.Effect<Fetched> | undefined
  /** Where the host can wait: scripts a call that it holds open. */
  readonly holds?: ((painting: Painting) => Effect.Effect<Held>) | undefined
}

export interface Harness {
  readonly name: string
  readonly make: Effect.Effect<Provider, never, Upstream | Fetcher>
  readonly services: Layer.Layer<Upstream | Fetcher>
  readonly host: Effect.Effect<Host, never, Scope.Scope>
  /** What the host can be made to do. */
  readonly weathers: ReadonlyArray<Weather>
  /** What exists on this wire, or can be seen on this host. */
  readonly has: {
    readonly places: readonly [Place, ...ReadonlyArray<Place>]
    readonly revisedPrompt: boolean
    readonly edits: boolean
    readonly waiting: boolean
  }
}

/** What carries the upstream secret, and what must never leave the route's own origin. */
export const secret = "sk-upstream-secret"

export const request = (given: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "A red bicycle",
  resolution: "1K",
  references: [],
  ...given
})

/** Bytes that tell apart what a wire may mistake: every value, line ends, and what looks like a boundary. */
export const picture = (type: ImageType, seed: number, length = 4_096): Picture => {
  const bytes = Uint8Array.from({ length }, (_, index) => (index * 7 + seed) % 256)
  bytes.set(Buffer.from("\r\n--gateway--\r\n\0\r\r\n\n"), 16)
  return { type, bytes }
}

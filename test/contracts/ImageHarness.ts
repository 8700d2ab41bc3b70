import type { Effect } from "effect"
import type { ImageRequest } from "../../src/domain/Image.ts"
import type { ImageType, Picture } from "../../src/domain/Media.ts"
import type { ImageRoute } from "../../src/domain/Model.ts"
import type { HeldCall } from "../harness/upstream/FakeUpstream.ts"
import type { Fault as MediaFault, MediaHarness, Place } from "./MediaHarness.ts"

/** What the host makes, in our words; the host puts it on its wire. */
export interface Painting {
  readonly bytes: Uint8Array
  readonly revisedPrompt?: string | undefined
  readonly where: Place
}

/** A finished response may also be wrong about its picture. */
export type Fault = MediaFault | "error inside" | "deep error" | "no picture" | "broken picture" | "empty picture"

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

export interface Host {
  /** With an edit model of another name. */
  readonly route: ImageRoute
  /** Scripts the next call, whatever its kind. */
  readonly answer: (painting: Painting) => Effect.Effect<void>
  readonly fail: (fault: Fault) => Effect.Effect<void>
  /** The next request for a picture not yet looked at. */
  readonly received: Effect.Effect<Understood>
  /** The next download of a picture not yet looked at. */
  readonly fetched?: Effect.Effect<Fetched> | undefined
  /** Where the host can wait: scripts a call that it holds open. */
  readonly hold?: ((painting: Painting) => Effect.Effect<HeldCall>) | undefined
}

export interface Harness extends MediaHarness<Host> {
  /** What the host can be made to do. */
  readonly faults: ReadonlyArray<Fault>
  /** What exists on this wire, or can be seen on this host. */
  readonly has: {
    readonly places: readonly [Place, ...ReadonlyArray<Place>]
    readonly revisedPrompt: boolean
    readonly edits: boolean
    readonly waiting: boolean
  }
}

export const request = (given: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "A red bicycle",
  resolution: "1K",
  shape: undefined,
  references: [],
  ...given
})

/** Bytes that tell apart what a wire may mistake: every value, line ends, and what looks like a boundary. */
export const picture = (type: ImageType, seed: number, length = 4_096): Picture => {
  const bytes = Uint8Array.from({ length }, (_, index) => (index * 7 + seed) % 256)
  bytes.set(Buffer.from("\r\n--gateway--\r\n\0\r\r\n\n"), 16)
  return { type, bytes }
}

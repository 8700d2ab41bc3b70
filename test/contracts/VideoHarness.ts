import type { Effect } from "effect"
import type { Picture } from "../../src/domain/Media.ts"
import type { VideoRoute } from "../../src/domain/Model.ts"
import type { VideoRequest } from "../../src/domain/VideoRules.ts"
import type { Fault, MediaHarness, Place } from "./MediaHarness.ts"

/** What the host renders, and where it can be had. */
export interface Clip {
  readonly bytes: Uint8Array
  readonly where: Place
}

/** What can be asked of the host. */
export type Step = "submit" | "poll" | "result"

/** How a render ends that gave no clip. */
export type Ending =
  | "request"
  | "image"
  | "moderation"
  | "flagged"
  | "runner"
  | "deep error"
  | "no clip"
  | "server"
  | "error beside"
  | "moderation beside"

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
export interface HeldCall {
  /** The call has arrived. */
  readonly arrived: Effect.Effect<unknown>
  /** Ends when the adapter has let go of the connection. */
  readonly gone: Effect.Effect<void>
}

export interface Host {
  /** With a model of its own for renders from a reference. */
  readonly route: VideoRoute
  /** The next submit not yet looked at. */
  readonly received: Effect.Effect<Understood>
  /** The job runs. */
  readonly start: Effect.Effect<void>
  /** The job stands where no protocol says it can. */
  readonly stray?: Effect.Effect<void> | undefined
  /** The job is done. */
  readonly finish: (clip: Clip) => Effect.Effect<void>
  /** The job is over without a clip. */
  readonly endBy: (ending: Ending) => Effect.Effect<void>
  /** How the next call of a step is met. */
  readonly fail: (step: Step, fault: Fault) => Effect.Effect<void>
  /** How the next download is met. */
  readonly serve?: ((how: "missing" | "server" | "cut") => Effect.Effect<void>) | undefined
  /** The credential that came with the next download not yet looked at. */
  readonly fetched: Effect.Effect<string | undefined>
  /** Waits for a job to be cancelled. */
  readonly cancelled: Effect.Effect<void>
  readonly hold?: ((step: Step) => Effect.Effect<HeldCall>) | undefined
}

export interface Harness extends MediaHarness<Host> {
  /** What the host can be made to do at each step. */
  readonly faults: Readonly<Record<Step, ReadonlyArray<Fault>>>
  readonly endings: ReadonlyArray<Ending>
  /** Where its clips can be. */
  readonly where: ReadonlyArray<Place>
}

export const request = (given: Partial<VideoRequest> = {}): VideoRequest => ({
  prompt: "A red bicycle rides by",
  seconds: 8,
  reference: undefined,
  ...given
})

/** Bytes of every value, so that no decoder can mistake them for text. */
export const bytes = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed) % 256)

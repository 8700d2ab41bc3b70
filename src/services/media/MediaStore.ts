import { Context, Data, type Effect, type Option, type Stream } from "effect"
import type { MediaType } from "../../domain/Media.ts"

export const largestRead = 128 * 1024 * 1024

export class MediaStoreFailed extends Data.TaggedError("MediaStoreFailed")<{ readonly detail: string }> {}

export interface NewMedia<E> {
  readonly type: MediaType
  /** `private` media are never linked or served. */
  readonly visibility: "public" | "private"
  readonly body: Uint8Array | Stream.Stream<Uint8Array, E>
}

/** Files appear complete or not at all and never change; a stream occupies a few MiB of memory. */
export class MediaStore extends Context.Tag("gateway/MediaStore")<
  MediaStore,
  {
    readonly put: <E = never>(media: NewMedia<E>) => Effect.Effect<string, MediaStoreFailed | E>
    /** Writes a probe, unless something was written lately. */
    readonly check: Effect.Effect<void, MediaStoreFailed>
    readonly link: (name: string) => string
    readonly named: (link: string) => Option.Option<string>
    readonly has: (name: string) => Effect.Effect<boolean, MediaStoreFailed>
    /** Returns the size in bytes, or none if the store lacks the name. */
    readonly sizeOf: (name: string) => Effect.Effect<Option.Option<number>, MediaStoreFailed>
    readonly read: (name: string) => Effect.Effect<Option.Option<Uint8Array>, MediaStoreFailed>
    readonly remove: (name: string) => Effect.Effect<boolean, MediaStoreFailed>
  }
>() {}

import { Context, Data, type Effect, type Option, type Stream } from "effect"
import type { MediaType } from "../../domain/Media.ts"

/** The most that `read` gives back, in bytes: it holds all of it. */
export const largestRead = 128 * 1024 * 1024

/** The store could not do what it was asked. `detail` is for the operator's log. */
export class MediaStoreFailed extends Data.TaggedError("MediaStoreFailed")<{ readonly detail: string }> {}

export interface NewMedia<E> {
  readonly type: MediaType
  /** `private` media are never linked or served; only `read` gives them back. */
  readonly visibility: "public" | "private"
  readonly body: Uint8Array | Stream.Stream<Uint8Array, E>
}

/**
 * Files under names that nobody can guess. A file appears whole or not at all, never changes, and no name leads out
 * of the store. Of a stream only a few MiB are in memory at a time.
 */
export class MediaStore extends Context.Tag("gateway/MediaStore")<
  MediaStore,
  {
    /** The name of what was stored, which is what rows keep. */
    readonly put: <E = never>(media: NewMedia<E>) => Effect.Effect<string, MediaStoreFailed | E>
    /** Fails where nothing can be written. It writes to find out, unless something was written lately. */
    readonly check: Effect.Effect<void, MediaStoreFailed>
    /** The link of public media, good for as long as the file is there. */
    readonly link: (name: string) => string
    /** The name behind a link of this store. */
    readonly named: (link: string) => Option.Option<string>
    /** All of a file, none where it is not there: for small ones. */
    readonly read: (name: string) => Effect.Effect<Option.Option<Uint8Array>, MediaStoreFailed>
    /** Whether there was such a file. */
    readonly remove: (name: string) => Effect.Effect<boolean, MediaStoreFailed>
  }
>() {}

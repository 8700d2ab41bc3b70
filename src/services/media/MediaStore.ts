import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Either, type Option, Schedule, type Stream } from "effect"
import type { MediaType } from "../../domain/Media.ts"
import { Timings } from "../runtime/Timings.ts"

export const maxReadBytes = 128 * 1024 * 1024

export class MediaStoreFailed extends Data.TaggedError("MediaStoreFailed")<{ readonly detail: string }> {}

export interface NewMedia<E> {
  readonly type: MediaType
  /** `private` media are never linked or served. */
  readonly visibility: "public" | "private"
  readonly body: Uint8Array | Stream.Stream<Uint8Array, E>
}

/** Writes are atomic and files never change. A stream uses a few MiB of memory. */
export class MediaStore extends Context.Tag("gateway/MediaStore")<
  MediaStore,
  {
    readonly put: <E = never>(media: NewMedia<E>) => Effect.Effect<string, MediaStoreFailed | E>
    /** Fails if media cannot be written. Writes a probe file if nothing was written recently. */
    readonly check: Effect.Effect<void, MediaStoreFailed>
    readonly link: (name: string) => string
    readonly nameOf: (link: string) => Option.Option<string>
    readonly has: (name: string) => Effect.Effect<boolean, MediaStoreFailed>
    /** Returns the size in bytes, or none if the store lacks the name. */
    readonly sizeOf: (name: string) => Effect.Effect<Option.Option<number>, MediaStoreFailed>
    readonly read: (name: string) => Effect.Effect<Option.Option<Uint8Array>, MediaStoreFailed>
    readonly remove: (name: string) => Effect.Effect<boolean, MediaStoreFailed>
  }
>() {}

/**
 * Checks regularly whether media can be written, and logs each change. Returns a function that returns the last result.
 */
export const mediaWatch = Effect.gen(function* () {
  const store = yield* MediaStore
  const { checkMediaEvery } = yield* Timings
  let isWritable = true
  const check = Effect.gen(function* () {
    const result = yield* Effect.either(store.check)
    const wasWritable = isWritable
    isWritable = Either.isRight(result)
    if (Either.isLeft(result) && wasWritable) {
      yield* Effect.logWarning(`The media store cannot be written: ${result.left.detail}`)
    }
    if (isWritable && !wasWritable) yield* Effect.logInfo("The media store can be written again")
  })
  yield* check.pipe(Effect.repeat(Schedule.spaced(checkMediaEvery)), Effect.forkScoped)
  return () => isWritable
})

const removalBatch = 1_000

/** Removes the media that transactions have listed in `media_removals`. A failed removal stays listed. */
export const makeMediaRemovals = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const store = yield* MediaStore

  const remove = (name: string) =>
    Effect.zipRight(
      store.remove(name),
      Effect.uninterruptible(sql`DELETE FROM media_removals WHERE name = ${name}`)
    ).pipe(Effect.ignoreLogged)

  const removeAll = Effect.uninterruptible(
    sql<{ readonly name: string }>`SELECT name FROM media_removals ORDER BY listed_at LIMIT ${removalBatch}`
  ).pipe(Effect.flatMap(Effect.forEach(({ name }) => remove(name), { discard: true })))

  return { remove, removeAll }
})

import { Clock, type Context, Duration, Effect, Option, Stream } from "effect"
import { parseMediaName } from "../domain/Media.ts"
import { type MediaStore, MediaStoreFailed } from "../services/media/MediaStore.ts"

type Service = Context.Tag.Service<MediaStore>

/** Where a media store has its files. Only names of media are passed to it. */
interface Files extends Pick<Service, "put" | "sizeOf" | "read" | "remove"> {
  /** The base of links, without a trailing slash. */
  readonly publicUrl: string
  /** Fails if nothing can be written. */
  readonly probe: Effect.Effect<unknown, MediaStoreFailed>
  /** How long the store trusts its last write. */
  readonly trustedFor: Duration.DurationInput
}

const isPublic = (name: string) => parseMediaName(name)?.visibility === "public"

/** Ignores what a link says after `?` or `#`. */
export const links = (publicUrl: string) => ({
  link: (name: string): string => {
    if (!isPublic(name)) throw new Error("Only public media have a link.")
    return `${publicUrl}/${name}`
  },
  named: (link: string): Option.Option<string> => {
    if (!link.startsWith(`${publicUrl}/`)) return Option.none()
    const name = link.slice(publicUrl.length + 1).replace(/[?#].*$/s, "")
    return isPublic(name) ? Option.some(name) : Option.none()
  }
})

const probeWithin = "10 seconds"

export const makeStore = ({ probe: write, publicUrl, put, read, remove, sizeOf, trustedFor }: Files) =>
  Effect.map(Effect.makeSemaphore(1), (mutex): Service => {
    const trustedNanos = BigInt(Math.round(Duration.toMillis(trustedFor))) * 1_000_000n
    let last: { readonly at: bigint; readonly failure: MediaStoreFailed | undefined } | undefined
    const record = (failure: MediaStoreFailed | undefined) =>
      Effect.map(Clock.currentTimeNanos, (at) => {
        last = { at, failure }
      })

    const probe = write.pipe(
      Effect.disconnect,
      Effect.timeoutFail({
        duration: probeWithin,
        onTimeout: () => new MediaStoreFailed({ detail: `nothing was written in ${probeWithin}` })
      }),
      Effect.matchEffect({ onFailure: record, onSuccess: () => record(undefined) })
    )

    /** Callers that wait share the latest result. */
    const isKnown = (askedAt: bigint, now: bigint) =>
      last !== undefined && (last.at >= askedAt || (last.failure === undefined && now - last.at < trustedNanos))

    const check = Effect.flatMap(Clock.currentTimeNanos, (askedAt) =>
      Effect.gen(function* () {
        if (!isKnown(askedAt, yield* Clock.currentTimeNanos)) yield* probe
        if (last?.failure !== undefined) return yield* last.failure
      }).pipe(mutex.withPermits(1))
    )

    const onFile =
      <A>(span: string, absent: A, use: (name: string) => Effect.Effect<A, MediaStoreFailed>) =>
      (name: string) =>
        Effect.withSpan(parseMediaName(name) === undefined ? Effect.succeed(absent) : use(name), span)
    const hasFile = (name: string) => Effect.map(sizeOf(name), Option.isSome)

    return {
      ...links(publicUrl),
      put: (media) =>
        put(media).pipe(
          Effect.tapError((error) => (error instanceof MediaStoreFailed ? record(error) : Effect.void)),
          Effect.tap(() => record(undefined)),
          Effect.withSpan("MediaStore.put")
        ),
      check: Effect.withSpan(check, "MediaStore.check"),
      has: onFile("MediaStore.has", false, hasFile),
      sizeOf: onFile("MediaStore.sizeOf", Option.none(), sizeOf),
      read: onFile("MediaStore.read", Option.none(), read),
      remove: onFile("MediaStore.remove", false, remove)
    }
  })

/** Parts of exactly `size` bytes, except the last, share one buffer: nothing is pulled while one is in use. */
export const forEachPart = <E, E2, R, R2>(
  body: Stream.Stream<Uint8Array, E, R>,
  size: number,
  use: (part: Uint8Array, isLast: boolean) => Effect.Effect<void, E2, R2>
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    const memory = Buffer.allocUnsafeSlow(size)
    let filled = 0
    const take = (chunk: Uint8Array, from: number): Effect.Effect<void, E2, R2> => {
      if (from === chunk.length) return Effect.void
      if (filled === size) {
        return Effect.flatMap(use(memory, false), () => {
          filled = 0
          return take(chunk, from)
        })
      }
      const count = Math.min(size - filled, chunk.length - from)
      memory.set(chunk.subarray(from, from + count), filled)
      filled += count
      return take(chunk, from + count)
    }
    return Stream.runForEach(body, (chunk) => Effect.suspend(() => take(chunk, 0))).pipe(
      Effect.zipRight(Effect.suspend(() => use(memory.subarray(0, filled), true)))
    )
  })

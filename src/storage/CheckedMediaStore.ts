import { Clock, type Context, Duration, Effect } from "effect"
import { type MediaStore, MediaStoreFailed } from "../services/media/MediaStore.ts"

type Service = Context.Tag.Service<MediaStore>

const within = "10 seconds"

/** Adds `check`: `write` fails where nothing can be written; a success holds for `holds`. */
export const withCheck = (
  store: Omit<Service, "check">,
  write: Effect.Effect<unknown, MediaStoreFailed>,
  holds: Duration.DurationInput
) =>
  Effect.map(Effect.makeSemaphore(1), (mutex): Service => {
    const holdsNanos = BigInt(Math.round(Duration.toMillis(holds))) * 1_000_000n
    let last: { readonly at: bigint; readonly failure: MediaStoreFailed | undefined } | undefined
    const record = (failure: MediaStoreFailed | undefined) =>
      Effect.map(Clock.currentTimeNanos, (at) => {
        last = { at, failure }
      })

    const put: Service["put"] = (media) =>
      store.put(media).pipe(
        Effect.tapError((error) => (error instanceof MediaStoreFailed ? record(error) : Effect.void)),
        Effect.tap(() => record(undefined))
      )

    const probe = write.pipe(
      Effect.disconnect,
      Effect.timeoutFail({
        duration: within,
        onTimeout: () => new MediaStoreFailed({ detail: `nothing was written in ${within}` })
      }),
      Effect.matchEffect({ onFailure: record, onSuccess: () => record(undefined) })
    )

    /** Callers that wait share the latest result. */
    const isKnown = (askedAt: bigint, now: bigint) =>
      last !== undefined && (last.at >= askedAt || (last.failure === undefined && now - last.at < holdsNanos))

    const check = Effect.flatMap(Clock.currentTimeNanos, (askedAt) =>
      Effect.gen(function* () {
        if (!isKnown(askedAt, yield* Clock.currentTimeNanos)) yield* probe
        if (last?.failure !== undefined) return yield* last.failure
      }).pipe(mutex.withPermits(1))
    ).pipe(Effect.withSpan("MediaStore.check"))

    return { ...store, put, check }
  })

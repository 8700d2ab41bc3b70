import { Effect, Either, Stream } from "effect"
import { largestPicture } from "../domain/Media.ts"
import type { ImageRoute, RouteBase, VideoRoute } from "../domain/Model.ts"
import { Fetcher, type FetchFailed } from "../services/Fetcher.ts"
import { type FailureClass, type Provider, ProviderFailure, type VideoHandle } from "../services/Provider.ts"
import { malformed } from "./Classification.ts"
import { type Handle, handleOf, textOf } from "./fal-queue/Handle.ts"
import { imageSubmission, videoSubmission } from "./fal-queue/Input.ts"
import * as Queue from "./fal-queue/Queue.ts"
import { inlined, type Media } from "./fal-queue/Result.ts"
import type { Upstream } from "./Upstream.ts"
import { ownOrigin, unfetched } from "./upstream/Own.ts"

const largestClip = 2 * 1024 * 1024 * 1024
const clipSeconds = 600
const pictureSeconds = 60
const firstPauseMillis = 500
const longestPauseMillis = 3_000
const askings = 4

const passing: ReadonlySet<FailureClass> = new Set(["retry", "limit", "network", "timeout"])
const mayPass = (failure: ProviderFailure) => passing.has(failure.class)
const mayComeYet = ({ reason, status = 0 }: FetchFailed) =>
  reason === "network" || reason === "timeout" || status >= 500

/** What was taken is paid for: it is asked after again before it is given up. */
const patiently = <A, E>(asking: Effect.Effect<A, E>, again: (failure: E) => boolean) => {
  const ask = (pause: number, left: number): Effect.Effect<A, E> =>
    Effect.catchIf(
      asking,
      (failure) => left > 0 && again(failure),
      () => Effect.delay(ask(pause * 2, left - 1), pause)
    )
  return ask(firstPauseMillis, askings - 1)
}

/** fal.ai's queue, and whatever speaks like it, with `Authorization: Key`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const queue = yield* Queue.make
  const fetcher = yield* Fetcher

  const kept = ({ provider }: RouteBase, text: VideoHandle) =>
    Either.mapLeft(
      handleOf(provider, text),
      (wrong) => new ProviderFailure({ class: "retry", status: undefined, detail: wrong, unsent: true })
    )

  const fetching = ({ provider }: RouteBase, { url }: Media, limitBytes: number, withinSeconds: number) =>
    ({ url, from: "provider", limitBytes, withinSeconds, own: ownOrigin(provider, Queue.authorization) }) as const

  const isInline = ({ url }: Media) => /^data:/i.test(url)

  const decoded = ({ provider }: RouteBase, { url }: Media) => {
    const bytes = inlined(url)
    return bytes === undefined ? malformed(provider, 200, "a data URI that is not base64") : Effect.succeed(bytes)
  }

  const picture = (route: ImageRoute, media: Media) => {
    if (isInline(media)) return decoded(route, media)
    const bytes = fetcher.bytes(fetching(route, media, largestPicture, pictureSeconds))
    return Effect.mapError(patiently(bytes, mayComeYet), unfetched(route.provider))
  }

  const clip = (route: VideoRoute, media: Media) =>
    isInline(media)
      ? Stream.fromEffect(decoded(route, media))
      : fetcher
          .stream(fetching(route, media, largestClip, clipSeconds))
          .pipe(Stream.mapError(unfetched(route.provider)))

  const over = (
    route: RouteBase,
    handle: Handle,
    pause = firstPauseMillis
  ): Effect.Effect<Queue.End, ProviderFailure> =>
    Effect.flatMap(Effect.delay(patiently(queue.progress(route, handle), mayPass), pause), (progress) =>
      progress.state === "done" || progress.state === "failed"
        ? Effect.succeed(progress)
        : over(route, handle, Math.min(pause * 1.5, longestPauseMillis))
    )

  /** Nobody wants the job any more. Best effort, and short: somebody may be waiting. */
  const abandoned = (route: RouteBase, handle: Handle) =>
    queue.cancel(route, handle).pipe(Effect.interruptible, Effect.timeout("2 seconds"), Effect.ignore)

  return {
    adapter: "fal-queue",
    image: {
      generate: Effect.fn("FalQueue.generate")(function* (route, request) {
        const submission = yield* imageSubmission(route, request)
        const end = yield* Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(restore(queue.submit(route, submission)), (handle) =>
            Effect.onError(restore(over(route, handle)), () => abandoned(route, handle))
          )
        )
        if (end.state === "failed") return yield* end.failure
        return { bytes: yield* picture(route, end.media), revisedPrompt: end.media.revisedPrompt }
      })
    },
    video: {
      submit: Effect.fn("FalQueue.submit")(function* (route, request) {
        return textOf(yield* queue.submit(route, yield* videoSubmission(route, request)))
      }),
      poll: Effect.fn("FalQueue.poll")(function* (route, handle) {
        const progress = yield* queue.progress(route, yield* kept(route, handle))
        return progress.state === "done" ? { state: "done" } : progress
      }),
      download: (route, handle) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const progress = yield* queue.result(route, yield* kept(route, handle))
            if (progress.state === "done") return clip(route, progress.media)
            if (progress.state === "failed") return yield* progress.failure
            return yield* malformed(route.provider, 200, "the result is not there yet")
          })
        ),
      cancel: Effect.fn("FalQueue.cancel")(function* (route, handle) {
        yield* queue.cancel(route, yield* kept(route, handle))
      })
    }
  }
})

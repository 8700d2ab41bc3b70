import { Effect, Either, Stream } from "effect"
import { largestPicture } from "../../domain/Media.ts"
import type { ImageRoute, RouteBase, VideoRoute } from "../../domain/Model.ts"
import { Fetcher, type FetchFailed } from "../../services/media/Fetcher.ts"
import {
  type FailureClass,
  type ImageAdapter,
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle
} from "../../services/routing/Provider.ts"
import { malformed } from "../client/Classification.ts"
import { ownOrigin, unfetched } from "../client/OwnOrigin.ts"
import type { UpstreamRequest } from "../client/Upstream.ts"
import { type Handle, handleOf, textOf } from "./Handle.ts"
import type { Submission, submissions } from "./Input.ts"
import { type End, inlined, isOver, type Media, type Progress } from "./Progress.ts"

/** A host that takes pictures and clips as jobs: each is put in, asked after until it is over, and its result fetched. */
export interface Jobs {
  /** As spans call it. */
  readonly name: string
  readonly authorization: UpstreamRequest["authorization"]
  readonly written: ReturnType<typeof submissions>
  /** `waiting`: somebody waits for the answer, so that a host may well take its time for it. */
  readonly submit: (
    route: RouteBase,
    submission: Submission,
    waiting: boolean
  ) => Effect.Effect<{ readonly handle: Handle; readonly progress: Progress }, ProviderFailure>
  readonly progress: (route: RouteBase, handle: Handle) => Effect.Effect<Progress, ProviderFailure>
  /** Of a job that is done. */
  readonly result: (route: RouteBase, handle: Handle) => Effect.Effect<Progress, ProviderFailure>
  readonly cancel: (route: RouteBase, handle: Handle) => Effect.Effect<void, ProviderFailure>
}

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

const kept = ({ provider }: RouteBase, text: VideoHandle) =>
  Either.mapLeft(
    handleOf(provider, text),
    (wrong) => new ProviderFailure({ class: "retry", status: undefined, detail: wrong, unsent: true })
  )

const isInline = ({ url }: Media) => /^data:/i.test(url)

const decoded = ({ provider }: RouteBase, { url }: Media) => {
  const bytes = inlined(url)
  return bytes === undefined ? malformed(provider, 200, "a data URI that is not base64") : Effect.succeed(bytes)
}

/** Adapters for the pictures and clips of such a host. */
export const adapters = Effect.fnUntraced(function* (jobs: Jobs) {
  const fetcher = yield* Fetcher

  const fetching = ({ provider }: RouteBase, { url }: Media, limitBytes: number, withinSeconds: number) =>
    ({ url, from: "provider", limitBytes, withinSeconds, own: ownOrigin(provider, jobs.authorization) }) as const

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

  const over = (route: RouteBase, handle: Handle, pause = firstPauseMillis): Effect.Effect<End, ProviderFailure> =>
    Effect.flatMap(Effect.delay(patiently(jobs.progress(route, handle), mayPass), pause), (progress) =>
      isOver(progress) ? Effect.succeed(progress) : over(route, handle, Math.min(pause * 1.5, longestPauseMillis))
    )

  /** Nobody wants the job any more. Best effort, and short: somebody may be waiting. */
  const abandoned = (route: RouteBase, handle: Handle) =>
    jobs.cancel(route, handle).pipe(Effect.interruptible, Effect.timeout("2 seconds"), Effect.ignore)

  const image: ImageAdapter = {
    generate: Effect.fn(`${jobs.name}.generate`)(function* (route, request) {
      const submission = yield* jobs.written.image(route, request)
      const end = yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(jobs.submit(route, submission, true)), ({ handle, progress }) =>
          isOver(progress)
            ? Effect.succeed(progress)
            : Effect.onError(restore(over(route, handle)), () => abandoned(route, handle))
        )
      )
      if (end.state === "failed") return yield* end.failure
      return { bytes: yield* picture(route, end.media), revisedPrompt: end.media.revisedPrompt }
    })
  }

  const video: VideoAdapter = {
    submit: Effect.fn(`${jobs.name}.submit`)(function* (route, request) {
      const { handle } = yield* jobs.submit(route, yield* jobs.written.video(route, request), false)
      return textOf(handle)
    }),
    poll: Effect.fn(`${jobs.name}.poll`)(function* (route, handle) {
      const progress = yield* jobs.progress(route, yield* kept(route, handle))
      return progress.state === "done" ? { state: "done" } : progress
    }),
    download: (route, handle) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const progress = yield* jobs.result(route, yield* kept(route, handle))
          if (progress.state === "done") return clip(route, progress.media)
          if (progress.state === "failed") return yield* progress.failure
          return yield* malformed(route.provider, 200, "the result is not there yet")
        })
      ),
    cancel: Effect.fn(`${jobs.name}.cancel`)(function* (route, handle) {
      yield* jobs.cancel(route, yield* kept(route, handle))
    })
  }

  return { image, video }
})

import { Effect, Either, Random, Stream } from "effect"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { Catalog } from "../Catalog.ts"
import { Failpoint } from "../Failpoint.ts"
import { MediaStore } from "../MediaStore.ts"
import { isVideo } from "../Pictures.ts"
import { ProviderFailure, type VideoProgress } from "../Provider.ts"
import { ProviderRouter } from "../ProviderRouter.ts"
import { Attempts } from "../routing/Attempts.ts"
import { contentRejected, errorOf, type Finish, outOfTime, upstreamFailed } from "./Finish.ts"
import { thaw } from "./FrozenRoute.ts"
import type { Rows, Work } from "./Rows.ts"
import { doubt, type Submit } from "./Submit.ts"

/** What is to become of a job after a step: nothing more, or another look after so many milliseconds. */
export type Next = "over" | { readonly restMs: number }

const firstRestMs = 2_000
const longestRestMs = 10_000
const mostDownloads = 5
/** Seconds for one question, and for handing a clip over to the store. */
const pollWithin = "30 seconds"
const downloadWithin = "15 minutes"
const cancelWithin = "10 seconds"
/** Enough of a file to tell what it is. */
const tellingBytes = 4_096

/** From 2 s rising to 10 s, a little apart from the other jobs' rests. */
const restAfter = (polls: number): Effect.Effect<Next> =>
  Effect.map(Random.nextRange(0.9, 1.1), (jitter) => ({
    restMs: Math.min(firstRestMs * 1.3 ** Math.max(0, polls - 2), longestRestMs) * jitter
  }))

const noVideo = new ProviderFailure({ class: "retry", status: 200, detail: "the clip is no MP4 video" })

/** Fails where the stream turns out not to be a video; what has been read to tell is not lost. */
const checked = <E, R>(clip: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ProviderFailure, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(clip)
      const chunks: Array<Uint8Array> = []
      let bytes = 0
      let ended = false
      while (bytes < tellingBytes && !ended) {
        const more = yield* Effect.either(pull)
        if (Either.isRight(more)) {
          for (const chunk of more.right) {
            chunks.push(chunk)
            bytes += chunk.length
          }
        } else if (more.left._tag === "Some") return yield* Effect.fail(more.left.value)
        else ended = true
      }
      const first = Buffer.concat(chunks)
      if (!(yield* isVideo(first.subarray(0, tellingBytes)))) return yield* noVideo
      const rest = ended ? Stream.empty : Stream.repeatEffectChunkOption(pull)
      return Stream.concat(Stream.make(first), rest)
    })
  )

/** Sees submitted jobs through: asks after them, fetches the clip, ends them. */
export const make = Effect.fnUntraced(function* (rows: Rows, submit: Submit, finish: Finish) {
  const catalog = yield* Catalog
  const router = yield* ProviderRouter
  const store = yield* MediaStore
  const failpoint = yield* Failpoint
  const accounts: ReadonlyArray<ProviderAccount> = catalog.providers.map(({ account }) => account)

  const submitted = (job: Work): Effect.Effect<Next> =>
    Effect.gen(function* () {
      const attempts = new Attempts()
      const outcome = yield* Effect.either(submit(job, attempts))
      if (Either.isRight(outcome)) return yield* restAfter(0)
      yield* finish.fail(job, errorOf(outcome.left), { attempts: attempts.list })
      return "over"
    })

  /** The render did not come to a clip: one more route may, while there is time. */
  const anew = Effect.fnUntraced(function* (job: Work, failure: ProviderFailure) {
    yield* Effect.logInfo(`Video ${job.id} failed at ${job.route?.id ?? "its route"}: ${failure.detail}`)
    if (failure.class === "moderation") {
      yield* finish.fail(job, contentRejected)
      return "over" as const
    }
    const model = catalog.find(job.model)
    const further = model?.routes.some(({ id }) => !job.tried.includes(id)) ?? false
    if (failure.class === "request" || !job.spare || !further) {
      yield* finish.fail(job, upstreamFailed)
      return "over" as const
    }
    if (!(yield* Effect.orDie(rows.again(job, false)))) return "over" as const
    return yield* submitted({ ...job, step: "submit", spare: false })
  })

  /** Whoever had the job died, or lost its lease, while a submit was on its way. */
  const doubtful = Effect.fnUntraced(function* (job: Work) {
    yield* doubt(job, job.route?.id)
    if (!job.spare) {
      yield* finish.fail(job, upstreamFailed)
      return "over" as const
    }
    if (!(yield* Effect.orDie(rows.again(job, true)))) return "over" as const
    return yield* submitted({ ...job, step: "submit", spare: false })
  })

  const fetched = Effect.fnUntraced(function* (job: Work, route: VideoRoute, handle: string) {
    if (job.downloads >= mostDownloads) return yield* anew(job, noVideo)
    if (!(yield* Effect.orDie(rows.downloading(job)))) return "over" as const
    const renderer = yield* router.renderer(route)
    yield* failpoint.reach("video_storing")
    const stored = yield* store
      .put({ type: "video/mp4", visibility: "public", body: checked(renderer.download(route, handle)) })
      .pipe(Effect.timeoutFail({ duration: downloadWithin, onTimeout: () => slowDownload }), Effect.either)
    if (Either.isLeft(stored)) {
      if (stored.left === noVideo) return yield* anew(job, noVideo)
      yield* Effect.logWarning(`The clip of video ${job.id} could not be stored: ${stored.left.detail}`)
      return yield* restAfter(job.downloads + 2)
    }
    yield* failpoint.reach("video_stored")
    yield* finish.complete(job, stored.right, route)
    return "over" as const
  })

  const asked = Effect.fnUntraced(function* (route: VideoRoute, handle: string) {
    const renderer = yield* router.renderer(route)
    yield* failpoint.reach("video_polling")
    return yield* Effect.timeoutFail(renderer.poll(route, handle), {
      duration: pollWithin,
      onTimeout: () =>
        new ProviderFailure({ class: "timeout", status: undefined, detail: `no answer in ${pollWithin}` })
    })
  })

  const followed = Effect.fnUntraced(function* (job: Work) {
    const route = job.route === null ? undefined : thaw(job.route, accounts)
    if (route === undefined || job.handle === null) {
      yield* Effect.logWarning(`Video ${job.id} is with ${job.route?.provider.name}, which the catalog does not have`)
      return { restMs: longestRestMs }
    }
    const progress = yield* Effect.either(asked(route, job.handle))
    if (Either.isLeft(progress)) {
      yield* Effect.logDebug(`Asking after video ${job.id} failed: ${progress.left.detail}`)
      yield* Effect.orDie(rows.polled(job, false))
      return yield* restAfter(job.polls)
    }
    return yield* seen(job, route, job.handle, progress.right)
  })

  const seen = Effect.fnUntraced(function* (job: Work, route: VideoRoute, handle: string, progress: VideoProgress) {
    if (progress.state === "failed") return yield* anew(job, progress.failure)
    if (progress.state === "done") {
      return yield* Effect.catchTag(fetched(job, route, handle), "ProviderFailure", () => restAfter(job.polls))
    }
    yield* Effect.orDie(rows.polled(job, progress.state === "in_progress"))
    return yield* restAfter(job.polls)
  })

  /** Tells the provider that nobody waits for the render any more; once, whatever comes of it. */
  const givenUp = Effect.fnUntraced(function* (job: Work) {
    const route = job.route === null ? undefined : thaw(job.route, accounts)
    const { handle } = job
    if (route !== undefined && handle !== null) {
      yield* Effect.flatMap(router.renderer(route), ({ cancel }) => cancel?.(route, handle) ?? Effect.void).pipe(
        Effect.timeout(cancelWithin),
        Effect.catchAll((failure) => Effect.logDebug(`The render of video ${job.id} could not be cancelled`, failure))
      )
    }
    yield* Effect.orDie(rows.cancelled(job))
    return "over" as const
  })

  /** One step of a job, by the holder of its lease. */
  return Effect.fnUntraced(function* (job: Work): Effect.fn.Return<Next> {
    if (job.step === "over") return yield* givenUp(job)
    if (job.leftMs <= 0) {
      yield* finish.fail(job, outOfTime, { cancelling: job.step === "rendering" })
      return "over"
    }
    if (job.step === "submit") return yield* submitted(job)
    return yield* job.step === "submitting" ? doubtful(job) : followed(job)
  })
})

const slowDownload = new ProviderFailure({
  class: "timeout",
  status: undefined,
  detail: `longer than ${downloadWithin}`
})

export type Follow = Effect.Effect.Success<ReturnType<typeof make>>

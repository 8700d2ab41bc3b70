import { Clock, Effect, Either, Metric, Option, Stream } from "effect"
import { InvalidRequest, NoHealthyProvider } from "../../domain/Failure.ts"
import type { Picture } from "../../domain/Media.ts"
import { modelAt, type VideoRoute } from "../../domain/Model.ts"
import { unusableReference } from "../../domain/ReferenceProblem.ts"
import { isVideo, pictureOf } from "../media/Pictures.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { AttemptHistory } from "../routing/AttemptHistory.ts"
import { type FailureClass, ProviderFailure, type VideoHandle } from "../routing/Provider.ts"
import { videoRetries } from "../runtime/Schedules.ts"
import type { VideoServices } from "./VideoServices.ts"
import { encodeRoute, type LeasedJob, LeaseLost } from "./VideoState.ts"

const longestRoundMs = 180_000
const pollTimeout = "30 seconds"
const cancelTimeout = "10 seconds"
const longestDownloadMs = 900_000
const headerBytes = 4_096

export interface Render {
  readonly route: VideoRoute
  readonly handle: VideoHandle
}

const withoutStatus: ReadonlySet<FailureClass> = new Set(["network", "timeout"])
const withStatus: ReadonlySet<FailureClass> = new Set(["network", "timeout", "retry"])
/** Gateway statuses from a proxy: the provider may have the job. */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 504])

/** The provider may have taken a submit whose answer is missing or inconclusive. */
export const isUncertain = ({ class: kind, status, unsent }: ProviderFailure): boolean => {
  if (unsent === true) return false
  if (status === undefined) return withoutStatus.has(kind)
  return (status < 400 || gatewayStatuses.has(status)) && withStatus.has(kind)
}

export const reportUncertainSubmit = (job: LeasedJob, route: string | undefined) =>
  Effect.zipRight(
    Effect.logWarning(
      `Video ${job.id} may be rendered at ${route ?? "a route"} for nothing: its submit was not confirmed`
    ),
    Metric.increment(Metrics.videoDoubts)
  )

/** Never repeats a submit that may have arrived on its route, and asks only one more route after it. */
export const submit = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  attempts: AttemptHistory,
  loaded?: Picture
) {
  const { catalog, failpoint, router, rows, submitting } = services
  const sold = catalog.current.findId(job.model)
  const model = sold && modelAt(sold, yield* Clock.currentTimeMillis)
  if (model?.surface !== "video") return yield* new NoHealthyProvider()
  const reference = loaded ?? (yield* loadReference(services, job))
  let { doubts, spare } = job
  let lastRoute: string | undefined
  // Set until the doubt is recorded.
  let uncertainRoute: string | undefined
  const routed = router.submit({
    model,
    request: { prompt: job.prompt, seconds: job.seconds, reference },
    attempts,
    tried: new Set(job.tried),
    limitMillis: Math.min(Math.max(0, job.leftMs), longestRoundMs),
    beforeSubmit: Effect.fnUntraced(function* (route: VideoRoute) {
      const unreported = uncertainRoute
      uncertainRoute = undefined
      lastRoute = route.id
      yield* write(services, job, rows.submit(job, { id: route.id, route: encodeRoute(route), doubts, spare }))
      if (unreported !== undefined) yield* reportUncertainSubmit(job, unreported)
      yield* failpoint.reach("video_submitting")
    }),
    mayTryNext: (failure) => {
      const isSpare = spare
      if (isUncertain(failure)) {
        spare = false
        doubts += 1
        uncertainRoute = lastRoute
      }
      return isSpare
    }
  })
  const recordUncertainSubmit = Effect.gen(function* () {
    if (uncertainRoute === undefined) return
    yield* write(services, job, rows.recordUncertainSubmit(job, doubts))
    yield* reportUncertainSubmit(job, uncertainRoute)
  })
  const submission = Effect.flatMap(
    Effect.tapError(routed, () => recordUncertainSubmit),
    (render) => recordRender(services, job, render, attempts)
  )
  return yield* Effect.acquireUseRelease(
    Effect.sync(() => submitting.add(job.lease)),
    () => submission,
    () => Effect.sync(() => submitting.delete(job.lease))
  )
})

const unusable = new InvalidRequest({ message: unusableReference, param: "image" })

const loadReference = Effect.fnUntraced(function* ({ references, rows, store }: VideoServices, job: LeasedJob) {
  if (job.reference !== null) {
    const bytes = yield* Effect.orDie(store.read(job.reference))
    const picture = Option.isSome(bytes) ? yield* pictureOf(bytes.value) : Option.none<Picture>()
    return Option.isSome(picture) ? picture.value : yield* unusable
  }
  if (job.referenceUrl === null) return undefined
  const [picture] = yield* references.load([{ _tag: "Url", url: job.referenceUrl }], "image")
  if (picture === undefined) return yield* unusable
  const { bytes: body, type } = picture
  const name = yield* Effect.orDie(store.put({ type, visibility: "private", body }))
  if (!(yield* Effect.orDie(rows.storeReference(job, name)))) {
    yield* Effect.ignoreLogged(store.remove(name))
    yield* loseLease(job)
  }
  return picture
})

const write = Effect.fnUntraced(function* (
  { retryBriefly }: VideoServices,
  job: LeasedJob,
  change: Effect.Effect<boolean, unknown>
) {
  const isDone = yield* change.pipe(Effect.retry(retryBriefly), Effect.orDie)
  if (!isDone) yield* loseLease(job)
}, Effect.uninterruptible)

const recordRender = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  render: Render,
  attempts: AttemptHistory
) {
  const { failpoint, rows } = services
  yield* failpoint.reach("video_submitted")
  const written = rows.render(job, render.handle, attempts.list)
  if (yield* written.pipe(Effect.uninterruptible, Effect.retry(videoRetries), Effect.orDie)) return render.route
  yield* reportUncertainSubmit(job, render.route.id)
  yield* cancelRender(services, render, job.id)
  return yield* loseLease(job)
})

const loseLease = ({ id }: LeasedJob) => Effect.die(new LeaseLost({ id }))

const timeout = (detail: string) => new ProviderFailure({ class: "timeout", status: undefined, detail })

export const pollRender = Effect.fnUntraced(function* (
  { failpoint, router }: VideoServices,
  { handle, route }: Render
) {
  const adapter = yield* router.renderer(route)
  yield* failpoint.reach("video_polling")
  return yield* Effect.timeoutFail(adapter.poll(route, handle), {
    duration: pollTimeout,
    onTimeout: () => timeout(`no answer in ${pollTimeout}`)
  })
})

/** Returns the name of the stored clip. */
export const downloadClip = Effect.fnUntraced(function* (
  { router, store }: VideoServices,
  { handle, route }: Render,
  { leftMs }: LeasedJob
) {
  const adapter = yield* router.renderer(route)
  const within = Math.min(Math.max(leftMs, 0), longestDownloadMs)
  const body = requireMp4(adapter.download(route, handle))
  return yield* Effect.timeoutFail(store.put({ type: "video/mp4", visibility: "public", body }), {
    duration: within,
    onTimeout: () => timeout(`the clip was not there within ${within} ms`)
  })
})

const noVideo = new ProviderFailure({ class: "retry", status: 200, detail: "the clip is no MP4 video" })

const requireMp4 = <E, R>(clip: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ProviderFailure, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(clip)
      const chunks: Array<Uint8Array> = []
      let bytes = 0
      let hasEnded = false
      while (bytes < headerBytes && !hasEnded) {
        const more = yield* Effect.either(pull)
        if (Either.isRight(more)) {
          for (const chunk of more.right) {
            chunks.push(chunk)
            bytes += chunk.length
          }
        } else if (more.left._tag === "Some") return yield* Effect.fail(more.left.value)
        else hasEnded = true
      }
      const first = Buffer.concat(chunks)
      if (!(yield* isVideo(first.subarray(0, headerBytes)))) return yield* noVideo
      return Stream.concat(Stream.make(first), hasEnded ? Stream.empty : Stream.repeatEffectChunkOption(pull))
    })
  )

export const cancelRender = ({ router }: VideoServices, { handle, route }: Render, id: string) =>
  Effect.flatMap(router.renderer(route), (adapter) => adapter.cancel?.(route, handle) ?? Effect.void).pipe(
    Effect.timeout(cancelTimeout),
    Effect.catchAllCause((cause) => Effect.logDebug(`The render of video ${id} could not be cancelled`, cause))
  )

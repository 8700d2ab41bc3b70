import { Clock, Effect, Either, Metric, Option, Stream } from "effect"
import { InvalidRequest, NoHealthyProvider } from "../../domain/Failure.ts"
import { type Picture, unusableReference } from "../../domain/Media.ts"
import { modelAt, type VideoRoute } from "../../domain/Model.ts"
import { isVideo, pictureOf } from "../media/Pictures.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { AttemptHistory } from "../routing/Attempt.ts"
import { type FailureClass, ProviderFailure, type VideoHandle } from "../routing/Provider.ts"
import { videoRetries } from "../runtime/Schedules.ts"
import type { VideoServices } from "./VideoServices.ts"
import { encodeRoute, type LeasedJob, LeaseLost } from "./VideoState.ts"

const maxRoundMs = 180_000
const pollTimeout = "30 seconds"
const cancelTimeout = "10 seconds"
const maxDownloadMs = 900_000
const headerBytes = 4_096

export interface Render {
  readonly route: VideoRoute
  readonly handle: VideoHandle
}

const uncertainWithoutStatus: ReadonlySet<FailureClass> = new Set(["network", "timeout"])
const uncertainWithStatus: ReadonlySet<FailureClass> = new Set(["network", "timeout", "retry"])
/** Statuses of proxies. The provider behind the proxy may have accepted the job. */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 504])

/** Returns whether the answer is missing or inconclusive, so the provider may have accepted the submit. */
export const isUncertain = ({ class: kind, status, isUnsent: unsent }: ProviderFailure): boolean => {
  if (unsent === true) return false
  if (status === undefined) return uncertainWithoutStatus.has(kind)
  return (status < 400 || gatewayStatuses.has(status)) && uncertainWithStatus.has(kind)
}

export const reportUncertainSubmit = (job: LeasedJob, route: string | undefined) =>
  Effect.zipRight(
    Effect.logWarning(
      `The submission of video ${job.id} to ${route ?? "a route"} was not confirmed. The provider may charge for a render that is lost.`
    ),
    Metric.increment(Metrics.videoDoubts)
  )

/**
 * Submits the job to one of its routes. After a submit that may have arrived, it tries only one more route, and never
 * the same.
 */
export const submit = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  attempts: AttemptHistory,
  loadedReference?: Picture
) {
  const { catalog, failpoint, router, rows, submitting } = services
  const listedModel = catalog.current.findId(job.model)
  const model = listedModel && modelAt(listedModel, yield* Clock.currentTimeMillis)
  if (model?.surface !== "video") return yield* new NoHealthyProvider()
  const reference = loadedReference ?? (yield* loadReference(services, job))
  let { uncertainSubmits, mayRetryRoute } = job
  let lastRoute: string | undefined
  // The route of an uncertain submit that is not recorded yet.
  let uncertainRoute: string | undefined
  const submitToRoutes = router.submit({
    model,
    request: { prompt: job.prompt, seconds: job.seconds, reference },
    attempts,
    attemptedRoutes: new Set(job.attemptedRoutes),
    limitMillis: Math.min(Math.max(0, job.leftMs), maxRoundMs),
    beforeSubmit: Effect.fnUntraced(function* (route: VideoRoute) {
      const unreportedRoute = uncertainRoute
      uncertainRoute = undefined
      lastRoute = route.id
      yield* write(
        services,
        job,
        rows.submit(job, { id: route.id, route: encodeRoute(route), uncertainSubmits, mayRetryRoute })
      )
      if (unreportedRoute !== undefined) yield* reportUncertainSubmit(job, unreportedRoute)
      yield* failpoint.reach("video_submitting")
    }),
    mayTryNext: (failure) => {
      const hadRetry = mayRetryRoute
      if (isUncertain(failure)) {
        mayRetryRoute = false
        uncertainSubmits += 1
        uncertainRoute = lastRoute
      }
      return hadRetry
    }
  })
  const recordUncertainSubmit = Effect.gen(function* () {
    if (uncertainRoute === undefined) return
    yield* write(services, job, rows.recordUncertainSubmit(job, uncertainSubmits))
    yield* reportUncertainSubmit(job, uncertainRoute)
  })
  const submission = Effect.flatMap(
    Effect.tapError(submitToRoutes, () => recordUncertainSubmit),
    (render) => recordRender(services, job, render, attempts)
  )
  return yield* Effect.acquireUseRelease(
    Effect.sync(() => submitting.add(job.lease)),
    () => submission,
    () => Effect.sync(() => submitting.delete(job.lease))
  )
})

const referenceError = new InvalidRequest({ message: unusableReference, param: "image" })

const loadReference = Effect.fnUntraced(function* ({ references, rows, store }: VideoServices, job: LeasedJob) {
  if (job.reference !== null) {
    const bytes = yield* Effect.orDie(store.read(job.reference))
    const picture = Option.isSome(bytes) ? yield* pictureOf(bytes.value) : Option.none<Picture>()
    return Option.isSome(picture) ? picture.value : yield* referenceError
  }
  if (job.referenceUrl === null) return undefined
  const [picture] = yield* references.load([{ _tag: "Url", url: job.referenceUrl }], "image")
  if (picture === undefined) return yield* referenceError
  const { bytes: body, type } = picture
  const name = yield* Effect.orDie(store.put({ type, visibility: "private", body }))
  if (!(yield* Effect.orDie(rows.storeReference(job, name)))) {
    yield* Effect.ignoreLogged(store.remove(name))
    yield* loseLease(job)
  }
  return picture
})

const write = Effect.fnUntraced(function* (
  { settleRetries }: VideoServices,
  job: LeasedJob,
  change: Effect.Effect<boolean, unknown>
) {
  const isDone = yield* change.pipe(Effect.retry(settleRetries), Effect.orDie)
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
  const recordHandle = rows.render(job, render.handle, attempts.list)
  if (yield* recordHandle.pipe(Effect.uninterruptible, Effect.retry(videoRetries), Effect.orDie)) return render.route
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
  const adapter = yield* router.videoAdapter(route)
  yield* failpoint.reach("video_polling")
  return yield* Effect.timeoutFail(adapter.poll(route, handle), {
    duration: pollTimeout,
    onTimeout: () => timeout(`no response in ${pollTimeout}`)
  })
})

/** Returns the name of the stored clip. */
export const downloadClip = Effect.fnUntraced(function* (
  { router, store }: VideoServices,
  { handle, route }: Render,
  { leftMs }: LeasedJob
) {
  const adapter = yield* router.videoAdapter(route)
  const timeoutMs = Math.min(Math.max(leftMs, 0), maxDownloadMs)
  const body = requireMp4(adapter.download(route, handle))
  return yield* Effect.timeoutFail(store.put({ type: "video/mp4", visibility: "public", body }), {
    duration: timeoutMs,
    onTimeout: () => timeout(`the clip was not downloaded within ${timeoutMs} ms`)
  })
})

const notMp4 = new ProviderFailure({ class: "retry", status: 200, detail: "the clip is not an MP4 video" })

const requireMp4 = <E, R>(clip: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ProviderFailure, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(clip)
      const chunks: Array<Uint8Array> = []
      let bytes = 0
      let hasEnded = false
      while (bytes < headerBytes && !hasEnded) {
        const next = yield* Effect.either(pull)
        if (Either.isRight(next)) {
          for (const chunk of next.right) {
            chunks.push(chunk)
            bytes += chunk.length
          }
        } else if (next.left._tag === "Some") return yield* Effect.fail(next.left.value)
        else hasEnded = true
      }
      const header = Buffer.concat(chunks)
      if (!(yield* isVideo(header.subarray(0, headerBytes)))) return yield* notMp4
      return Stream.concat(Stream.make(header), hasEnded ? Stream.empty : Stream.repeatEffectChunkOption(pull))
    })
  )

export const cancelRender = ({ router }: VideoServices, { handle, route }: Render, id: string) =>
  Effect.flatMap(router.videoAdapter(route), (adapter) => adapter.cancel?.(route, handle) ?? Effect.void).pipe(
    Effect.timeout(cancelTimeout),
    Effect.catchAllCause((cause) => Effect.logDebug(`Failed to cancel the render of video ${id}`, cause))
  )

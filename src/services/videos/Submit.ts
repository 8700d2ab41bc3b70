import { Clock, Effect, Metric, Option } from "effect"
import { InvalidRequest, NoHealthyProvider } from "../../domain/Failure.ts"
import type { Picture } from "../../domain/Media.ts"
import { modelAt } from "../../domain/Model.ts"
import { unusableReference } from "../../domain/ReferenceProblem.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { pictureOf } from "../media/Pictures.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { AttemptHistory } from "../routing/AttemptHistory.ts"
import type { FailureClass, ProviderFailure } from "../routing/Provider.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { backoffFor, videoRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import type { VideoSql } from "./VideoSql.ts"
import { encodeRoute, type LeasedJob, LeaseLost } from "./VideoState.ts"
import type { Render, Upstream } from "./VideoUpstream.ts"

const longestRoundMs = 180_000

const unusable = new InvalidRequest({ message: unusableReference, param: "image" })

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

export const makeSubmit = (rows: VideoSql, upstream: Upstream) =>
  Effect.gen(function* () {
    const catalog = yield* Catalog
    const router = yield* ProviderRouter
    const references = yield* ReferenceImages
    const store = yield* MediaStore
    const failpoint = yield* Failpoint
    const retryBriefly = backoffFor((yield* Timings).settleWithin)
    /** A stop waits for these leases. */
    const underway = new Set<string>()

    const loseLease = ({ id }: LeasedJob) => Effect.die(new LeaseLost({ id }))

    const write = (job: LeasedJob, change: Effect.Effect<boolean, unknown>) =>
      change.pipe(
        Effect.retry(retryBriefly),
        Effect.orDie,
        Effect.flatMap((isDone) => (isDone ? Effect.void : loseLease(job))),
        Effect.uninterruptible
      )

    const loadReference = Effect.fnUntraced(function* (job: LeasedJob) {
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

    const recordRender = Effect.fnUntraced(function* (job: LeasedJob, render: Render, attempts: AttemptHistory) {
      yield* failpoint.reach("video_submitted")
      const written = rows.render(job, render.handle, attempts.list)
      if (yield* written.pipe(Effect.uninterruptible, Effect.retry(videoRetries), Effect.orDie)) return render.route
      yield* reportUncertainSubmit(job, render.route.id)
      yield* upstream.cancel(render, job.id)
      return yield* loseLease(job)
    })

    /** Never repeats a submit that may have arrived on its route, and asks only one more route after it. */
    const submit = Effect.fnUntraced(function* (job: LeasedJob, attempts: AttemptHistory, loaded?: Picture) {
      const sold = catalog.current.findId(job.model)
      const model = sold && modelAt(sold, yield* Clock.currentTimeMillis)
      if (model?.surface !== "video") return yield* new NoHealthyProvider()
      const reference = loaded ?? (yield* loadReference(job))
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
        beforeSubmit: (route) =>
          Effect.suspend(() => {
            const unreported = uncertainRoute
            uncertainRoute = undefined
            lastRoute = route.id
            return Effect.zipRight(
              write(job, rows.submit(job, { id: route.id, route: encodeRoute(route), doubts, spare })),
              unreported === undefined ? Effect.void : reportUncertainSubmit(job, unreported)
            )
          }).pipe(Effect.zipRight(failpoint.reach("video_submitting"))),
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
      const recordUncertainSubmit = Effect.suspend(() =>
        uncertainRoute === undefined
          ? Effect.void
          : Effect.zipRight(
              write(job, rows.recordUncertainSubmit(job, doubts)),
              reportUncertainSubmit(job, uncertainRoute)
            )
      )
      return yield* Effect.acquireUseRelease(
        Effect.sync(() => underway.add(job.lease)),
        () =>
          Effect.flatMap(
            Effect.tapError(routed, () => recordUncertainSubmit),
            (render) => recordRender(job, render, attempts)
          ),
        () => Effect.sync(() => underway.delete(job.lease))
      )
    })

    return { submit, underway }
  })
export type Submit = Effect.Effect.Success<ReturnType<typeof makeSubmit>>

import { Context, Effect, Layer, Metric, Option } from "effect"
import { InvalidRequest, NoHealthyProvider, type RoutingFailure } from "../../domain/Failure.ts"
import type { Picture } from "../../domain/Media.ts"
import type { VideoRoute } from "../../domain/Model.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { pictureOf } from "../media/Pictures.ts"
import { References } from "../media/References.ts"
import type { Attempts } from "../routing/Attempts.ts"
import type { FailureClass, ProviderFailure } from "../routing/Provider.ts"
import { ProviderRouter, type RoutedRender } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as CancelUpstream from "./CancelUpstream.ts"
import { LeaseLost } from "./Errors.ts"
import { brief, patient } from "./Finish.ts"
import { freeze } from "./FrozenRoute.ts"
import { type LeasedJob, VideoSql } from "./VideoSql.ts"

/** Milliseconds for one round over the routes. */
const submitWithin = 180_000

const unusable = new InvalidRequest({ message: "Failed to process the reference image.", param: "image" })

const unanswered: ReadonlySet<FailureClass> = new Set(["network", "timeout"])
const unclear: ReadonlySet<FailureClass> = new Set([...unanswered, "retry"])
/** What stands before a provider says so when it has passed a request on and got no answer, as JSON or not. */
const passedOn: ReadonlySet<number> = new Set([502, 504])

/** Whether a provider may have taken a submit that failed: nothing came back, or nothing that says otherwise. */
export const isDoubtful = ({ class: kind, status, unsent }: ProviderFailure): boolean =>
  unsent !== true &&
  (status === undefined ? unanswered.has(kind) : (status < 400 || passedOn.has(status)) && unclear.has(kind))

/** Tells the operator of a render that may be paid for nothing. */
export const reportDoubt = (job: LeasedJob, route: string | undefined) =>
  Effect.zipRight(
    Effect.logWarning(`Video ${job.id} may be rendered at ${route ?? "a route"} without anybody knowing, for nothing`),
    Metric.increment(Metrics.videoDoubts)
  )

const make = Effect.gen(function* () {
  const rows = yield* VideoSql
  const underway = new Set<string>()
  const catalog = yield* Catalog
  const router = yield* ProviderRouter
  const references = yield* References
  const store = yield* MediaStore
  const failpoint = yield* Failpoint
  const cancelUpstream = yield* CancelUpstream.make

  const failLeaseLost = ({ id }: LeasedJob) => Effect.die(new LeaseLost({ id }))

  const write = (job: LeasedJob, change: Effect.Effect<boolean, unknown>) =>
    change.pipe(
      Effect.retry(brief),
      Effect.orDie,
      Effect.flatMap((done) => (done ? Effect.void : failLeaseLost(job))),
      Effect.uninterruptible
    )

  /** The reference as a picture, kept for whoever may have to submit again. */
  const loadReference = Effect.fnUntraced(function* (job: LeasedJob) {
    if (job.reference !== null) {
      const bytes = yield* Effect.orDie(store.read(job.reference))
      const picture = Option.isSome(bytes) ? yield* pictureOf(bytes.value) : Option.none<Picture>()
      return Option.isSome(picture) ? picture.value : yield* unusable
    }
    if (job.referenceUrl === null) return undefined
    const [picture] = yield* references.load([{ _tag: "Url", url: job.referenceUrl }], "image")
    if (picture === undefined) return yield* unusable
    yield* storeReference(job, picture)
    return picture
  })

  const storeReference = Effect.fnUntraced(function* (job: LeasedJob, { bytes, type }: Picture) {
    const name = yield* Effect.orDie(store.put({ type, visibility: "private", body: bytes }))
    if (yield* Effect.orDie(rows.referenced(job, name))) return
    yield* Effect.ignoreLogged(store.remove(name))
    yield* failLeaseLost(job)
  })

  const recordHandle = Effect.fnUntraced(function* (
    job: LeasedJob,
    { handle, route }: RoutedRender,
    attempts: Attempts
  ) {
    yield* failpoint.reach("video_submitted")
    const written = rows.rendering(job, handle, attempts.list).pipe(Effect.uninterruptible, Effect.retry(patient))
    if (yield* Effect.orDie(written)) return route
    yield* reportDoubt(job, route.id)
    yield* cancelUpstream(job.id, route, handle)
    return yield* failLeaseLost(job)
  })

  const submit = Effect.fnUntraced(function* (job: LeasedJob, attempts: Attempts, given?: Picture) {
    const model = catalog.find(job.model)
    if (model?.surface !== "video") return yield* new NoHealthyProvider()
    const reference = given ?? (yield* loadReference(job))
    let { doubts, spare } = job
    // The route of a submit that may have arrived, until that is written down.
    let doubted: string | undefined
    let asked: string | undefined
    const routed = router.submit({
      model,
      request: { prompt: job.prompt, seconds: job.seconds, reference },
      attempts,
      tried: new Set(job.tried),
      within: Math.min(Math.max(0, job.leftMs), submitWithin),
      leaving: (route) =>
        Effect.suspend(() => {
          const news = doubted
          doubted = undefined
          asked = route.id
          return Effect.zipRight(
            write(job, rows.submitting(job, { id: route.id, frozen: freeze(route) }, { doubts, spare })),
            news === undefined ? Effect.void : reportDoubt(job, news)
          )
        }).pipe(Effect.zipRight(failpoint.reach("video_submitting"))),
      mayMove: (failure) => {
        const left = spare
        if (isDoubtful(failure)) {
          spare = false
          doubts += 1
          doubted = asked
        }
        return left
      }
    })
    const recordDoubt = Effect.suspend(() =>
      doubted === undefined
        ? Effect.void
        : Effect.zipRight(write(job, rows.doubted(job, doubts)), reportDoubt(job, doubted))
    )
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => underway.add(job.lease)),
      () =>
        Effect.flatMap(
          Effect.tapError(routed, () => recordDoubt),
          (render) => recordHandle(job, render, attempts)
        ),
      () => Effect.sync(() => underway.delete(job.lease))
    )
  })

  return VideoSubmit.of({ submit, underway })
})

/** Brings jobs to a provider. */
export class VideoSubmit extends Context.Tag("gateway/VideoSubmit")<
  VideoSubmit,
  {
    /**
     * Submits a job to the first route that takes it. A submit that may have arrived is never repeated on its route, and
     * only one more route is asked after it.
     * @param given the job's reference, where it is in memory
     */
    readonly submit: (
      job: LeasedJob,
      attempts: Attempts,
      given?: Picture
    ) => Effect.Effect<VideoRoute, RoutingFailure | InvalidRequest>
    /** Leases of jobs with a submit on its way, which a stop has to wait for. */
    readonly underway: ReadonlySet<string>
  }
>() {
  static readonly layer = Layer.effect(
    VideoSubmit,
    Effect.suspend(() => make)
  )
}

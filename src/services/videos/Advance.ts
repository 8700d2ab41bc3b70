import { Context, Effect, Either, Layer } from "effect"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { Attempts } from "../routing/Attempts.ts"
import { isFinal } from "../routing/Outcome.ts"
import { ProviderFailure, type VideoAdapter, type VideoProgress } from "../routing/Provider.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import * as CancelUpstream from "./CancelUpstream.ts"
import * as Download from "./Download.ts"
import { contentRejected, errorOf, internalError, outOfTime, upstreamFailed } from "./Errors.ts"
import { VideoFinish } from "./Finish.ts"
import { thaw } from "./FrozenRoute.ts"
import { downloadDelay, leave, type Next, pollDelay } from "./PollDelay.ts"
import { reportDoubt, VideoSubmit } from "./Submit.ts"
import { type LeasedJob, VideoSql } from "./VideoSql.ts"

const mostDownloads = 5
/** For one question. */
const pollWithin = "30 seconds"

/** A job that a provider has, and whom to ask about it. */
interface Render {
  readonly route: VideoRoute
  readonly handle: string
  readonly renderer: VideoAdapter
}

const make = Effect.gen(function* () {
  const rows = yield* VideoSql
  const { submit } = yield* VideoSubmit
  const finish = yield* VideoFinish
  const catalog = yield* Catalog
  const router = yield* ProviderRouter
  const failpoint = yield* Failpoint
  const download = yield* Download.make
  const cancelUpstream = yield* CancelUpstream.make
  const accounts: ReadonlyArray<ProviderAccount> = catalog.providers.flatMap(({ account, ready }) =>
    ready ? account : []
  )
  const isSold = ({ model }: LeasedJob) => catalog.find(model)?.surface === "video"

  const leaveToOthers = (job: LeasedJob, lacking: string) =>
    Effect.as(
      Effect.logWarning(`Video ${job.id} is left to other instances: the catalog of this one lacks ${lacking}`),
      leave
    )
  const leaveWithoutModel = (job: LeasedJob) => leaveToOthers(job, `the model ${job.model}`)
  const leaveWithoutProvider = (job: LeasedJob) =>
    leaveToOthers(job, job.route === null ? "its route" : `the provider ${job.route.provider.name}, or its credential`)

  const submitJob = (job: LeasedJob): Effect.Effect<Next> =>
    Effect.gen(function* () {
      const attempts = new Attempts()
      const outcome = yield* Effect.either(submit(job, attempts))
      if (Either.isRight(outcome)) return yield* pollDelay(0)
      yield* finish.fail(job, errorOf(outcome.left), { attempts: attempts.list })
      return "over"
    })

  const submitToNextRoute = Effect.fnUntraced(function* (job: LeasedJob, doubts: number) {
    if (!(yield* Effect.orDie(rows.again(job, doubts)))) return "over" as const
    return yield* submitJob({ ...job, step: "submit", spare: false, doubts })
  })

  /** The render did not come to a clip: one more route may, while there is time. */
  const retryOrFail = Effect.fnUntraced(function* (job: LeasedJob, failure: ProviderFailure) {
    yield* Effect.logInfo(`Video ${job.id} failed at ${job.route?.id ?? "its route"}: ${failure.detail}`)
    const model = catalog.find(job.model)
    const further = model?.routes.some(({ id }) => !job.tried.includes(id)) ?? false
    if (!isFinal(failure.class) && job.spare && !isSold(job)) return yield* leaveWithoutModel(job)
    if (isFinal(failure.class) || !job.spare || !further) {
      yield* finish.fail(job, failure.class === "moderation" ? contentRejected : upstreamFailed)
      return "over" as const
    }
    return yield* submitToNextRoute(job, job.doubts)
  })

  /** Whoever had the job died, or lost its lease, while a submit was on its way. */
  const resolveDoubt = Effect.fnUntraced(function* (job: LeasedJob) {
    const late = job.leftMs <= 0
    if (job.spare && !late && !isSold(job)) return yield* leaveWithoutModel(job)
    yield* reportDoubt(job, job.route?.id)
    const doubts = job.doubts + 1
    if (job.spare && !late) return yield* submitToNextRoute(job, doubts)
    if (!(yield* Effect.orDie(rows.doubted(job, doubts)))) return "over" as const
    yield* finish.fail(job, late ? outOfTime : upstreamFailed)
    return "over" as const
  })

  const storeClip = Effect.fnUntraced(function* (job: LeasedJob, { handle, renderer, route }: Render) {
    yield* failpoint.reach("video_storing")
    const stored = yield* Effect.either(download(job, renderer, route, handle))
    if (Either.isRight(stored)) {
      yield* failpoint.reach("video_stored")
      yield* finish.complete(job, stored.right, route)
      return "over" as const
    }
    const failure = stored.left
    yield* Effect.logWarning(`The clip of video ${job.id} could not be stored: ${failure.detail}`)
    // It is still at its provider: however long the store is away, no other route would do better.
    if (failure._tag === "MediaStoreFailed") return yield* pollDelay(job.polls)
    if (isFinal(failure.class)) return yield* retryOrFail(job, failure)
    const failed = yield* Effect.orDie(rows.notDownloaded(job))
    if (failed === undefined) return "over" as const
    return failed >= mostDownloads ? yield* retryOrFail(job, failure) : downloadDelay(failed)
  })

  const poll = Effect.fnUntraced(function* (route: VideoRoute, handle: string) {
    const renderer = yield* router.renderer(route)
    yield* failpoint.reach("video_polling")
    const progress = yield* Effect.timeoutFail(renderer.poll(route, handle), {
      duration: pollWithin,
      onTimeout: () =>
        new ProviderFailure({ class: "timeout", status: undefined, detail: `no answer in ${pollWithin}` })
    })
    return { progress, renderer }
  })

  const handleProgress = Effect.fnUntraced(function* (job: LeasedJob, progress: VideoProgress, render: Render) {
    if (progress.state === "failed") return yield* retryOrFail(job, progress.failure)
    if (!(yield* Effect.orDie(rows.polled(job, progress.state !== "queued")))) return "over" as const
    return yield* progress.state === "done" ? storeClip(job, render) : pollDelay(job.polls)
  })

  const pollJob = Effect.fnUntraced(function* (job: LeasedJob) {
    const route = job.route === null ? undefined : thaw(job.route, accounts)
    const { handle } = job
    if (route === undefined || handle === null) return yield* leaveWithoutProvider(job)
    const answer = yield* Effect.either(poll(route, handle))
    if (Either.isRight(answer)) {
      const { progress, renderer } = answer.right
      return yield* handleProgress(job, progress, { route, handle, renderer })
    }
    yield* Effect.logDebug(`Asking after video ${job.id} failed: ${answer.left.detail}`)
    yield* Effect.orDie(rows.polled(job, false))
    return yield* pollDelay(job.polls)
  })

  const cancelJob = Effect.fnUntraced(function* (job: LeasedJob) {
    const route = job.route === null ? undefined : thaw(job.route, accounts)
    if (route !== undefined && job.handle !== null) yield* cancelUpstream(job.id, route, job.handle)
    yield* Effect.orDie(rows.cancelled(job))
    return "over" as const
  })

  const advance = Effect.fnUntraced(function* (job: LeasedJob): Effect.fn.Return<Next> {
    if (job.step === "over") return yield* cancelJob(job)
    if (!job.isAccepted) {
      yield* finish.fail(job, internalError)
      return "over"
    }
    if (job.step === "submitting") return yield* resolveDoubt(job)
    if (job.leftMs <= 0) {
      yield* finish.fail(job, outOfTime, { cancelling: job.step === "rendering" })
      return "over"
    }
    if (job.step !== "submit") return yield* pollJob(job)
    return yield* isSold(job) ? submitJob(job) : leaveWithoutModel(job)
  })

  return VideoAdvance.of({ advance })
})

/** Advances a leased job by one step: submits it, polls its provider, stores the clip, ends it. */
export class VideoAdvance extends Context.Tag("gateway/VideoAdvance")<
  VideoAdvance,
  { readonly advance: (job: LeasedJob) => Effect.Effect<Next> }
>() {
  static readonly layer = Layer.effect(
    VideoAdvance,
    Effect.suspend(() => make)
  )
}

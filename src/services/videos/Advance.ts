import { Effect, Either } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import { AttemptHistory } from "../routing/AttemptHistory.ts"
import { isFinal, type ProviderFailure, type VideoProgress } from "../routing/Provider.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Timings } from "../runtime/Timings.ts"
import { withSpan } from "../tracing/Tracing.ts"
import type { Finish } from "./Finish.ts"
import { restoreRoute } from "./FrozenRoute.ts"
import { reportUncertainSubmit, type Submit } from "./Submit.ts"
import { type AttemptFailure, missedDeadline, unconfirmedSubmit } from "./VideoAttempts.ts"
import type { VideoSql } from "./VideoSql.ts"
import {
  contentRejected,
  downloadDelay,
  errorOf,
  internalError,
  type JobAt,
  type LeasedJob,
  makePollDelay,
  Next,
  outOfTime,
  upstreamFailed,
  type VideoError
} from "./VideoState.ts"
import { makeVideoTrace } from "./VideoTrace.ts"
import type { Render, Upstream } from "./VideoUpstream.ts"

const maxDownloads = 5
const finished = Next.Finish()

export const makeAdvance = (rows: VideoSql, upstream: Upstream, { submit }: Submit, finish: Finish) =>
  Effect.gen(function* () {
    const catalog = yield* Catalog
    const failpoint = yield* Failpoint
    const pollDelay = makePollDelay((yield* Timings).pollVideoAfter)
    const trace = yield* makeVideoTrace
    const isSold = ({ model }: LeasedJob) => catalog.current.findId(model)?.surface === "video"

    const passOver = (job: LeasedJob, lacking: string) =>
      Effect.as(
        Effect.logWarning(`Video ${job.id} is left to other instances: the catalog of this one lacks ${lacking}`),
        Next.PassOver({ forMs: 60_000 })
      )
    const passOverModel = (job: LeasedJob) => passOver(job, `the model ${job.model}`)

    const fail = (job: LeasedJob, error: VideoError, options?: Parameters<Finish["fail"]>[2]) =>
      Effect.as(finish.fail(job, error, options), finished)

    const submitJob = (job: LeasedJob): Effect.Effect<Next> =>
      Effect.suspend(() => {
        const attempts = new AttemptHistory(job.orgId, trace.parentOf(job))
        return Effect.matchEffect(submit(job, attempts), {
          onFailure: (failure) => fail(job, errorOf(failure), { attempts: attempts.list }),
          onSuccess: () => pollDelay(0)
        })
      })

    const resubmit = Effect.fnUntraced(function* (
      job: JobAt<"submitting" | "rendering">,
      doubts: number,
      failure: AttemptFailure
    ) {
      if (!(yield* Effect.orDie(rows.resubmit(job, doubts, failure)))) return finished
      return yield* submitJob({ ...job, step: "submit", spare: false, doubts })
    })

    /** Tries one more route while there is time. */
    const retryOrFail = Effect.fnUntraced(function* (job: JobAt<"rendering">, failure: ProviderFailure) {
      yield* Effect.logInfo(`Video ${job.id} failed at ${job.route?.id ?? "its route"}: ${failure.detail}`)
      if (isFinal(failure.class) || !job.spare) {
        return yield* fail(job, failure.class === "moderation" ? contentRejected : upstreamFailed, { failure })
      }
      if (!isSold(job)) return yield* passOverModel(job)
      const hasFurtherRoute =
        catalog.current.findId(job.model)?.routes.some(({ id }) => !job.tried.includes(id)) ?? false
      return yield* hasFurtherRoute ? resubmit(job, job.doubts, failure) : fail(job, upstreamFailed, { failure })
    })

    /** The instance that submitted it died, or lost its lease, before it learned whether the submit arrived. */
    const resolveUncertainSubmit = Effect.fnUntraced(function* (job: JobAt<"submitting">) {
      const isLate = job.leftMs <= 0
      const mayResubmit = job.spare && !isLate
      if (mayResubmit && !isSold(job)) return yield* passOverModel(job)
      yield* reportUncertainSubmit(job, job.route?.id)
      const doubts = job.doubts + 1
      if (mayResubmit) return yield* resubmit(job, doubts, unconfirmedSubmit)
      if (!(yield* Effect.orDie(rows.recordUncertainSubmit(job, doubts)))) return finished
      return yield* fail(job, isLate ? outOfTime : upstreamFailed, { failure: unconfirmedSubmit })
    })

    const storeClip = Effect.fnUntraced(function* (job: JobAt<"rendering">, render: Render) {
      yield* failpoint.reach("video_storing")
      const download = withSpan(trace.parentOf(job), "download", upstream.download(render, job), {
        kind: "client",
        attributes: { "gateway.route": render.route.id }
      })
      const stored = yield* Effect.either(download)
      if (Either.isRight(stored)) {
        yield* failpoint.reach("video_stored")
        yield* finish.complete(job, stored.right, render.route)
        return finished
      }
      const failure = stored.left
      yield* Effect.logWarning(`The clip of video ${job.id} could not be stored: ${failure.detail}`)
      // The clip is still at its provider: another route would do no better.
      if (failure._tag === "MediaStoreFailed") {
        yield* Effect.orDie(rows.recordError(job, `the clip could not be stored: ${failure.detail}`))
        return yield* pollDelay(job.polls)
      }
      if (isFinal(failure.class)) return yield* retryOrFail(job, failure)
      const failed = yield* Effect.orDie(rows.failDownload(job))
      if (failed === undefined) return finished
      return failed >= maxDownloads ? yield* retryOrFail(job, failure) : downloadDelay(failed)
    })

    const handleProgress = Effect.fnUntraced(function* (
      job: JobAt<"rendering">,
      progress: VideoProgress,
      render: Render
    ) {
      if (progress.state === "failed") return yield* retryOrFail(job, progress.failure)
      const percent = progress.state === "done" ? 100 : progress.percent
      if (!(yield* Effect.orDie(rows.poll(job, progress.state !== "queued", percent)))) return finished
      return yield* progress.state === "done" ? storeClip(job, render) : pollDelay(job.polls)
    })

    const poll = Effect.fnUntraced(function* (job: JobAt<"rendering">) {
      const { handle } = job
      const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
      if (route === undefined) {
        const provider = job.route && `the provider ${job.route.provider.name}, or its credential`
        return yield* passOver(job, provider ?? "its route")
      }
      const answer = yield* Effect.either(upstream.poll({ handle, route }))
      if (Either.isRight(answer)) return yield* handleProgress(job, answer.right, { handle, route })
      yield* Effect.logDebug(`Asking after video ${job.id} failed: ${answer.left.detail}`)
      yield* Effect.orDie(rows.poll(job, false, 0, answer.left.detail))
      return yield* pollDelay(job.polls)
    })

    const cancel = Effect.fnUntraced(function* (job: JobAt<"over">) {
      const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
      if (route !== undefined && job.handle !== null) yield* upstream.cancel({ route, handle: job.handle }, job.id)
      yield* Effect.orDie(rows.cancelUpstream(job))
      return finished
    })

    const lateEnd = ({ lastError, step }: LeasedJob) =>
      step === "rendering" ? { cancelling: true, failure: missedDeadline(lastError) } : {}

    return (job: LeasedJob): Effect.Effect<Next> => {
      if (job.step === "over") return cancel(job)
      if (!job.isAccepted) return fail(job, internalError)
      if (job.step === "submitting") return resolveUncertainSubmit(job)
      if (job.leftMs <= 0) return fail(job, outOfTime, lateEnd(job))
      if (job.step === "rendering") return poll(job)
      return isSold(job) ? submitJob(job) : passOverModel(job)
    }
  })
export type Advance = Effect.Effect.Success<ReturnType<typeof makeAdvance>>

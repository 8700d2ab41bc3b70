import { Cause, Clock, Duration, Effect, Either, Exit, Fiber, FiberSet, Option, Queue, Schedule } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import { Refunds } from "../ledger/Refunds.ts"
import { AttemptHistory } from "../routing/AttemptHistory.ts"
import { isFinal, type ProviderFailure, type VideoProgress } from "../routing/Provider.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { leaseReleaseRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type Finish, makeVideoTrace } from "./Finish.ts"
import { reportUncertainSubmit, type Submit } from "./Submit.ts"
import type { VideoSql } from "./VideoSql.ts"
import { type AttemptFailure, missedDeadline, unconfirmedSubmit } from "./VideoSql.ts"
import {
  contentRejected,
  downloadDelay,
  errorOf,
  internalError,
  type JobAt,
  type Lease,
  type LeasedJob,
  LeaseLost,
  makePollDelay,
  Next,
  outOfTime,
  restoreRoute,
  upstreamFailed,
  type VideoError
} from "./VideoState.ts"
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
type Advance = Effect.Effect.Success<ReturnType<typeof makeAdvance>>

const maxAtOnce = 16
const retryDefectAfterMs = 5_000
const stopTimeout = "10 seconds"

const isLeaseLost = (cause: Cause.Cause<never>) =>
  Option.exists(Cause.dieOption(cause), (defect) => defect instanceof LeaseLost)

/** A stop waits only for running submits, which would be doubtful otherwise; `findVideosEvery` bounds the sleep. */
export const makeRunner = Effect.fnUntraced(function* (
  rows: VideoSql,
  advance: Advance,
  submitting: ReadonlySet<string>
) {
  const { pendingVideos } = yield* Refunds
  const { findVideosEvery, renewVideoLeaseEvery } = yield* Timings
  const longestSleepMs = Duration.toMillis(findVideosEvery)
  const fibers = yield* FiberSet.make<void>()
  const working = new Map<string, Lease & { fiber?: Fiber.RuntimeFiber<void> }>()
  const claimed = new Set<string>()
  const passedOver = new Map<string, bigint>()
  let isStopping = false
  const wakeups = yield* Queue.sliding<void>(1)
  const wake = Queue.offer(wakeups, undefined)

  const release = (job: Lease, ms: number) =>
    rows.release(job, ms).pipe(Effect.retry(leaseReleaseRetries), Effect.ignoreLogged, Effect.uninterruptible)

  const passOver = ({ id }: Lease, ms: number) =>
    Effect.map(Clock.currentTimeNanos, (now) => void passedOver.set(id, now + BigInt(Math.ceil(ms)) * 1_000_000n))
  const listPassedOver = Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [id, until] of passedOver) if (until <= now) passedOver.delete(id)
    return [...passedOver.keys()]
  })

  const finishRun = (job: Lease, exit: Exit.Exit<Next>) => {
    if (Exit.isSuccess(exit)) {
      return Next.$match(exit.value, {
        Finish: () => Effect.void,
        LookAgain: ({ afterMs }) => release(job, afterMs),
        PassOver: ({ forMs }) => Effect.zipRight(passOver(job, forMs), release(job, 0))
      })
    }
    if (Exit.isInterrupted(exit)) return release(job, 0)
    if (isLeaseLost(exit.cause)) return Effect.logInfo(`Video ${job.id} is leased by another instance, or over`)
    return Effect.zipRight(
      logFailure(`Working on video ${job.id} failed unexpectedly`, exit.cause, Effect.logError),
      release(job, retryDefectAfterMs)
    )
  }

  const run = ({ id, lease }: Lease, work: Effect.Effect<Next>) =>
    Effect.suspend(() => {
      const job: Lease & { fiber?: Fiber.RuntimeFiber<void> } = { id, lease }
      if (isStopping) return Effect.zipRight(release(job, 0), Effect.interrupt)
      working.set(lease, job)
      const endRun = Effect.suspend(() => {
        working.delete(lease)
        claimed.delete(lease)
        return wake
      })
      // The caller may be uninterruptible, but the work has deadlines.
      return Effect.onExit(Effect.interruptible(work), (exit) => finishRun(job, exit)).pipe(
        Effect.ensuring(endRun),
        Effect.catchAllCause(() => Effect.void),
        FiberSet.run(fibers),
        Effect.map((fiber) => {
          job.fiber = fiber
        })
      )
    })

  const sleep = Effect.flatMap(
    listPassedOver.pipe(
      Effect.flatMap(rows.nextDue),
      Effect.orElseSucceed(() => undefined)
    ),
    (ms = longestSleepMs) => Queue.take(wakeups).pipe(Effect.timeoutOption(Math.min(Math.max(ms, 20), longestSleepMs)))
  )

  const claimDue = Effect.gen(function* () {
    const capacity = maxAtOnce - claimed.size
    if (capacity <= 0) return yield* Queue.take(wakeups)
    const exceptions = Effect.all({ except: pendingVideos, passedOver: listPassedOver })
    const jobs = yield* Effect.flatMap(exceptions, (them) => rows.claim(capacity, them)).pipe(
      Effect.tap(
        Effect.forEach((job) => {
          claimed.add(job.lease)
          return run(job, advance(job))
        })
      ),
      Effect.uninterruptible
    )
    if (jobs.length < capacity) yield* sleep
  })

  const renewal = Effect.suspend(() =>
    working.size === 0 ? Effect.void : Effect.asVoid(rows.renew([...working.values()]))
  )
  yield* renewal.pipe(
    Effect.uninterruptible,
    Effect.catchAllCause((cause) => logFailure("Leases of videos could not be renewed", cause)),
    Effect.schedule(Schedule.spaced(renewVideoLeaseEvery)),
    Effect.forkScoped
  )

  const interruptOthers = Effect.suspend(() => {
    isStopping = true
    const idle = [...working.values()].filter(({ lease }) => !submitting.has(lease))
    return Effect.forEach(idle, ({ fiber }) => (fiber === undefined ? Effect.void : Fiber.interruptFork(fiber)))
  })
  const submitsDone = Effect.sync(() => submitting.size === 0).pipe(
    Effect.repeat({ until: (isDone) => isDone, schedule: Schedule.spaced("50 millis") }),
    Effect.interruptible,
    Effect.timeoutOption(stopTimeout)
  )
  yield* Effect.addFinalizer(() => Effect.zipRight(interruptOthers, submitsDone))

  yield* claimDue.pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(logFailure("Jobs could not be taken on", cause), Effect.sleep("1 second"))
    ),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )

  return { run }
})

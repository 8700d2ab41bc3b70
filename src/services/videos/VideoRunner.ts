import { Cause, Clock, Duration, Effect, Either, Exit, Fiber, FiberSet, Option, Queue, Schedule } from "effect"
import { AttemptHistory } from "../routing/Attempt.ts"
import { isFinal, type ProviderFailure, type VideoProgress } from "../routing/Provider.ts"
import { leaseReleaseRetries } from "../runtime/Schedules.ts"
import { logFailure } from "../sql/Outage.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { completeJob, type FailOptions, failJob } from "./VideoCompletion.ts"
import { parentOf, type VideoServices } from "./VideoServices.ts"
import { type AttemptFailure, deadlineFailure, unconfirmedSubmit } from "./VideoSql.ts"
import {
  downloadDelay,
  errorOf,
  internalError,
  type JobAt,
  type Lease,
  type LeasedJob,
  LeaseLost,
  Next,
  rejectedError,
  restoreRoute,
  timeoutError,
  upstreamError,
  type VideoError
} from "./VideoState.ts"
import { cancelRender, downloadClip, pollRender, type Render, reportUncertainSubmit, submit } from "./VideoUpstream.ts"

const maxDownloads = 5
const finish = Next.Finish()

/** Runs the next step of a job that this instance leases. */
const advance = (services: VideoServices, job: LeasedJob): Effect.Effect<Next> => {
  if (job.step === "over") return cancel(services, job)
  if (!job.isAccepted) return fail(services, job, internalError)
  if (job.step === "submitting") return resolveUncertainSubmit(services, job)
  if (job.leftMs <= 0) return fail(services, job, timeoutError, deadlineOptions(job))
  if (job.step === "rendering") return poll(services, job)
  return isSold(services, job) ? submitJob(services, job) : skipModel(job)
}

const cancel = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"over">) {
  const { catalog, rows } = services
  const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
  if (route !== undefined && job.handle !== null) yield* cancelRender(services, { route, handle: job.handle }, job.id)
  yield* Effect.orDie(rows.cancelUpstream(job))
  return finish
})

const fail = (services: VideoServices, job: LeasedJob, error: VideoError, options?: FailOptions) =>
  Effect.as(failJob(services, job, error, options), finish)

const deadlineOptions = ({ lastError, step }: LeasedJob): FailOptions =>
  step === "rendering" ? { isCancelling: true, failure: deadlineFailure(lastError) } : {}

/** Returns whether a route of the model makes clips of the job's length. */
const isSold = ({ catalog }: VideoServices, { model, seconds }: LeasedJob) => {
  const listed = catalog.current.findId(model)
  return listed?.surface === "video" && listed.routes.some((route) => route.seconds.includes(seconds))
}

const skipModel = (job: LeasedJob) => skipJob(job, `the model ${job.model} with a length of ${job.seconds} s`)

const skipJob = Effect.fnUntraced(function* (job: LeasedJob, missing: string) {
  yield* Effect.logWarning(`Video ${job.id} is skipped: the catalog of this instance lacks ${missing}`)
  return Next.SkipFor({ forMs: 60_000 })
})

const submitJob = Effect.fnUntraced(function* (services: VideoServices, job: LeasedJob) {
  const attempts = new AttemptHistory(job.orgId, parentOf(services, job))
  const submission = yield* Effect.either(submit(services, job, attempts))
  if (Either.isRight(submission)) return yield* services.pollDelay(0)
  return yield* fail(services, job, errorOf(submission.left), { attempts: attempts.list })
})

/** Continues a job whose instance died or lost its lease before its submit was confirmed. */
const resolveUncertainSubmit = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"submitting">) {
  const isLate = job.leftMs <= 0
  const mayResubmit = job.mayRetryRoute && !isLate
  if (mayResubmit && !isSold(services, job)) return yield* skipModel(job)
  yield* reportUncertainSubmit(job, job.route?.id)
  const uncertainSubmits = job.uncertainSubmits + 1
  if (mayResubmit) return yield* resubmit(services, job, uncertainSubmits, unconfirmedSubmit)
  if (!(yield* Effect.orDie(services.rows.recordUncertainSubmit(job, uncertainSubmits)))) return finish
  return yield* fail(services, job, isLate ? timeoutError : upstreamError, { failure: unconfirmedSubmit })
})

const resubmit = Effect.fnUntraced(function* (
  services: VideoServices,
  job: JobAt<"submitting" | "rendering">,
  uncertainSubmits: number,
  failure: AttemptFailure
) {
  if (!(yield* Effect.orDie(services.rows.resubmit(job, uncertainSubmits, failure)))) return finish
  return yield* submitJob(services, { ...job, step: "submit", mayRetryRoute: false, uncertainSubmits })
})

const poll = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"rendering">) {
  const { catalog, pollDelay, rows } = services
  const { handle } = job
  const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
  if (route === undefined) {
    const provider = job.route && `the provider ${job.route.provider.name}, or its credential`
    return yield* skipJob(job, provider ?? "its route")
  }
  const pollResult = yield* Effect.either(pollRender(services, { handle, route }))
  if (Either.isRight(pollResult)) return yield* handleProgress(services, job, pollResult.right, { handle, route })
  yield* Effect.logDebug(`Polling video ${job.id} failed: ${pollResult.left.detail}`)
  yield* Effect.orDie(rows.poll(job, false, 0, pollResult.left.detail))
  return yield* pollDelay(job.polls)
})

const handleProgress = Effect.fnUntraced(function* (
  services: VideoServices,
  job: JobAt<"rendering">,
  progress: VideoProgress,
  render: Render
) {
  const { pollDelay, rows } = services
  if (progress.state === "failed") return yield* retryOrFail(services, job, progress.failure)
  const percent = progress.state === "done" ? 100 : progress.percent
  if (!(yield* Effect.orDie(rows.poll(job, progress.state !== "queued", percent)))) return finish
  return yield* progress.state === "done" ? storeClip(services, job, render) : pollDelay(job.polls)
})

const storeClip = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"rendering">, render: Render) {
  const { failpoint, pollDelay, rows } = services
  yield* failpoint.reach("video_storing")
  const tracedDownload = withSpan(parentOf(services, job), "download", downloadClip(services, render, job), {
    kind: "client",
    attributes: { "gateway.route": render.route.id }
  })
  const download = yield* Effect.either(tracedDownload)
  if (Either.isRight(download)) {
    yield* failpoint.reach("video_stored")
    yield* completeJob(services, job, download.right, render.route)
    return finish
  }
  const failure = download.left
  yield* Effect.logWarning(`Failed to store the clip of video ${job.id}: ${failure.detail}`)
  // The clip is still at its provider, so another route would not help.
  if (failure._tag === "MediaStoreFailed") {
    yield* Effect.orDie(rows.recordError(job, `failed to store the clip: ${failure.detail}`))
    return yield* pollDelay(job.polls)
  }
  if (isFinal(failure.class)) return yield* retryOrFail(services, job, failure)
  const failureCount = yield* Effect.orDie(rows.failDownload(job))
  if (failureCount === undefined) return finish
  return failureCount >= maxDownloads ? yield* retryOrFail(services, job, failure) : downloadDelay(failureCount)
})

/** Submits the job to another route if it may still use one, and fails it otherwise. */
const retryOrFail = Effect.fnUntraced(function* (
  services: VideoServices,
  job: JobAt<"rendering">,
  failure: ProviderFailure
) {
  yield* Effect.logInfo(`Video ${job.id} failed at ${job.route?.id ?? "its route"}: ${failure.detail}`)
  if (isFinal(failure.class) || !job.mayRetryRoute) {
    const error = failure.class === "moderation" ? rejectedError : upstreamError
    return yield* fail(services, job, error, { failure })
  }
  const routes = services.catalog.current.findId(job.model)?.routes
  // Before the length is checked: the job must not wait for a route until its deadline if it has used them all.
  if (routes?.every(({ id }) => job.attemptedRoutes.includes(id)))
    return yield* fail(services, job, upstreamError, { failure })
  if (!isSold(services, job)) return yield* skipModel(job)
  return yield* resubmit(services, job, job.uncertainSubmits, failure)
})

const maxJobs = 16
const retryDefectAfterMs = 5_000
const stopTimeout = "10 seconds"

interface Run extends Lease {
  fiber?: Fiber.RuntimeFiber<void>
}

const makeRunner = Effect.fnUntraced(function* (services: VideoServices) {
  return {
    services,
    fibers: yield* FiberSet.make<void>(),
    wakeups: yield* Queue.sliding<void>(1),
    /** Keyed by lease. */
    runs: new Map<string, Run>(),
    /** The leases of due jobs that the runner claimed. Only these count towards `maxJobs`. */
    claimedLeases: new Set<string>(),
    /** Until when each job is skipped, by job id, in nanoseconds of the monotonic clock. */
    skipped: new Map<string, bigint>(),
    isStopping: false
  }
})
/** Runs new jobs and due jobs. */
export type VideoRunner = Effect.Effect.Success<ReturnType<typeof makeRunner>>

/**
 * Starts the runner, which looks for due jobs at least every `findVideosEvery`. A shutdown waits only for running
 * submits, because their outcome would be uncertain if they were interrupted.
 */
export const startRunner = Effect.fnUntraced(function* (services: VideoServices) {
  const runner = yield* makeRunner(services)
  yield* renewLeases(runner).pipe(
    Effect.catchAllCause((cause) => logFailure("Failed to renew leases of videos", cause)),
    Effect.schedule(Schedule.spaced(services.timings.renewVideoLeaseEvery)),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => stop(runner))
  yield* claimDue(runner).pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(logFailure("Failed to claim due videos", cause), Effect.sleep("1 second"))
    ),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )
  return runner
})

const renewLeases = Effect.fnUntraced(function* ({ services, runs }: VideoRunner) {
  if (runs.size > 0) yield* services.rows.renew([...runs.values()])
}, Effect.uninterruptible)

const stop = Effect.fnUntraced(function* (runner: VideoRunner) {
  const { submitting } = runner.services
  runner.isStopping = true
  const runsToInterrupt = [...runner.runs.values()].filter(({ lease }) => !submitting.has(lease))
  for (const { fiber } of runsToInterrupt) if (fiber !== undefined) yield* Fiber.interruptFork(fiber)
  yield* Effect.sync(() => submitting.size === 0).pipe(
    Effect.repeat({ until: (isDone) => isDone, schedule: Schedule.spaced("50 millis") }),
    Effect.interruptible,
    Effect.timeoutOption(stopTimeout)
  )
})

const claimDue = Effect.fnUntraced(function* (runner: VideoRunner) {
  const { claimedLeases, services, wakeups } = runner
  const capacity = maxJobs - claimedLeases.size
  if (capacity <= 0) return yield* Queue.take(wakeups)
  const jobs = yield* claim(runner, capacity)
  if (jobs.length < capacity) yield* sleep(runner, Duration.toMillis(services.timings.findVideosEvery))
})

const claim = Effect.fnUntraced(function* (runner: VideoRunner, capacity: number) {
  const { claimedLeases, services } = runner
  const excludedIds = yield* services.refunds.pendingVideos
  const jobs = yield* services.rows.claim(capacity, { excludedIds, deferredIds: yield* listSkipped(runner) })
  for (const job of jobs) {
    claimedLeases.add(job.lease)
    yield* run(runner, job, advance(services, job))
  }
  return jobs
}, Effect.uninterruptible)

const sleep = Effect.fnUntraced(function* (runner: VideoRunner, maxMs: number) {
  const { services, wakeups } = runner
  const due = yield* Effect.option(services.rows.nextDue(yield* listSkipped(runner)))
  const ms = Option.getOrUndefined(due) ?? maxMs
  yield* Effect.timeoutOption(Queue.take(wakeups), Math.min(Math.max(ms, 20), maxMs))
})

/**
 * Forks the work. The lease is renewed while it runs. If the runner is stopping, it releases the lease and interrupts
 * the caller.
 */
export const run = Effect.fnUntraced(function* (runner: VideoRunner, { id, lease }: Lease, work: Effect.Effect<Next>) {
  const { claimedLeases, fibers, services, wakeups, runs } = runner
  const job: Run = { id, lease }
  if (runner.isStopping) {
    yield* release(services, job, 0)
    return yield* Effect.interrupt
  }
  runs.set(lease, job)
  const endRun = Effect.suspend(() => {
    runs.delete(lease)
    claimedLeases.delete(lease)
    return Queue.offer(wakeups, undefined)
  })
  // The work has deadlines, so it must be interruptible even if the caller is not.
  job.fiber = yield* Effect.onExit(Effect.interruptible(work), (exit) => finishRun(runner, job, exit)).pipe(
    Effect.ensuring(endRun),
    Effect.catchAllCause(() => Effect.void),
    FiberSet.run(fibers)
  )
})

const finishRun = Effect.fnUntraced(function* (runner: VideoRunner, job: Lease, exit: Exit.Exit<Next>) {
  const { services } = runner
  if (Exit.isFailure(exit)) return yield* finishFailedRun(services, job, exit.cause)
  yield* Next.$match(exit.value, {
    Finish: () => Effect.void,
    PollAfter: ({ afterMs }) => release(services, job, afterMs),
    SkipFor: ({ forMs }) => Effect.zipRight(rememberSkipped(runner, job, forMs), release(services, job, 0))
  })
})

const finishFailedRun = Effect.fnUntraced(function* (services: VideoServices, job: Lease, cause: Cause.Cause<never>) {
  if (Cause.isInterrupted(cause)) return yield* release(services, job, 0)
  if (isLeaseLost(cause)) return yield* Effect.logInfo(`Video ${job.id} has finished or is leased by another instance`)
  yield* logFailure(`Processing of video ${job.id} failed unexpectedly`, cause, Effect.logError)
  yield* release(services, job, retryDefectAfterMs)
})

const isLeaseLost = (cause: Cause.Cause<never>) =>
  Option.exists(Cause.dieOption(cause), (defect) => defect instanceof LeaseLost)

const release = ({ rows }: VideoServices, job: Lease, ms: number) =>
  rows.release(job, ms).pipe(Effect.retry(leaseReleaseRetries), Effect.ignoreLogged, Effect.uninterruptible)

const rememberSkipped = ({ skipped }: VideoRunner, { id }: Lease, ms: number) =>
  Effect.map(Clock.currentTimeNanos, (now) => void skipped.set(id, now + BigInt(Math.ceil(ms)) * 1_000_000n))

const listSkipped = ({ skipped }: VideoRunner) =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [id, until] of skipped) if (until <= now) skipped.delete(id)
    return [...skipped.keys()]
  })

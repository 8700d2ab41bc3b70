import { Cause, Clock, Duration, Effect, Either, Exit, Fiber, FiberSet, Option, Queue, Schedule } from "effect"
import { AttemptHistory } from "../routing/AttemptHistory.ts"
import { isFinal, type ProviderFailure, type VideoProgress } from "../routing/Provider.ts"
import { leaseReleaseRetries } from "../runtime/Schedules.ts"
import { logFailure } from "../sql/Outage.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { completeJob, type FailOptions, failJob } from "./Finish.ts"
import { parentOf, type VideoServices } from "./VideoServices.ts"
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
  Next,
  outOfTime,
  restoreRoute,
  upstreamFailed,
  type VideoError
} from "./VideoState.ts"
import { cancelRender, downloadClip, pollRender, type Render, reportUncertainSubmit, submit } from "./VideoUpstream.ts"

const maxDownloads = 5
const finished = Next.Finish()

/** The next step of a job whose lease this instance has. */
const advance = (services: VideoServices, job: LeasedJob): Effect.Effect<Next> => {
  if (job.step === "over") return cancel(services, job)
  if (!job.isAccepted) return fail(services, job, internalError)
  if (job.step === "submitting") return resolveUncertainSubmit(services, job)
  if (job.leftMs <= 0) return fail(services, job, outOfTime, lateEnd(job))
  if (job.step === "rendering") return poll(services, job)
  return isSold(services, job) ? submitJob(services, job) : passOverModel(job)
}

const cancel = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"over">) {
  const { catalog, rows } = services
  const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
  if (route !== undefined && job.handle !== null) yield* cancelRender(services, { route, handle: job.handle }, job.id)
  yield* Effect.orDie(rows.cancelUpstream(job))
  return finished
})

const fail = (services: VideoServices, job: LeasedJob, error: VideoError, options?: FailOptions) =>
  Effect.as(failJob(services, job, error, options), finished)

const lateEnd = ({ lastError, step }: LeasedJob): FailOptions =>
  step === "rendering" ? { cancelling: true, failure: missedDeadline(lastError) } : {}

const isSold = ({ catalog }: VideoServices, { model }: LeasedJob) => catalog.current.findId(model)?.surface === "video"

const passOverModel = (job: LeasedJob) => passOver(job, `the model ${job.model}`)

const passOver = Effect.fnUntraced(function* (job: LeasedJob, lacking: string) {
  yield* Effect.logWarning(`Video ${job.id} is left to other instances: the catalog of this one lacks ${lacking}`)
  return Next.PassOver({ forMs: 60_000 })
})

const submitJob = Effect.fnUntraced(function* (services: VideoServices, job: LeasedJob) {
  const attempts = new AttemptHistory(job.orgId, parentOf(services, job))
  const submitted = yield* Effect.either(submit(services, job, attempts))
  if (Either.isRight(submitted)) return yield* services.pollDelay(0)
  return yield* fail(services, job, errorOf(submitted.left), { attempts: attempts.list })
})

/** The instance that submitted it died, or lost its lease, before it learned whether the submit arrived. */
const resolveUncertainSubmit = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"submitting">) {
  const isLate = job.leftMs <= 0
  const mayResubmit = job.spare && !isLate
  if (mayResubmit && !isSold(services, job)) return yield* passOverModel(job)
  yield* reportUncertainSubmit(job, job.route?.id)
  const doubts = job.doubts + 1
  if (mayResubmit) return yield* resubmit(services, job, doubts, unconfirmedSubmit)
  if (!(yield* Effect.orDie(services.rows.recordUncertainSubmit(job, doubts)))) return finished
  return yield* fail(services, job, isLate ? outOfTime : upstreamFailed, { failure: unconfirmedSubmit })
})

const resubmit = Effect.fnUntraced(function* (
  services: VideoServices,
  job: JobAt<"submitting" | "rendering">,
  doubts: number,
  failure: AttemptFailure
) {
  if (!(yield* Effect.orDie(services.rows.resubmit(job, doubts, failure)))) return finished
  return yield* submitJob(services, { ...job, step: "submit", spare: false, doubts })
})

const poll = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"rendering">) {
  const { catalog, pollDelay, rows } = services
  const { handle } = job
  const route = job.route === null ? undefined : restoreRoute(job.route, catalog.accounts)
  if (route === undefined) {
    const provider = job.route && `the provider ${job.route.provider.name}, or its credential`
    return yield* passOver(job, provider ?? "its route")
  }
  const answer = yield* Effect.either(pollRender(services, { handle, route }))
  if (Either.isRight(answer)) return yield* handleProgress(services, job, answer.right, { handle, route })
  yield* Effect.logDebug(`Asking after video ${job.id} failed: ${answer.left.detail}`)
  yield* Effect.orDie(rows.poll(job, false, 0, answer.left.detail))
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
  if (!(yield* Effect.orDie(rows.poll(job, progress.state !== "queued", percent)))) return finished
  return yield* progress.state === "done" ? storeClip(services, job, render) : pollDelay(job.polls)
})

const storeClip = Effect.fnUntraced(function* (services: VideoServices, job: JobAt<"rendering">, render: Render) {
  const { failpoint, pollDelay, rows } = services
  yield* failpoint.reach("video_storing")
  const download = withSpan(parentOf(services, job), "download", downloadClip(services, render, job), {
    kind: "client",
    attributes: { "gateway.route": render.route.id }
  })
  const stored = yield* Effect.either(download)
  if (Either.isRight(stored)) {
    yield* failpoint.reach("video_stored")
    yield* completeJob(services, job, stored.right, render.route)
    return finished
  }
  const failure = stored.left
  yield* Effect.logWarning(`The clip of video ${job.id} could not be stored: ${failure.detail}`)
  // The clip is still at its provider: another route would do no better.
  if (failure._tag === "MediaStoreFailed") {
    yield* Effect.orDie(rows.recordError(job, `the clip could not be stored: ${failure.detail}`))
    return yield* pollDelay(job.polls)
  }
  if (isFinal(failure.class)) return yield* retryOrFail(services, job, failure)
  const failed = yield* Effect.orDie(rows.failDownload(job))
  if (failed === undefined) return finished
  return failed >= maxDownloads ? yield* retryOrFail(services, job, failure) : downloadDelay(failed)
})

/** Tries one more route while there is time. */
const retryOrFail = Effect.fnUntraced(function* (
  services: VideoServices,
  job: JobAt<"rendering">,
  failure: ProviderFailure
) {
  yield* Effect.logInfo(`Video ${job.id} failed at ${job.route?.id ?? "its route"}: ${failure.detail}`)
  if (isFinal(failure.class) || !job.spare) {
    const error = failure.class === "moderation" ? contentRejected : upstreamFailed
    return yield* fail(services, job, error, { failure })
  }
  if (!isSold(services, job)) return yield* passOverModel(job)
  const routes = services.catalog.current.findId(job.model)?.routes ?? []
  if (routes.every(({ id }) => job.tried.includes(id))) return yield* fail(services, job, upstreamFailed, { failure })
  return yield* resubmit(services, job, job.doubts, failure)
})

const maxAtOnce = 16
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
    /** By lease. */
    working: new Map<string, Run>(),
    /** The leases of those among them that it took on because they were due. */
    claimed: new Set<string>(),
    /** Ids of jobs, and until when, on the monotonic clock in nanoseconds. */
    passedOver: new Map<string, bigint>(),
    isStopping: false
  }
})
/** Works on the jobs that it is given, and on those that are due. */
export type VideoRunner = Effect.Effect.Success<ReturnType<typeof makeRunner>>

/** A stop waits only for running submits, which would be doubtful otherwise; `findVideosEvery` bounds the sleep. */
export const startRunner = Effect.fnUntraced(function* (services: VideoServices) {
  const runner = yield* makeRunner(services)
  yield* renewLeases(runner).pipe(
    Effect.catchAllCause((cause) => logFailure("Leases of videos could not be renewed", cause)),
    Effect.schedule(Schedule.spaced(services.timings.renewVideoLeaseEvery)),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => stop(runner))
  yield* claimDue(runner).pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(logFailure("Jobs could not be taken on", cause), Effect.sleep("1 second"))
    ),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )
  return runner
})

const renewLeases = Effect.fnUntraced(function* ({ services, working }: VideoRunner) {
  if (working.size > 0) yield* services.rows.renew([...working.values()])
}, Effect.uninterruptible)

const stop = Effect.fnUntraced(function* (runner: VideoRunner) {
  const { submitting } = runner.services
  runner.isStopping = true
  const idle = [...runner.working.values()].filter(({ lease }) => !submitting.has(lease))
  for (const { fiber } of idle) if (fiber !== undefined) yield* Fiber.interruptFork(fiber)
  yield* Effect.sync(() => submitting.size === 0).pipe(
    Effect.repeat({ until: (isDone) => isDone, schedule: Schedule.spaced("50 millis") }),
    Effect.interruptible,
    Effect.timeoutOption(stopTimeout)
  )
})

const claimDue = Effect.fnUntraced(function* (runner: VideoRunner) {
  const { claimed, services, wakeups } = runner
  const capacity = maxAtOnce - claimed.size
  if (capacity <= 0) return yield* Queue.take(wakeups)
  const jobs = yield* claim(runner, capacity)
  if (jobs.length < capacity) yield* sleep(runner, Duration.toMillis(services.timings.findVideosEvery))
})

const claim = Effect.fnUntraced(function* (runner: VideoRunner, capacity: number) {
  const { claimed, services } = runner
  const except = yield* services.refunds.pendingVideos
  const jobs = yield* services.rows.claim(capacity, { except, passedOver: yield* listPassedOver(runner) })
  for (const job of jobs) {
    claimed.add(job.lease)
    yield* run(runner, job, advance(services, job))
  }
  return jobs
}, Effect.uninterruptible)

const sleep = Effect.fnUntraced(function* (runner: VideoRunner, longestMs: number) {
  const { services, wakeups } = runner
  const due = yield* Effect.option(services.rows.nextDue(yield* listPassedOver(runner)))
  const ms = Option.getOrUndefined(due) ?? longestMs
  yield* Effect.timeoutOption(Queue.take(wakeups), Math.min(Math.max(ms, 20), longestMs))
})

/** Forks the work, and renews its lease while it lasts. Once the runner stops, it interrupts the caller instead. */
export const run = Effect.fnUntraced(function* (runner: VideoRunner, { id, lease }: Lease, work: Effect.Effect<Next>) {
  const { claimed, fibers, services, wakeups, working } = runner
  const job: Run = { id, lease }
  if (runner.isStopping) {
    yield* release(services, job, 0)
    return yield* Effect.interrupt
  }
  working.set(lease, job)
  const endRun = Effect.suspend(() => {
    working.delete(lease)
    claimed.delete(lease)
    return Queue.offer(wakeups, undefined)
  })
  // The caller may be uninterruptible, but the work has deadlines.
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
    LookAgain: ({ afterMs }) => release(services, job, afterMs),
    PassOver: ({ forMs }) => Effect.zipRight(rememberPassedOver(runner, job, forMs), release(services, job, 0))
  })
})

const finishFailedRun = Effect.fnUntraced(function* (services: VideoServices, job: Lease, cause: Cause.Cause<never>) {
  if (Cause.isInterrupted(cause)) return yield* release(services, job, 0)
  if (isLeaseLost(cause)) return yield* Effect.logInfo(`Video ${job.id} is leased by another instance, or over`)
  yield* logFailure(`Working on video ${job.id} failed unexpectedly`, cause, Effect.logError)
  yield* release(services, job, retryDefectAfterMs)
})

const isLeaseLost = (cause: Cause.Cause<never>) =>
  Option.exists(Cause.dieOption(cause), (defect) => defect instanceof LeaseLost)

const release = ({ rows }: VideoServices, job: Lease, ms: number) =>
  rows.release(job, ms).pipe(Effect.retry(leaseReleaseRetries), Effect.ignoreLogged, Effect.uninterruptible)

const rememberPassedOver = ({ passedOver }: VideoRunner, { id }: Lease, ms: number) =>
  Effect.map(Clock.currentTimeNanos, (now) => void passedOver.set(id, now + BigInt(Math.ceil(ms)) * 1_000_000n))

const listPassedOver = ({ passedOver }: VideoRunner) =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [id, until] of passedOver) if (until <= now) passedOver.delete(id)
    return [...passedOver.keys()]
  })

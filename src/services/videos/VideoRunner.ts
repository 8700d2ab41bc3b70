import { Cause, Clock, Duration, Effect, Exit, Fiber, FiberSet, Option, Queue, Schedule } from "effect"
import { Refunds } from "../ledger/Refunds.ts"
import { retries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import type { Advance } from "./Advance.ts"
import type { VideoSql } from "./VideoSql.ts"
import { type Lease, LeaseLost, Next } from "./VideoState.ts"

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
    rows.release(job, ms).pipe(Effect.retry(retries("100 millis", 4)), Effect.ignoreLogged, Effect.uninterruptible)

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

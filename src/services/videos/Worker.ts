import { Cause, Clock, Context, Duration, Effect, Exit, Fiber, FiberSet, Layer, Option, Queue, Schedule } from "effect"
import { Refunds } from "../ledger/Refunds.ts"
import { logFailure } from "../sql/Outage.ts"
import { VideoAdvance } from "./Advance.ts"
import { LeaseLost } from "./Errors.ts"
import type { Next } from "./PollDelay.ts"
import { VideoSubmit } from "./Submit.ts"
import { type LeasedJob, VideoSql } from "./VideoSql.ts"

/** Jobs of others that one instance works on at a time. */
const mostAtOnce = 16
const renewEvery = "8 seconds"
const restAfterDefect = 5_000
const stopWithin = "10 seconds"

type Leased = Pick<LeasedJob, "id" | "lease">

interface Working extends Leased {
  /** Set once it runs. */
  fiber: Fiber.RuntimeFiber<void> | undefined
}

const isLeaseLost = (cause: Cause.Cause<never>) =>
  Option.exists(Cause.dieOption(cause), (defect) => defect instanceof LeaseLost)

/** @param lookEvery the longest sleep, however far off the next job is: another instance may have made one */
const make = Effect.fnUntraced(function* (lookEvery: Duration.DurationInput) {
  const rows = yield* VideoSql
  const { advance } = yield* VideoAdvance
  const { underway } = yield* VideoSubmit
  const { pendingVideos: disowned } = yield* Refunds
  const longestSleepMs = Duration.toMillis(lookEvery)
  const fibers = yield* FiberSet.make<void>()
  const working = new Map<string, Working>()
  const taken = new Set<string>()
  /** Ids of jobs that this instance cannot go on with, and until when it does not look at them. */
  const left = new Map<string, bigint>()
  let stopping = false
  const news = yield* Queue.sliding<void>(1)
  const wake = Queue.offer(news, undefined)

  const rest = (job: Leased, ms: number) =>
    rows.rest(job, ms).pipe(Effect.retry(briefly), Effect.ignoreLogged, Effect.uninterruptible)

  const passOver = ({ id }: Leased, ms: number) =>
    Effect.map(Clock.currentTimeNanos, (now) => void left.set(id, now + BigInt(Math.ceil(ms)) * 1_000_000n))
  const passedOver = Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [id, until] of left) if (until <= now) left.delete(id)
    return [...left.keys()]
  })

  const put = (job: Leased, exit: Exit.Exit<Next>) => {
    if (Exit.isSuccess(exit)) {
      const next = exit.value
      if (next === "over") return Effect.void
      return "leaveMs" in next ? Effect.zipRight(passOver(job, next.leaveMs), rest(job, 0)) : rest(job, next.restMs)
    }
    if (Exit.isInterrupted(exit)) return rest(job, 0)
    if (isLeaseLost(exit.cause)) return Effect.logInfo(`Video ${job.id} is somebody else's now, or over`)
    return Effect.zipRight(
      logFailure(`Working on video ${job.id} failed unexpectedly`, exit.cause, Effect.logError),
      rest(job, restAfterDefect)
    )
  }

  const adopt = ({ id, lease }: Leased, work: Effect.Effect<Next>) =>
    Effect.suspend(() => {
      const job: Working = { id, lease, fiber: undefined }
      if (stopping) return Effect.zipRight(rest(job, 0), Effect.interrupt)
      working.set(lease, job)
      const forget = Effect.suspend(() => {
        working.delete(lease)
        taken.delete(lease)
        return wake
      })
      // Whoever adopts may be uninterruptible itself; the work has deadlines, which must be able to end it.
      return Effect.onExit(Effect.interruptible(work), (exit) => put(job, exit)).pipe(
        Effect.ensuring(forget),
        Effect.catchAllCause(() => Effect.void),
        FiberSet.run(fibers),
        Effect.map((fiber) => {
          job.fiber = fiber
        })
      )
    })

  const sleep = Effect.flatMap(
    passedOver.pipe(
      Effect.flatMap(rows.nextDue),
      Effect.orElseSucceed(() => undefined)
    ),
    (ms = longestSleepMs) => Queue.take(news).pipe(Effect.timeoutOption(Math.min(Math.max(ms, 20), longestSleepMs)))
  )

  const round = Effect.gen(function* () {
    const room = mostAtOnce - taken.size
    if (room <= 0) return yield* Queue.take(news)
    const jobs = yield* Effect.uninterruptible(
      Effect.flatMap(Effect.all({ except: disowned, passedOver }), (exceptions) => rows.claim(room, exceptions)).pipe(
        Effect.tap((claimed) =>
          Effect.forEach(claimed, (job) => {
            taken.add(job.lease)
            return adopt(job, advance(job))
          })
        )
      )
    )
    if (jobs.length < room) yield* sleep
  })

  const renewal = Effect.suspend(() =>
    working.size === 0 ? Effect.void : Effect.asVoid(rows.renew([...working.values()]))
  )
  yield* renewal.pipe(
    Effect.uninterruptible,
    Effect.catchAllCause((cause) => logFailure("Leases of videos could not be renewed", cause)),
    Effect.schedule(Schedule.spaced(renewEvery)),
    Effect.forkScoped
  )

  const handOver = Effect.suspend(() => {
    stopping = true
    const idle = [...working.values()].filter(({ lease }) => !underway.has(lease))
    return Effect.forEach(idle, ({ fiber }) => (fiber === undefined ? Effect.void : Fiber.interruptFork(fiber)))
  })
  const arrived = Effect.sync(() => underway.size === 0).pipe(
    Effect.repeat({ until: (none) => none, schedule: Schedule.spaced("50 millis") }),
    Effect.interruptible,
    Effect.timeoutOption(stopWithin)
  )
  yield* Effect.addFinalizer(() => Effect.zipRight(handOver, arrived))

  yield* round.pipe(
    Effect.catchAllCause((cause) => Effect.zipRight(logFailure("Jobs could not be taken on", cause), pause)),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )

  return VideoWorker.of({ adopt })
})

const pause = Effect.sleep(Duration.seconds(1))
const briefly = Schedule.exponential("100 millis").pipe(Schedule.intersect(Schedule.recurs(4)))

/**
 * Keeps the leases of the jobs that this instance works on, and takes on those that are due. At a stop it waits for
 * submits that are on their way, which would be doubtful otherwise, and leaves everything else to the others at once.
 */
export class VideoWorker extends Context.Tag("gateway/VideoWorker")<
  VideoWorker,
  {
    /** Works on a job under its lease, in a fiber of this service's. */
    readonly adopt: (job: Leased, work: Effect.Effect<Next>) => Effect.Effect<void>
  }
>() {
  static readonly layer = (lookEvery: Duration.DurationInput) =>
    Layer.scoped(
      VideoWorker,
      Effect.suspend(() => make(lookEvery))
    )
}

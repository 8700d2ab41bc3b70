import { Duration, Effect, Exit, FiberSet, Queue, Schedule } from "effect"
import type { Next } from "./Follow.ts"
import type { Rows, Work } from "./Rows.ts"

/** Jobs of others that one instance works on at a time. */
const mostAtOnce = 16
const renewEvery = "8 seconds"
/** However far off the next job is: another instance may have made one. */
const longestSleepMs = 5_000
const restAfterDefect = 5_000
const stopWithin = "10 seconds"

/**
 * Keeps the leases of the jobs that this instance works on, and takes on those that are due. At a stop it waits for
 * submits that are on their way, which would be doubtful otherwise, and leaves everything else to the others.
 * @param underway leases of jobs with such a submit
 */
export const make = Effect.fnUntraced(function* (
  rows: Rows,
  step: (job: Work) => Effect.Effect<Next>,
  underway: ReadonlySet<string>
) {
  const fibers = yield* FiberSet.make<void>()
  const leases = new Set<string>()
  const taken = new Set<string>()
  const news = yield* Queue.sliding<void>(1)
  const wake = Queue.offer(news, undefined)

  const rest = (job: Pick<Work, "id" | "lease">, ms: number) =>
    rows.rest(job, ms).pipe(Effect.retry(briefly), Effect.ignoreLogged, Effect.uninterruptible)

  /** Works on a job under its lease, in a fiber of this service's. */
  const adopt = (job: Pick<Work, "id" | "lease">, work: Effect.Effect<Next>) =>
    Effect.suspend(() => {
      leases.add(job.lease)
      // Whoever adopts may be uninterruptible itself; the work has deadlines, which must be able to end it.
      return Effect.onExit(Effect.interruptible(work), (exit) => {
        if (Exit.isSuccess(exit)) return exit.value === "over" ? Effect.void : rest(job, exit.value.restMs)
        const stopped = Exit.isInterrupted(exit)
        return Effect.zipRight(
          stopped ? Effect.void : Effect.logError(`Working on video ${job.id} failed unexpectedly`, exit.cause),
          rest(job, stopped ? 0 : restAfterDefect)
        )
      }).pipe(
        Effect.ensuring(
          Effect.suspend(() => {
            leases.delete(job.lease)
            taken.delete(job.lease)
            return wake
          })
        ),
        Effect.catchAllCause(() => Effect.void),
        FiberSet.run(fibers),
        Effect.asVoid
      )
    })

  const sleep = Effect.flatMap(
    Effect.orElseSucceed(rows.nextDue, () => undefined),
    (ms = longestSleepMs) => Queue.take(news).pipe(Effect.timeoutOption(Math.min(Math.max(ms, 20), longestSleepMs)))
  )

  const round = Effect.gen(function* () {
    const room = mostAtOnce - taken.size
    if (room <= 0) return yield* Queue.take(news)
    const jobs = yield* Effect.uninterruptible(
      Effect.tap(rows.claim(room), (claimed) =>
        Effect.forEach(claimed, (job) => {
          taken.add(job.lease)
          return adopt(job, step(job))
        })
      )
    )
    if (jobs.length < room) yield* sleep
  })

  const renewal = Effect.suspend(() => (leases.size === 0 ? Effect.void : Effect.asVoid(rows.renew([...leases]))))
  yield* renewal.pipe(
    Effect.uninterruptible,
    Effect.catchAllCause((cause) => Effect.logWarning("Leases of videos could not be renewed", cause)),
    Effect.schedule(Schedule.spaced(renewEvery)),
    Effect.forkScoped
  )

  const arrived = Effect.sync(() => underway.size === 0).pipe(
    Effect.repeat({ until: (none) => none, schedule: Schedule.spaced("50 millis") }),
    Effect.interruptible,
    Effect.timeoutOption(stopWithin)
  )
  yield* Effect.addFinalizer(() => arrived)

  yield* round.pipe(
    Effect.catchAllCause((cause) => Effect.zipRight(Effect.logWarning("Jobs could not be taken on", cause), pause)),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )

  return { adopt }
})

const pause = Effect.sleep(Duration.seconds(1))
const briefly = Schedule.exponential("100 millis").pipe(Schedule.intersect(Schedule.recurs(4)))

export type Worker = Effect.Effect.Success<ReturnType<typeof make>>

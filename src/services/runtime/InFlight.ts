import { Context, type Duration, Effect, Fiber, Layer } from "effect"
import { Aborted } from "../../domain/Failure.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { always } from "./Fibers.ts"
import { type Listed, Roster } from "./Roster.ts"

/** Room for a settle and its retries; what is longer waits for a client that does not read. */
const abortWithin = "12 seconds"

interface Running extends Listed {
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
}

/** Requests being worked on: only a stop or the loss of the database ends them. */
export class InFlight extends Context.Tag("gateway/InFlight")<
  InFlight,
  {
    /** Counts this fiber as a request's until the work is over. The work must be uninterruptible, but for what an abort may end. */
    readonly track: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** A part of the work that a stop does not wait for: receiving what the client may never send. */
    readonly receive: <A, E, R>(part: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Aborted, R>
    /** Tells all running work to end, and does not wait until it lets itself be ended; its finalizers give holds back. */
    readonly abort: Effect.Effect<void>
    /** From now on `isStopping`: the process serves everything, but no more is to be sent to it. */
    readonly announceStop: Effect.Effect<void>
    readonly isStopping: () => boolean
    /** From now on `isDraining`; waits for what runs, and aborts what is left after the patience. */
    readonly drain: (patience: Duration.DurationInput) => Effect.Effect<void>
    readonly isDraining: () => boolean
  }
>() {
  static readonly layer = Layer.sync(InFlight, () => {
    const running = new Roster<Running>()
    const receiving = new Roster<Running>()
    let stopping = false
    let draining = false
    let onEmpty = () => {}

    const showCount = () => Metrics.inFlight.unsafeUpdate(running.size, [])
    const whenEmpty = Effect.async<void>((resume) => {
      onEmpty = () => resume(Effect.void)
      if (running.size === 0) onEmpty()
    })
    const begin = Effect.sync(() => {
      stopping = true
      draining = true
    })
    const fibersOf = (roster: Roster<Running>) => Array.from(roster, ({ fiber }) => fiber)
    const ended = Effect.suspend(() => Fiber.interruptAll(fibersOf(running)))

    return InFlight.of({
      track: (work) =>
        Effect.withFiberRuntime((fiber) => {
          const one = { fiber, index: -1 }
          running.add(one)
          showCount()
          return always(work, () => {
            running.delete(one)
            showCount()
            if (running.size === 0) onEmpty()
          })
        }),
      receive: (part) =>
        Effect.withFiberRuntime((fiber) => {
          if (draining) return new Aborted()
          const one = { fiber, index: -1 }
          receiving.add(one)
          return always(Effect.interruptible(part), () => receiving.delete(one))
        }),
      abort: Effect.suspend(() => Effect.forEach(fibersOf(running), Fiber.interruptFork, { discard: true })),
      announceStop: Effect.sync(() => {
        stopping = true
      }),
      isStopping: () => stopping,
      isDraining: () => draining,
      drain: (patience) =>
        begin.pipe(
          Effect.zipRight(Effect.suspend(() => Effect.logInfo(`Draining: ${running.size} requests are running`))),
          Effect.zipRight(Effect.suspend(() => Fiber.interruptAll(fibersOf(receiving)))),
          Effect.zipRight(whenEmpty),
          // A stop runs in a finalizer, where patience would have no end.
          Effect.interruptible,
          Effect.timeoutOption(patience),
          Effect.zipRight(Effect.timeoutOption(Effect.interruptible(ended), abortWithin)),
          Effect.asVoid
        )
    })
  })
}

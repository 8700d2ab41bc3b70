import { Context, type Duration, Effect, Fiber, Layer } from "effect"
import { Aborted } from "../../domain/Failure.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { always } from "./Fibers.ts"
import { type Listed, Roster } from "./Roster.ts"

/** Enough for a settle and its retries. */
const abortWithin = "12 seconds"

interface Running extends Listed {
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
}

export class InFlight extends Context.Tag("gateway/InFlight")<
  InFlight,
  {
    /** `work` must be uninterruptible except where an abort may end it. */
    readonly track: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** A part that a stop does not wait for, such as receiving the body. */
    readonly receive: <A, E, R>(part: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Aborted, R>
    /** Interrupts all running work without waiting; finalizers release its holds. */
    readonly abort: Effect.Effect<void>
    /** Serves on, but asks the balancer for no more. */
    readonly announceStop: Effect.Effect<void>
    readonly isStopping: () => boolean
    /** Waits for running work, then aborts the rest. */
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
          // A finalizer is uninterruptible, which would disable the timeout.
          Effect.interruptible,
          Effect.timeoutOption(patience),
          Effect.zipRight(Effect.timeoutOption(Effect.interruptible(ended), abortWithin)),
          Effect.asVoid
        )
    })
  })
}

import { Context, type Duration, Effect, Fiber, Layer, Option } from "effect"
import { Aborted } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Plural.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Timings } from "./Timings.ts"

/** A request while it runs. */
export interface RunningRequest {
  readonly requestId: string
  readonly surface: Surface
  readonly model: string | undefined
  readonly hold: string | undefined
}

interface Running {
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  readonly request?: (() => RunningRequest) | undefined
}

export class InFlight extends Context.Tag("gateway/InFlight")<
  InFlight,
  {
    /**
     * Counts a request, which runs in the calling fiber, until the returned function is called: a stop waits for it, and an
     * abort interrupts the fiber.
     */
    readonly enter: (request: () => RunningRequest) => () => void
    readonly requests: () => ReadonlyArray<RunningRequest>
    /** A part that a stop does not wait for, such as receiving the body. */
    readonly receive: <A, E, R>(part: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Aborted, R>
    /** Interrupts all running work without waiting; finalizers release its holds. */
    readonly abort: Effect.Effect<void>
    /** Goes on serving, but reports itself unready to load balancers. */
    readonly announceStop: Effect.Effect<void>
    readonly isStopping: () => boolean
    readonly drain: (timeout: Duration.DurationInput) => Effect.Effect<void>
    readonly isDraining: () => boolean
  }
>() {
  static readonly layer = Layer.effect(
    InFlight,
    Effect.map(Timings, ({ abortWithin }) => {
      const running = new Set<Running>()
      const receiving = new Set<Running>()
      let stopping = false
      let draining = false
      let onEmpty = () => {}

      const showCount = () => Metrics.inFlight.unsafeUpdate(running.size, [])
      const enter = (roster: Set<Running>, request?: () => RunningRequest) => {
        const one = { fiber: Option.getOrThrow(Fiber.getCurrentFiber()), request }
        roster.add(one)
        showCount()
        return () => {
          roster.delete(one)
          showCount()
          if (running.size === 0) onEmpty()
        }
      }
      // An autoscaler takes a missing metric for a failure.
      showCount()
      const whenEmpty = Effect.async<void>((resume) => {
        onEmpty = () => resume(Effect.void)
        if (running.size === 0) onEmpty()
      })
      const startDraining = Effect.sync(() => {
        stopping = true
        draining = true
      })
      const fibersOf = (roster: ReadonlySet<Running>) => Array.from(roster, ({ fiber }) => fiber)
      const interruptRunning = Effect.suspend(() => Fiber.interruptAll(fibersOf(running)))

      return InFlight.of({
        enter: (request) => enter(running, request),
        requests: () => Array.from(running).flatMap(({ request }) => request?.() ?? []),
        receive: (part) =>
          Effect.acquireUseRelease(
            Effect.suspend(() => (draining ? new Aborted() : Effect.succeed(enter(receiving)))),
            () => Effect.interruptible(part),
            (leave) => Effect.sync(leave)
          ),
        abort: Effect.suspend(() => Effect.forEach(fibersOf(running), Fiber.interruptFork, { discard: true })),
        announceStop: Effect.sync(() => {
          stopping = true
        }),
        isStopping: () => stopping,
        isDraining: () => draining,
        drain: (timeout) =>
          startDraining.pipe(
            Effect.zipRight(
              Effect.suspend(() =>
                Effect.logInfo(`Draining: ${pluralize(running.size, "request is", "requests are")} running`)
              )
            ),
            Effect.zipRight(Effect.suspend(() => Fiber.interruptAll(fibersOf(receiving)))),
            Effect.zipRight(whenEmpty),
            // A finalizer is uninterruptible, which would disable the timeout.
            Effect.interruptible,
            Effect.timeoutOption(timeout),
            Effect.zipRight(Effect.timeoutOption(Effect.interruptible(interruptRunning), abortWithin)),
            Effect.asVoid
          )
      })
    })
  )
}

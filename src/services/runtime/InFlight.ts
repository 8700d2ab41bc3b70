import { Context, type Duration, Effect, Fiber, Layer, Option } from "effect"
import { Aborted, type GatewayBusy } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Wording.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Timings } from "./Timings.ts"

/** A running request. */
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
     * Registers a request of the calling fiber until the returned function is called. A stop waits for it, and an abort
     * interrupts the fiber.
     */
    readonly enter: (request: () => RunningRequest) => () => void
    readonly requests: () => ReadonlyArray<RunningRequest>
    /** Runs a part of a request that a stop interrupts instead of waiting for it, such as receiving the body. */
    readonly receive: <A, E, R>(part: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Aborted, R>
    /** Interrupts all running work without waiting; finalizers release its holds. */
    readonly abort: Effect.Effect<void>
    /** Reports the instance as unready to load balancers; it continues to serve. */
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
      let isStopping = false
      let isDraining = false
      /** Open while no request runs. */
      const idleLatch = Effect.unsafeMakeLatch(true)

      const updateCount = () => {
        if (running.size === 0) idleLatch.unsafeOpen()
        else idleLatch.unsafeClose()
        Metrics.inFlight.unsafeUpdate(running.size, [])
      }
      const enter = (group: Set<Running>, request?: () => RunningRequest) => {
        const entry = { fiber: Option.getOrThrow(Fiber.getCurrentFiber()), request }
        group.add(entry)
        updateCount()
        return () => {
          group.delete(entry)
          updateCount()
        }
      }
      // The metric must exist before the first request, because autoscalers treat a missing one as a failure.
      updateCount()
      const startDraining = Effect.sync(() => {
        isStopping = true
        isDraining = true
      })
      const fibersOf = (group: ReadonlySet<Running>) => Array.from(group, ({ fiber }) => fiber)
      const interruptRunning = Effect.suspend(() => Fiber.interruptAll(fibersOf(running)))

      return InFlight.of({
        enter: (request) => enter(running, request),
        requests: () => Array.from(running).flatMap(({ request }) => request?.() ?? []),
        receive: (part) =>
          Effect.acquireUseRelease(
            Effect.suspend(() => (isDraining ? new Aborted() : Effect.succeed(enter(receiving)))),
            () => Effect.interruptible(part),
            (leave) => Effect.sync(leave)
          ),
        abort: Effect.suspend(() => Effect.forEach(fibersOf(running), Fiber.interruptFork, { discard: true })),
        announceStop: Effect.sync(() => {
          isStopping = true
        }),
        isStopping: () => isStopping,
        isDraining: () => isDraining,
        drain: (timeout) =>
          startDraining.pipe(
            Effect.zipRight(
              Effect.suspend(() =>
                Effect.logInfo(`Draining: ${pluralize(running.size, "request is", "requests are")} running`)
              )
            ),
            Effect.zipRight(Effect.suspend(() => Fiber.interruptAll(fibersOf(receiving)))),
            Effect.zipRight(idleLatch.await),
            // A stop runs in a finalizer, which is uninterruptible, and that would disable the timeout.
            Effect.interruptible,
            Effect.timeoutOption(timeout),
            Effect.zipRight(Effect.timeoutOption(Effect.interruptible(interruptRunning), abortWithin)),
            Effect.asVoid
          )
      })
    })
  )
}

/** Waits until so many bytes are free in addition to the request's body, and reserves them until the request ends. */
export type ReserveMemory = (bytes: number) => Effect.Effect<void, GatewayBusy>

export const unlimitedMemory: ReserveMemory = () => Effect.void

import { Context, type Duration, Effect, Exit, Fiber, FiberSet, Layer } from "effect"
import { Aborted } from "../domain/Failure.ts"
import * as Metrics from "./Metrics.ts"

/** Room for a settle and its retries; what is longer waits for a client that does not read. */
const abortWithin = "12 seconds"

/**
 * Requests being worked on. Each runs in a fiber of its own, so that a client's departure does not end the work
 * that its money is tied to; only a stop or the loss of the database does.
 */
export class InFlight extends Context.Tag("gateway/InFlight")<
  InFlight,
  {
    /**
     * Runs the work to its end even if the caller is interrupted; `onDeparture` tells the work of it. An abort ends
     * it only inside `Effect.interruptible`: whoever was charged is also answered.
     */
    readonly run: <A, E, R>(
      work: Effect.Effect<A, E, R>,
      onDeparture: Effect.Effect<void>
    ) => Effect.Effect<A, E | Aborted, R>
    /** A part of the work that a stop does not wait for: receiving what the client may never send. */
    readonly receive: <A, E, R>(part: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Aborted, R>
    /** Tells all running work to end, and does not wait until it lets itself be ended; its finalizers give holds back. */
    readonly abort: Effect.Effect<void>
    /** From now on `isStopping`: the process serves everything, but no more is to be sent to it. */
    readonly announceStop: Effect.Effect<void>
    readonly isStopping: () => boolean
    /** From now on `isDraining`; waits for what runs, and aborts what is left after the patience. */
    readonly drain: (patience: Duration.DurationInput) => Effect.Effect<void>
    /** Whether new requests are to be refused. */
    readonly isDraining: () => boolean
  }
>() {
  static readonly layer = Layer.scoped(
    InFlight,
    Effect.gen(function* () {
      const running = yield* FiberSet.make()
      const receiving = new Set<Fiber.Fiber<unknown, unknown>>()
      let stopping = false
      let draining = false
      let count = 0
      const add = (change: 1 | -1) => {
        count += change
        Metrics.inFlight.unsafeUpdate(count, [])
      }
      const begin = Effect.sync(() => {
        stopping = true
        draining = true
      })

      const whileReceiving = <A, E, R>(part: Effect.Effect<A, E, R>) =>
        Effect.withFiberRuntime<A, E, R>((fiber) => {
          receiving.add(fiber)
          return Effect.ensuring(
            part,
            Effect.sync(() => receiving.delete(fiber))
          )
        })
      const ended = Effect.suspend(() => Fiber.interruptAll([...running]))

      return InFlight.of({
        abort: Effect.suspend(() => Effect.forEach([...running], Fiber.interruptFork, { discard: true })),
        announceStop: Effect.sync(() => {
          stopping = true
        }),
        isStopping: () => stopping,
        isDraining: () => draining,
        drain: (patience) =>
          begin.pipe(
            Effect.zipRight(Effect.suspend(() => Effect.logInfo(`Draining: ${count} requests are running`))),
            Effect.zipRight(Effect.suspend(() => Fiber.interruptAll([...receiving]))),
            Effect.zipRight(FiberSet.awaitEmpty(running)),
            // A stop runs in a finalizer, where patience would have no end.
            Effect.interruptible,
            Effect.timeoutOption(patience),
            Effect.zipRight(Effect.timeoutOption(Effect.interruptible(ended), abortWithin)),
            Effect.asVoid
          ),
        receive: (part) =>
          Effect.zipRight(
            Effect.suspend(() => (draining ? new Aborted() : Effect.void)),
            whileReceiving(Effect.interruptible(part))
          ),
        run: (work, onDeparture) =>
          Effect.uninterruptibleMask((restore) =>
            Effect.gen(function* () {
              const fiber = yield* FiberSet.run(running, work)
              add(1)
              fiber.addObserver(() => add(-1))
              const exit = yield* Effect.onInterrupt(restore(Fiber.await(fiber)), () => onDeparture)
              if (Exit.isFailure(exit) && Exit.isInterrupted(exit)) return yield* new Aborted()
              return yield* exit
            })
          )
      })
    })
  )
}

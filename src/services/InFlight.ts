import { Context, type Duration, Effect, Exit, Fiber, FiberSet, Layer, Metric, Ref } from "effect"
import { Aborted } from "../domain/Failure.ts"
import * as Metrics from "./Metrics.ts"

/**
 * Requests being worked on. Each runs in a fiber of its own, so that a client's departure does not end the work
 * that its money is tied to; only a stop or the loss of the database does.
 */
export class InFlight extends Context.Tag("gateway/InFlight")<
  InFlight,
  {
    /** Runs the work to its end even if the caller is interrupted; `onDeparture` tells the work of it. */
    readonly run: <A, E, R>(
      work: Effect.Effect<A, E, R>,
      onDeparture: Effect.Effect<void>
    ) => Effect.Effect<A, E | Aborted, R>
    /** Ends all running work at once; its finalizers give holds back. */
    readonly abort: Effect.Effect<void>
    /** Admits nothing more, waits for what runs, and aborts what is left after the patience. */
    readonly drain: (patience: Duration.DurationInput) => Effect.Effect<void>
    readonly draining: Effect.Effect<boolean>
  }
>() {
  static readonly layer = Layer.scoped(
    InFlight,
    Effect.gen(function* () {
      const running = yield* FiberSet.make()
      const draining = yield* Ref.make(false)
      const gauge = Effect.flatMap(FiberSet.size(running), (size) => Metric.set(Metrics.inFlight, size))

      const abort = Effect.suspend(() => Fiber.interruptAll([...running]))

      return InFlight.of({
        abort: Effect.asVoid(abort),
        draining: Ref.get(draining),
        drain: (patience) =>
          Ref.set(draining, true).pipe(
            Effect.zipRight(FiberSet.awaitEmpty(running)),
            // A stop runs in a finalizer, where patience would have no end.
            Effect.interruptible,
            Effect.timeoutOption(patience),
            Effect.zipRight(abort),
            Effect.asVoid
          ),
        run: (work, onDeparture) =>
          Effect.gen(function* () {
            if (yield* Ref.get(draining)) return yield* new Aborted()
            const fiber = yield* FiberSet.run(running, work)
            yield* gauge
            const exit = yield* Effect.onInterrupt(Fiber.await(fiber), () => onDeparture)
            yield* gauge
            if (Exit.isFailure(exit) && Exit.isInterrupted(exit)) return yield* new Aborted()
            return yield* exit
          })
      })
    })
  )
}

import { Deferred, Duration, Effect, Fiber, type Schedule, type Scope } from "effect"
import { sleepUnlessStalled } from "../runtime/EventLoop.ts"
import { NoAnswer } from "./Outage.ts"

export const stepTimeout = Duration.seconds(4)

/** `Effect.retry` without the cost of a schedule until something fails. */
export const retryRarely = <A, E, R, Out>(
  effect: Effect.Effect<A, E, R>,
  options: { readonly schedule: Schedule.Schedule<Out, E>; readonly while: (error: E) => boolean }
): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) => {
    if (!options.while(error)) return Effect.fail(error)
    let isFirst = true
    const again = Effect.suspend(() => {
      if (!isFirst) return effect
      isFirst = false
      return Effect.fail(error)
    })
    return Effect.retry(again, options)
  })

/** Waits no longer than that, while the statement goes on in the scope: none is ever interrupted. */
export const withTimeLimit =
  (scope: Scope.Scope, duration: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | NoAnswer, R> =>
    Effect.gen(function* () {
      // Not a race: its fibers are children, and an interrupted parent interrupts them even where it cannot be itself.
      const done = yield* Deferred.make<A, E | NoAnswer>()
      yield* Effect.forkIn(Effect.intoDeferred(effect, done), scope)
      const clock = yield* Effect.zipRight(sleepUnlessStalled(duration), Deferred.fail(done, new NoAnswer())).pipe(
        Effect.interruptible,
        Effect.forkIn(scope)
      )
      return yield* Effect.ensuring(Deferred.await(done), Fiber.interruptFork(clock))
    }).pipe(Effect.uninterruptible)

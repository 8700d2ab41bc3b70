import { Data, Deferred, Duration, Effect, Fiber, type Scope } from "effect"

/** The database did not answer in time; what was asked of it may still happen. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{}> {}

/** The longest that a request waits for the database to take one step of it. */
export const patience = Duration.seconds(10)

/**
 * Waits for an effect, uninterrupted, and for no longer than that. The effect itself goes on in the scope: statements
 * are never interrupted.
 */
export const within = (scope: Scope.Scope, duration: Duration.DurationInput) =>
  Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
    const done = yield* Deferred.make<A, E | NoAnswer>()
    yield* effect.pipe(Effect.intoDeferred(done), Effect.forkIn(scope))
    const clock = yield* Deferred.fail(done, new NoAnswer()).pipe(
      Effect.delay(duration),
      Effect.interruptible,
      Effect.forkIn(scope)
    )
    return yield* Effect.ensuring(Deferred.await(done), Fiber.interruptFork(clock))
  }, Effect.uninterruptible)

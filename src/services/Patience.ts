import { Data, Deferred, Duration, Effect, Fiber, Schedule, type Scope } from "effect"

/** The database did not answer in time; what was asked of it may still happen. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{}> {}

/** The longest that a request waits for the database to take one step of it. */
export const patience = Duration.seconds(10)

/** For statements that a request waits for: four tries at most. */
export const brief = Schedule.exponential("50 millis").pipe(Schedule.intersect(Schedule.recurs(3)))

/** For statements that nobody waits for and that must come through: every 5 s in the end, for as long as we live. */
export const untilDone = Schedule.exponential("200 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

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

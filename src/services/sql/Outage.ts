import { SqlError } from "@effect/sql"
import {
  Cause,
  Chunk,
  Data,
  Deferred,
  Duration,
  Effect,
  Fiber,
  Option,
  Predicate,
  type Schedule,
  type Scope
} from "effect"
import { sleepUnlessStalled } from "../runtime/EventLoop.ts"

/** The statement timed out. It may have taken effect, or still do so. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{}> {}

/** The statement was not sent and will not be. */
export class NotSent extends Data.TaggedError("NotSent")<{}> {}

/** The error of every statement while the database is known to be unreachable. */
export class DatabaseLost extends Error {
  override readonly name = "DatabaseLost"
}

export class HeartbeatLost extends Data.TaggedError("HeartbeatLost")<{}> {}

/** Connections (08), resources (53), operators (57), system (58), deadlocks (40), lock and idle timeouts, read-only. */
const transientStates = /^(?:08|40|53|57|58)...$|^(?:55P03|25P03|25006)$/

const sqlState = ({ cause }: SqlError.SqlError): string | undefined =>
  Predicate.hasProperty(cause, "severity") && Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code)
    ? cause.code
    : undefined

/** A lock timeout: the statement changed nothing. */
export const isLockTimeout = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && sqlState(error) === "55P03"

/** A deadlock: the statement was rolled back. */
export const isDeadlock = (error: unknown): boolean => error instanceof SqlError.SqlError && sqlState(error) === "40P01"

export const isStatementTimeout = (error: SqlError.SqlError): boolean => sqlState(error) === "57014"

export const isTimeout = (error: unknown): error is NoAnswer | NotSent =>
  error instanceof NoAnswer || error instanceof NotSent

export const isOutage = (error: unknown): boolean =>
  isTimeout(error) ||
  error instanceof HeartbeatLost ||
  (error instanceof SqlError.SqlError && transientStates.test(sqlState(error) ?? "08000"))

/** Whether the server rejects the statement's values, which makes retries useless. */
export const isRefusal = (error: SqlError.SqlError): boolean => /^2[23]...$/.test(sqlState(error) ?? "")

export const isAnnounced = (error: unknown): boolean =>
  error instanceof HeartbeatLost || (error instanceof SqlError.SqlError && error.cause instanceof DatabaseLost)

export const outageIn = (cause: Cause.Cause<unknown>): Option.Option<{ readonly isAnnounced: boolean }> => {
  const errors = [...Chunk.appendAll(Cause.failures(cause), Cause.defects(cause))]
  return errors.length > 0 && errors.every(isOutage)
    ? Option.some({ isAnnounced: errors.every(isAnnounced) })
    : Option.none()
}

/** Logs the failure; only at debug level if it belongs to an outage that has been logged already. */
export const logFailure = (
  message: string,
  cause: Cause.Cause<unknown>,
  log: typeof Effect.logWarning = Effect.logWarning
): Effect.Effect<void> =>
  Option.exists(outageIn(cause), (outage) => outage.isAnnounced) ? Effect.logDebug(message, cause) : log(message, cause)

export const stepTimeout = Duration.seconds(4)

/** As `Effect.retry`, but creates the schedule only after the first failure, which is cheaper. */
export const retryLazily = <A, E, R, Out>(
  effect: Effect.Effect<A, E, R>,
  options: { readonly schedule: Schedule.Schedule<Out, E>; readonly while: (error: E) => boolean }
): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) => {
    if (!options.while(error)) return Effect.fail(error)
    let isFirst = true
    const retried = Effect.suspend(() => {
      if (!isFirst) return effect
      isFirst = false
      return Effect.fail(error)
    })
    return Effect.retry(retried, options)
  })

/** Fails after the duration. The statement continues in the scope, because statements are never interrupted. */
export const withTimeLimit =
  (scope: Scope.Scope, duration: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | NoAnswer, R> =>
    Effect.gen(function* () {
      // A race would fork children, which an interrupted parent interrupts even inside an uninterruptible region.
      const done = yield* Deferred.make<A, E | NoAnswer>()
      yield* Effect.forkIn(Effect.intoDeferred(effect, done), scope)
      const timer = yield* Effect.zipRight(sleepUnlessStalled(duration), Deferred.fail(done, new NoAnswer())).pipe(
        Effect.interruptible,
        Effect.forkIn(scope)
      )
      return yield* Effect.ensuring(Deferred.await(done), Fiber.interruptFork(timer))
    }).pipe(Effect.uninterruptible)

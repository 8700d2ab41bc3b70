import { SqlError } from "@effect/sql"
import { Cause, Chunk, Data, Effect, Option, Predicate } from "effect"

/** The database did not answer in time; what was asked of it may still happen. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{}> {}

/** What was to be asked of the database was not asked in time, and will not be. */
export class NotAsked extends Data.TaggedError("NotAsked")<{}> {}

/** The database is known to be out of reach: every statement fails with this at once until it is back. */
export class DatabaseLost extends Error {
  override readonly name = "DatabaseLost"
}

/** This instance has lost its heartbeat, and starts nothing until it has it again. */
export class HeartbeatLost extends Data.TaggedError("HeartbeatLost")<{}> {}

/**
 * The server's own failures that pass: connections (08), resources (53), operators (57), the system (58), deadlocks and
 * conflicts (40), timeouts of locks and of idle transactions, and a server that takes no writes.
 */
const passing = /^(?:08|40|53|57|58)...$|^(?:55P03|25P03|25006)$/

/** The server's code for a failure; undefined where the driver failed. */
const sqlState = ({ cause }: SqlError.SqlError): string | undefined =>
  Predicate.hasProperty(cause, "severity") && Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code)
    ? cause.code
    : undefined

/** Whether a statement was given up while it waited for a lock, and so changed nothing. */
export const isLockTimeout = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && sqlState(error) === "55P03"

/** Whether a failure is that the time was up. */
export const isTimeUp = (error: unknown): error is NoAnswer | NotAsked =>
  error instanceof NoAnswer || error instanceof NotAsked

/** Whether the database is at fault and not what was asked of it, so that the same may succeed later. */
export const isOutage = (error: unknown): boolean =>
  isTimeUp(error) ||
  error instanceof HeartbeatLost ||
  (error instanceof SqlError.SqlError && passing.test(sqlState(error) ?? "08000"))

/** Whether the server cannot take a value or its rules are broken by it: that fails however often. */
export const isRefusal = (error: SqlError.SqlError): boolean => /^2[23]...$/.test(sqlState(error) ?? "")

/** Whether the outage was logged when it began: to try again is of no use before it ends. */
export const isAnnounced = (error: unknown): boolean =>
  error instanceof HeartbeatLost || (error instanceof SqlError.SqlError && error.cause instanceof DatabaseLost)

/** The outage that a cause holds, if one is all that went wrong. */
export const outageIn = (cause: Cause.Cause<unknown>): Option.Option<{ readonly isAnnounced: boolean }> => {
  const errors = [...Chunk.appendAll(Cause.failures(cause), Cause.defects(cause))]
  return errors.length > 0 && errors.every(isOutage)
    ? Option.some({ isAnnounced: errors.every(isAnnounced) })
    : Option.none()
}

/** Logs that something failed, except where an outage that has been announced is the reason. */
export const logFailure = (
  message: string,
  cause: Cause.Cause<unknown>,
  log: typeof Effect.logWarning = Effect.logWarning
): Effect.Effect<void> =>
  Option.exists(outageIn(cause), (outage) => outage.isAnnounced) ? Effect.logDebug(message, cause) : log(message, cause)

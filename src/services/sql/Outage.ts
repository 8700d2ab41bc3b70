import { SqlError } from "@effect/sql"
import { Cause, Chunk, Data, Effect, Option, Predicate } from "effect"

/** The statement may still take effect. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{}> {}

/** The statement was not sent and will not be. */
export class NotAsked extends Data.TaggedError("NotAsked")<{}> {}

/** Every statement fails with this at once until the database is back. */
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

export const isTimeUp = (error: unknown): error is NoAnswer | NotAsked =>
  error instanceof NoAnswer || error instanceof NotAsked

export const isOutage = (error: unknown): boolean =>
  isTimeUp(error) ||
  error instanceof HeartbeatLost ||
  (error instanceof SqlError.SqlError && transientStates.test(sqlState(error) ?? "08000"))

/** The same statement fails however often: the server refuses its values. */
export const isRefusal = (error: SqlError.SqlError): boolean => /^2[23]...$/.test(sqlState(error) ?? "")

export const isAnnounced = (error: unknown): boolean =>
  error instanceof HeartbeatLost || (error instanceof SqlError.SqlError && error.cause instanceof DatabaseLost)

export const outageIn = (cause: Cause.Cause<unknown>): Option.Option<{ readonly isAnnounced: boolean }> => {
  const errors = [...Chunk.appendAll(Cause.failures(cause), Cause.defects(cause))]
  return errors.length > 0 && errors.every(isOutage)
    ? Option.some({ isAnnounced: errors.every(isAnnounced) })
    : Option.none()
}

/** Leaves out failures of an announced outage. */
export const logFailure = (
  message: string,
  cause: Cause.Cause<unknown>,
  log: typeof Effect.logWarning = Effect.logWarning
): Effect.Effect<void> =>
  Option.exists(outageIn(cause), (outage) => outage.isAnnounced) ? Effect.logDebug(message, cause) : log(message, cause)

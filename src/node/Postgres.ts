import { SqlError } from "@effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg/PgClient"
import { Effect, Option } from "effect"
import type { Client } from "pg"

/**
 * Fails what connects for as long as `failure` returns an error: neither a pool nor a client of pg can be told to
 * refuse new connections, and another attempt would take until its timeout. A proxy keeps the overloads. Needed by pg
 * 8.23.
 */
export const failConnecting = <F extends (callback: never) => void>(connect: F, failure: () => Error | undefined): F =>
  new Proxy(connect, {
    apply: (target, self, args) => {
      const error = failure()
      if (error === undefined) return Reflect.apply(target, self, args)
      const [callback]: ReadonlyArray<unknown> = args
      return typeof callback === "function" ? process.nextTick(callback, error) : Promise.reject(error)
    }
  })

/**
 * Wraps a `connect` function with a callback: `judge` returns the error to report, or undefined to connect again. A pool of
 * pg fails a caller whose new connection is refused, even if an open one could serve it. Needed by pg-pool 3.14.
 */
export const judgeConnecting = <F extends (callback: never) => void>(
  connect: F,
  judge: (error: Error) => Error | undefined
): F =>
  new Proxy(connect, {
    apply: (target, self, args) => {
      const [callback]: ReadonlyArray<unknown> = args
      if (typeof callback !== "function") return Reflect.apply(target, self, args)
      const connectOnce = (): unknown => {
        try {
          return Reflect.apply(target, self, [finish])
        } catch (error) {
          // Creating a client fails while a certificate file is being replaced.
          return process.nextTick(finish, error instanceof Error ? error : new Error(String(error)))
        }
      }
      const finish = (error: Error | null | undefined, ...made: ReadonlyArray<unknown>) => {
        const failure = error instanceof Error ? judge(error) : undefined
        return error instanceof Error && failure === undefined ? connectOnce() : callback(failure, ...made)
      }
      return connectOnce()
    }
  })

/** Whether a pool of pg gave up waiting for a connection in use. Needed by pg-pool 3.14. */
export const isWaitTimeout = ({ message }: Error): boolean => message === "timeout exceeded when trying to connect"

/**
 * Hides the process id of a client from @effect/sql-pg, whose interruption of a statement would cancel whatever that
 * backend runs by then, of another request too. Needed by @effect/sql-pg 0.53 and pg 8.23.
 */
export const hideProcessId = (client: Client): void => {
  Object.defineProperty(client, "processID", { get: () => undefined, set: () => {} })
}

/**
 * Makes a transaction fail whose COMMIT or ROLLBACK fails, so that its caller can try again: @effect/sql makes a
 * defect of it. Needed by @effect/sql 0.52.
 */
export const failLostTransactions = (client: PgClient) => {
  const inTransaction = client.withTransaction
  return Object.assign(client, {
    withTransaction: <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
      Effect.catchSomeDefect(inTransaction(self), (defect) =>
        defect instanceof SqlError ? Option.some(Effect.fail(defect)) : Option.none()
      )
  })
}

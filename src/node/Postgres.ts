import { SqlError } from "@effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg/PgClient"
import { Effect, Option } from "effect"
import type { Client } from "pg"

/**
 * Makes `connect` fail immediately while `failure` returns an error, because otherwise an attempt lasts until its
 * timeout. Uses a proxy, because a wrapper function would lose the overloads of `connect`. Needed by pg 8.23, which
 * cannot refuse new connections itself.
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
 * Wraps a `connect` function. After a failure, `judge` returns the error to report, or undefined to try again. Without it, a
 * pool fails a caller whose new connection is refused, even if an open one could be used. Needed by pg-pool 3.14.
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
          // `connect` throws, for example, while a certificate file is being replaced.
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

/** Returns whether a pool gave up waiting for a connection. Compares the message, because pg-pool 3.14 has no error code. */
export const isWaitTimeout = ({ message }: Error): boolean => message === "timeout exceeded when trying to connect"

/**
 * Hides a client's process id from @effect/sql-pg, which uses it to cancel interrupted statements. A late cancellation would hit
 * another request's statement on the same connection. Needed by @effect/sql-pg 0.53 and pg 8.23.
 */
export const hideProcessId = (client: Client): void => {
  Object.defineProperty(client, "processID", { get: () => undefined, set: () => {} })
}

/**
 * Makes a failed COMMIT or ROLLBACK a failure, which the caller can retry. In @effect/sql 0.52 it is a defect.
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

import { SqlError } from "@effect/sql/SqlError"
import { Duration, Effect } from "effect"
import * as Pg from "pg"
import { ImpatientClient } from "./ImpatientClient.ts"
import { PreparingClient } from "./PreparingClient.ts"

/** Where the server is and who we are there, in the driver's terms. */
export type Server = Pick<Pg.ClientConfig, "connectionString" | "host" | "port" | "user" | "database" | "ssl">

export interface Limits {
  readonly maxConnections: number
  readonly queryTimeout: Duration.DurationInput
}

const common = {
  application_name: "generation-gateway",
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
} as const

const firstOf = (error: unknown): unknown => (error instanceof AggregateError ? firstOf(error.errors[0]) : error)

/** What the driver says went wrong, in one line. */
export const reason = (error: unknown): string => {
  const first = firstOf(error)
  return first instanceof Error && first.message !== "" ? first.message : String(first)
}

/** A server that never answers must not keep us from ending. */
const ending = (end: () => Promise<void>, abandon: () => void) =>
  Effect.promise(end).pipe(
    Effect.interruptible,
    Effect.timeout("1 second"),
    Effect.catchAllCause(() => Effect.sync(abandon))
  )

/**
 * The pool of a process. The server gives up on a statement shortly before we do, so that what we report as failed
 * is not carried out later, and on a transaction whose process stands still, so that its locks do not outlive it.
 */
export const pool = (server: Server, limits: Limits) =>
  Effect.gen(function* () {
    const limit = Math.min(Duration.toMillis(limits.queryTimeout), 2 ** 31 - 1)
    const open = new Set<Pg.Client>()
    const acquired = yield* Effect.acquireRelease(
      Effect.sync(() =>
        new Pg.Pool({
          ...server,
          ...common,
          max: limits.maxConnections,
          idleTimeoutMillis: 30_000,
          Client: class extends PreparingClient {
            constructor(config?: Pg.ClientConfig) {
              super(limit, config)
            }
          },
          onConnect: (client) =>
            client.query(
              `SET statement_timeout = ${Math.ceil(limit * 0.9)}; SET idle_in_transaction_session_timeout = ${limit}`
            )
        })
          .on("error", () => {})
          .on("connect", (client: Pg.Client) => open.add(client))
          .on("release", (_, client) => {
            if (client instanceof ImpatientClient && client.isMidQuery) client.end(() => {})
          })
          .on("remove", (client: Pg.Client) => open.delete(client))
      ),
      (made) =>
        ending(
          () => made.end(),
          () => open.forEach((client) => client.connection.stream.destroy())
        )
    )
    yield* Effect.tryPromise({
      try: () => acquired.query("SELECT 1"),
      catch: (cause) => new SqlError({ cause, message: reason(cause) })
    })
    return acquired
  })

/** One connection outside the pool, without a limit on how long a query takes. */
export const single = (server: Server) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => new Pg.Client({ ...server, ...common }).on("error", () => {}).connect(),
      catch: (cause) => new SqlError({ cause, message: reason(cause) })
    }),
    (client) =>
      ending(
        () => client.end(),
        () => client.connection.stream.destroy()
      )
  )

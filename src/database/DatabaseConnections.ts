import { SqlError } from "@effect/sql/SqlError"
import { Duration, Effect, Schema } from "effect"
import * as Pg from "pg"
import * as Metrics from "../services/metrics/Metrics.ts"
import { applySettings, type DatabaseServer, openSession, type SessionSettings } from "./DatabaseServer.ts"
import { watch } from "./DatabaseWatch.ts"
import { GuardedPool } from "./GuardedPool.ts"

export interface Limits {
  readonly maxConnections: number
  readonly queryTimeout: Duration.DurationInput
  /**
   * Whether to watch the server. While it is unreachable or read-only, statements then fail immediately. While it refuses new
   * connections, open ones are used.
   */
  readonly isWatched: boolean
}

const common = {
  application_name: "generation-gateway",
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
} as const

const findFirstError = (error: unknown): unknown =>
  error instanceof AggregateError ? findFirstError(error.errors[0]) : error

export const reason = (error: unknown): string => {
  const first = findFirstError(error)
  return first instanceof Error && first.message !== "" ? first.message : String(first)
}

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new SqlError({ cause, message: reason(cause) }) })

export const query = (client: Pg.Client, text: string, values?: Array<unknown>) =>
  attempt(() => client.query(text, values))

/** For a statement that returns one row. */
export const selectOne = <A, I>(client: Pg.Client, row: Schema.Schema<A, I>, text: string) =>
  Effect.flatMap(query(client, text), ({ rows: [first] }) => Effect.orDie(Schema.decodeUnknown(row)(first)))

export const configure = (client: Pg.Client, settings: SessionSettings) =>
  attempt(() => applySettings(client, settings))

/** Gives up after a time limit, because a server that does not respond must not block the shutdown. */
const closeOrAbandon = (end: () => Promise<void>, abandon: () => void) =>
  Effect.promise(end).pipe(
    Effect.interruptible,
    Effect.timeout("1 second"),
    Effect.catchAllCause(() => Effect.sync(abandon))
  )

const publish = ({ idleCount, totalCount, waitingCount }: GuardedPool): void => {
  Metrics.unsafeUpdate(Metrics.databaseConnections, totalCount - idleCount, { state: "in_use" })
  Metrics.unsafeUpdate(Metrics.databaseConnections, idleCount, { state: "idle" })
  Metrics.databaseWaiting.unsafeUpdate(waitingCount, [])
}

export const pool = (server: DatabaseServer, limits: Limits) =>
  Effect.gen(function* () {
    const limitMillis = Math.min(Duration.toMillis(limits.queryTimeout), 2 ** 31 - 1)
    const acquired = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new GuardedPool(
            { ...server.current, ...common, max: limits.maxConnections, idleTimeoutMillis: 30_000 },
            limitMillis,
            limits.isWatched
          )
      ),
      (made) =>
        closeOrAbandon(
          () => made.end(),
          () => made.cut(new Error("The pool is closed"))
        )
    )
    yield* attempt(() => acquired.query("SELECT 1"))
    if (limits.isWatched) {
      yield* Metrics.collect(() => publish(acquired))
      yield* watch(server, common, acquired, reason)
    }
    return acquired
  })

/** Opens a connection that is not in the pool and has no query timeout. */
export const single = (server: DatabaseServer) =>
  Effect.acquireRelease(
    Effect.sync(() => new Pg.Client({ ...server.current, ...common }).on("error", () => {})),
    (client) =>
      closeOrAbandon(
        () => client.end(),
        () => client.connection.stream.destroy()
      )
  ).pipe(Effect.flatMap((client) => attempt(() => openSession(client))))

import { SqlClient } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, type Redacted, type Scope, String } from "effect"
import type * as Pg from "pg"
import { failLostTransactions } from "../node/Postgres.ts"
import { OwnConnection, Prepared } from "../services/sql/SqlStatement.ts"
import * as Connections from "./DatabaseConnections.ts"
import { type DatabaseServer, DatabaseUnavailable, parse, renewable } from "./DatabaseServer.ts"
import { Embedded } from "./Embedded.ts"
import type { EmbeddedUnavailable } from "./embedded/Programs.ts"
import type { GuardedPool } from "./GuardedPool.ts"

export interface Options extends Partial<Connections.Limits> {
  /** Reads `DATABASE_URL` again, so a watched pool can replace its credentials. */
  readonly rereadUrl?: Effect.Effect<Redacted.Redacted | undefined, { readonly message: string }>
}

class Pool extends Context.Tag("gateway/database/Pool")<Pool, GuardedPool>() {}

const makePrepared = (pool: Pg.Pool) =>
  Prepared.of({
    run: ({ read, text, values }) =>
      Effect.async((resume) => {
        const fail = (cause: Error) => resume(new SqlError({ cause, message: Connections.reason(cause) }))
        pool.connect((error, client, release) => {
          if (error !== undefined || client === undefined) return fail(error ?? new Error("no connection"))
          client.query<Record<string, unknown>>(text, [...values], (failed: Error | null, result) => {
            release()
            if (failed) fail(failed)
            else resume(Effect.sync(() => result.rows.map(read)))
          })
        })
      })
  })

/** The client converts between snake_case in SQL and camelCase in rows and `sql` helpers, but not inside JSON. */
const clientOf = (pool: Pg.Pool) =>
  PgClient.layerFromPool({
    acquire: Effect.succeed(pool),
    transformResultNames: String.snakeToCamel,
    transformQueryNames: String.camelToSnake,
    transformJson: false
  })

const ownConnection = (server: DatabaseServer) =>
  OwnConnection.of({
    connect: Effect.gen(function* () {
      const pool = yield* Connections.pool(server, { maxConnections: 1, queryTimeout: "1 hour", isWatched: false })
      const sql = Context.get(yield* Layer.build(clientOf(pool)), SqlClient)
      // Makes the server cancel the statements of disconnected clients. Fails on systems that do not report disconnects.
      yield* Effect.ignore(sql`SET client_connection_check_interval = '1s'`)
      return sql
    })
  })

const layerFrom = (server: DatabaseServer, options: Options) => {
  const pool = Layer.scoped(
    Pool,
    Connections.pool(server, { maxConnections: 10, queryTimeout: "15 seconds", isWatched: false, ...options })
  )
  return Layer.unwrapEffect(
    Effect.map(Pool, (acquired) =>
      clientOf(acquired).pipe(
        Layer.tap((context) => Effect.sync(() => failLostTransactions(Context.get(context, PgClient.PgClient)))),
        Layer.merge(Layer.succeed(Prepared, makePrepared(acquired))),
        Layer.merge(
          Layer.succeed(Database, { connect: Connections.single(server), unreadyReason: () => acquired.unreadyReason })
        )
      )
    )
  ).pipe(
    Layer.provide(pool),
    Layer.merge(Layer.succeed(OwnConnection, ownConnection(server))),
    Layer.mapError(({ message }) => new DatabaseUnavailable({ message: `The database cannot be reached: ${message}.` }))
  )
}

type Services = Database | SqlClient | PgClient.PgClient | Prepared | OwnConnection

export class Database extends Context.Tag("gateway/Database")<
  Database,
  {
    /** Opens a connection that is not in the pool and has no query timeout. */
    readonly connect: Effect.Effect<Pg.Client, SqlError, Scope.Scope>
    /** Returns why `/readyz` must fail, or undefined if the database works. Always undefined for a pool that is not watched. */
    readonly unreadyReason: () => string | undefined
  }
>() {
  static readonly layerUrl = (
    url: Redacted.Redacted,
    options: Options = {}
  ): Layer.Layer<Services, DatabaseUnavailable> =>
    Layer.unwrapEffect(
      Effect.map(parse(url), (server) =>
        layerFrom(renewable(server, options.rereadUrl ?? Effect.succeed(undefined)), options)
      )
    )

  static readonly layerEmbedded = (
    dataDir: string,
    options: Options = {}
  ): Layer.Layer<Services, DatabaseUnavailable | EmbeddedUnavailable> =>
    Embedded.pipe(
      Effect.map((address) =>
        layerFrom({ current: { ...address, ssl: false }, reread: Effect.succeed(Option.none()) }, options)
      ),
      Layer.unwrapEffect,
      Layer.provide(Embedded.layer({ dataDir }))
    )

  static readonly layer = (from: {
    readonly url: Option.Option<Redacted.Redacted>
    readonly dataDir: string
    readonly options?: Options
  }) =>
    Option.match(from.url, {
      onNone: () => Database.layerEmbedded(from.dataDir, from.options),
      onSome: (url) => Database.layerUrl(url, from.options)
    })
}

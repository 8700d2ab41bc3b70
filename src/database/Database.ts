import { SqlClient } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { PgClient } from "@effect/sql-pg"
import { Context, Data, Effect, Layer, Option, Redacted, type Scope, String } from "effect"
import * as Pg from "pg"
import { failLostTransactions } from "../node/SqlTransactions.ts"
import { OwnConnection, Prepared } from "../services/sql/Statement.ts"
import * as Connections from "./Connections.ts"
import { Embedded } from "./Embedded.ts"
import type { EmbeddedUnavailable } from "./embedded/Binaries.ts"

/** One line for the operator, without the password. */
class DatabaseUnavailable extends Data.TaggedError("DatabaseUnavailable")<{ readonly message: string }> {}

export type Options = Partial<Connections.Limits>

const parse = (url: Redacted.Redacted): Effect.Effect<Connections.Server, DatabaseUnavailable> =>
  Effect.try({
    try: () => {
      const server = { connectionString: Redacted.value(url) }
      if (!/^postgres(ql)?:\/\//.test(server.connectionString)) throw new Error("it does not begin with postgres://")
      Reflect.construct(Pg.Client, [server])
      return server
    },
    catch: (error) => new DatabaseUnavailable({ message: `DATABASE_URL cannot be used: ${Connections.reason(error)}.` })
  })

class Pool extends Context.Tag("gateway/database/Pool")<Pool, Pg.Pool>() {}

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

/** Rows get camelCase names, `sql` helpers write snake_case, JSON stays as it is. */
const clientOf = (pool: Pg.Pool) =>
  PgClient.layerFromPool({
    acquire: Effect.succeed(pool),
    transformResultNames: String.snakeToCamel,
    transformQueryNames: String.camelToSnake,
    transformJson: false
  })

const ownConnection = (server: Connections.Server) =>
  OwnConnection.of({
    connect: Effect.gen(function* () {
      const pool = yield* Connections.pool(server, { maxConnections: 1, queryTimeout: "1 hour", isWatched: false })
      const sql = Context.get(yield* Layer.build(clientOf(pool)), SqlClient)
      // Lets the server end the statement of a client that is gone, on systems that report it.
      yield* Effect.ignore(sql`SET client_connection_check_interval = '1s'`)
      return sql
    })
  })

const layerFrom = (server: Connections.Server, options: Options) => {
  const pool = Layer.scoped(
    Pool,
    Connections.pool(server, { maxConnections: 10, queryTimeout: "15 seconds", isWatched: false, ...options })
  )
  return Layer.unwrapEffect(
    Effect.map(Pool, (acquired) =>
      clientOf(acquired).pipe(
        Layer.tap((context) => Effect.sync(() => failLostTransactions(Context.get(context, PgClient.PgClient)))),
        Layer.merge(Layer.succeed(Prepared, makePrepared(acquired)))
      )
    )
  ).pipe(
    Layer.provide(pool),
    Layer.merge(Layer.succeed(Database, { connect: Connections.single(server) })),
    Layer.merge(Layer.succeed(OwnConnection, ownConnection(server))),
    Layer.mapError(({ message }) => new DatabaseUnavailable({ message: `The database cannot be reached: ${message}.` }))
  )
}

export class Database extends Context.Tag("gateway/Database")<
  Database,
  {
    /** Its queries may take any time. */
    readonly connect: Effect.Effect<Pg.Client, SqlError, Scope.Scope>
  }
>() {
  static readonly layerUrl = (
    url: Redacted.Redacted,
    options: Options = {}
  ): Layer.Layer<Database | SqlClient | PgClient.PgClient | Prepared | OwnConnection, DatabaseUnavailable> =>
    Layer.unwrapEffect(Effect.map(parse(url), (config) => layerFrom(config, options)))

  static readonly layerEmbedded = (
    dataDir: string,
    options: Options = {}
  ): Layer.Layer<
    Database | SqlClient | PgClient.PgClient | Prepared | OwnConnection,
    DatabaseUnavailable | EmbeddedUnavailable
  > =>
    Embedded.pipe(
      Effect.map((address) => layerFrom({ ...address, ssl: false }, options)),
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

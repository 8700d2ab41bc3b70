import { SqlClient } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Context, Effect, Layer, Schema } from "effect"
import * as Pg from "pg"
import { reason } from "./Connections.ts"
import { Database } from "./Database.ts"
import { type Migration, MigrationRefused, outstanding, ownDirectory, read } from "./MigrationFiles.ts"

/**
 * The schema, as the files `NNNN_name.sql` in order. Each is applied once, in a transaction together with its record,
 * by one process at a time.
 */
export class Migrations extends Context.Tag("gateway/Migrations")<
  Migrations,
  {
    /** Applies what is pending and answers the names applied, in order. */
    readonly migrate: Effect.Effect<ReadonlyArray<string>, MigrationRefused | SqlError>
    /** Names not applied yet, in order; one small query. */
    readonly pending: Effect.Effect<ReadonlyArray<string>, SqlError>
  }
>() {
  static readonly layerFrom = (directory: string) => Layer.effect(Migrations, make(directory))

  /** The files that come with the program. */
  static readonly layer = Layer.suspend(() => Migrations.layerFrom(ownDirectory()))
}

const Records = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
const decodeRecords = (rows: unknown) => Effect.orDie(Schema.decodeUnknown(Records)(rows))

const lockKey = "7025102614"
const selectRecords = "SELECT id, name, checksum FROM schema_migrations ORDER BY id"

const isMissingTable = ({ cause }: SqlError) => cause instanceof Pg.DatabaseError && cause.code === "42P01"

const query = (connection: Pg.Client, text: string, values?: Array<unknown>) =>
  Effect.tryPromise({
    try: () => connection.query(text, values),
    catch: (cause) => new SqlError({ cause, message: reason(cause) })
  })

/** Other processes wait here for as long as the one ahead of them takes. */
const lock = (connection: Pg.Client) => {
  const waiting = Effect.logInfo("Waiting for another process to finish its migrations").pipe(Effect.delay("5 seconds"))
  return query(connection, `SELECT pg_advisory_lock(${lockKey})`).pipe(
    Effect.raceFirst(Effect.zipRight(waiting, Effect.never))
  )
}

const lineOf = (sql: string, { position }: Pg.DatabaseError) =>
  position === undefined ? "" : `:${sql.slice(0, Number(position)).split("\n").length}`

const explain = (name: string, sql: string) =>
  Effect.catchAll(({ cause, message }: SqlError) => {
    const line = cause instanceof Pg.DatabaseError ? lineOf(sql, cause) : ""
    return new MigrationRefused({ message: `${name}.sql${line} failed and was rolled back: ${message}` })
  })

const apply = (connection: Pg.Client) =>
  Effect.fnUntraced(function* ({ checksum, id, name, sql }: Migration) {
    yield* query(connection, "BEGIN")
    yield* query(connection, sql).pipe(explain(name, sql))
    yield* query(connection, "INSERT INTO schema_migrations (id, name, checksum) VALUES ($1, $2, $3)", [
      id,
      name,
      checksum
    ])
    yield* query(connection, "COMMIT")
    yield* Effect.logInfo(`Applied migration ${name}`)
    return name
  })

const make = Effect.fnUntraced(function* (directory: string) {
  const database = yield* Database
  const sql = yield* SqlClient
  const known = yield* read(directory)

  const applied = sql.unsafe(selectRecords).pipe(
    Effect.catchIf(isMissingTable, () => Effect.succeed([])),
    Effect.flatMap(decodeRecords)
  )

  const migrateLocked = Effect.gen(function* () {
    const connection = yield* database.connect
    yield* lock(connection)
    yield* query(
      connection,
      `CREATE TABLE IF NOT EXISTS schema_migrations (
         id         integer PRIMARY KEY,
         name       text NOT NULL,
         checksum   text NOT NULL,
         applied_at timestamptz NOT NULL DEFAULT now()
       )`
    )
    const { rows } = yield* query(connection, selectRecords)
    return yield* Effect.forEach(yield* outstanding(known, yield* decodeRecords(rows)), apply(connection))
  }).pipe(Effect.scoped)

  return Migrations.of({
    migrate: Effect.gen(function* () {
      const missing = yield* outstanding(known, yield* applied)
      return missing.length === 0 ? [] : yield* migrateLocked
    }).pipe(Effect.withSpan("Migrations.migrate")),
    pending: Effect.map(applied, (records) => {
      const done = new Set(records.map(({ id }) => id))
      return known.flatMap(({ id, name }) => (done.has(id) ? [] : [name]))
    }).pipe(Effect.withSpan("Migrations.pending"))
  })
})

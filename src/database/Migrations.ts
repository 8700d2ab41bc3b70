import { hostname } from "node:os"
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import * as Pg from "pg"
import { isDeadlock, isLockTimeout } from "../services/sql/Outage.ts"
import { configure, query } from "./Connections.ts"
import { Database } from "./Database.ts"
import {
  type Applied,
  describeApplied,
  describeFailure,
  describeUpgrade,
  findOutstanding,
  isConcurrent,
  type Migration,
  MigrationRefused,
  ownDirectory,
  read,
  readSchema,
  type SqlFile,
  statementsOf
} from "./MigrationFiles.ts"
import { findMissingPrivilege, findObstacle } from "./Requirements.ts"

/** The migrations that one run applied. */
export interface Migrated {
  readonly names: ReadonlyArray<string>
  /** Undefined if the database was up to date. */
  readonly summary: string | undefined
}

const nothing: Migrated = { names: [], summary: undefined }

/**
 * Applies each `NNNN_name.sql` once, with its record in one transaction, by one process at a time. An empty database is
 * created from `schema.sql`.
 */
export class Migrations extends Context.Tag("gateway/Migrations")<
  Migrations,
  {
    /** Fails before any change if the gateway cannot use the database. Logs the start of an upgrade and, if it fails, the migrations that stay applied. */
    readonly migrate: Effect.Effect<Migrated, MigrationRefused | SqlError>
    /** Brings an empty database to where another one was. */
    readonly migrateLike: (other: ReadonlyArray<Applied>) => Effect.Effect<void, MigrationRefused | SqlError>
    /** As `pending`; fails where the database and the program contradict each other. */
    readonly outstanding: Effect.Effect<ReadonlyArray<string>, MigrationRefused | SqlError>
    readonly pending: Effect.Effect<ReadonlyArray<string>, SqlError>
  }
>() {
  static readonly layerFrom = (directory: string, timeouts: Partial<Timeouts> = {}) =>
    Layer.effect(Migrations, make(directory, { lock: "1 minute", idle: "30 seconds", ...timeouts }))

  static readonly layer = Layer.suspend(() => Migrations.layerFrom(ownDirectory()))
}

const Records = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
const decodeRecords = (rows: unknown) => Effect.orDie(Schema.decodeUnknown(Records)(rows))

const decodeMine = (rows: unknown) =>
  Effect.orDie(Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ mine: Schema.Boolean })))(rows))

const lockKey = "7025102614"
const selectRecords = "SELECT id, name, checksum FROM schema_migrations ORDER BY id"

const isMissingTable = ({ cause }: SqlError) => cause instanceof Pg.DatabaseError && cause.code === "42P01"

export interface Timeouts {
  readonly lock: Duration.DurationInput
  /** Then the server ends the session of a suspended process and frees its lock. */
  readonly idle: Duration.DurationInput
}

const askEvery = "250 millis"
const remindEvery = 20

const configureSession = (connection: Pg.Client, { idle }: Timeouts) => {
  const limit = `${Duration.toMillis(idle)}ms`
  return configure(connection, {
    application_name: `generation-gateway migration, ${hostname()} pid ${process.pid}`.slice(0, 63),
    idle_session_timeout: limit,
    idle_in_transaction_session_timeout: limit
  })
}

const Holder = Schema.Struct({
  pid: Schema.Number,
  application: Schema.String,
  host: Schema.String,
  since: Schema.String
})

const findLockHolder = (connection: Pg.Client) =>
  query(
    connection,
    `SELECT l.pid, coalesce(a.application_name, '?') AS application, coalesce(host(a.client_addr), 'this host') AS host,
       coalesce(to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '?') AS since
     FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint << 32) + l.objid::bigint = $1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [lockKey]
  ).pipe(
    Effect.flatMap(({ rows }) => Effect.orDie(Schema.decodeUnknown(Schema.Array(Holder))(rows))),
    Effect.map(([found]) =>
      found === undefined
        ? "another process"
        : `"${found.application}" from ${found.host} (PostgreSQL pid ${found.pid}, since ${found.since})`
    )
  )

/** Returns early once another process has applied everything. */
const lock = Effect.fnUntraced(function* (
  connection: Pg.Client,
  timeouts: Timeouts,
  isUpToDate: Effect.Effect<boolean, MigrationRefused | SqlError>
) {
  const until = (yield* Clock.currentTimeNanos) + BigInt(Duration.toMillis(timeouts.lock)) * 1_000_000n
  for (let asked = 1; ; asked++) {
    const { rows } = yield* query(connection, `SELECT pg_try_advisory_lock(${lockKey}) AS mine`)
    const [{ mine }] = yield* decodeMine(rows)
    if (mine || (yield* isUpToDate)) return
    if ((yield* Clock.currentTimeNanos) > until) {
      const message = `The migrations are locked by ${yield* findLockHolder(connection)}, and not done. End that session, or start again later.`
      return yield* new MigrationRefused({ message })
    }
    if (asked % remindEvery === 0)
      yield* Effect.logInfo(`Waiting for the migrations of ${yield* findLockHolder(connection)}`)
    yield* Effect.sleep(askEvery)
  }
})

const explain = (file: SqlFile, offset?: number) =>
  Effect.catchAll(({ cause, message }: SqlError) => {
    const position = cause instanceof Pg.DatabaseError ? cause.position : undefined
    return new MigrationRefused({ message: describeFailure(file, { message, position, offset }) })
  })

/** Behind a statement that waits for a table's lock all others wait too, so it waits for a second at a time. */
const lockTries = { times: 400, schedule: Schedule.spaced("500 millis"), while: isLockTimeout } as const
/** Statements of older programs may take the same locks in another order. */
const deadlockTries = { times: 5, schedule: Schedule.spaced("500 millis"), while: isDeadlock } as const

/** Leaves its transaction open. */
const run = (connection: Pg.Client, file: SqlFile) =>
  query(connection, "BEGIN; SET LOCAL lock_timeout = '1s'").pipe(
    Effect.zipRight(isConcurrent(file.sql) ? Effect.void : query(connection, file.sql)),
    Effect.tapError(() => Effect.ignore(query(connection, "ROLLBACK"))),
    Effect.retry(lockTries),
    Effect.retry(deadlockTries),
    explain(file)
  )

const apply = Effect.fnUntraced(function* (connection: Pg.Client, migration: Migration) {
  const { checksum, id, name, sql } = migration
  // Outside of a transaction, one by one: after a failure all of them are repeated.
  for (const { offset, text } of isConcurrent(sql) ? statementsOf(sql) : []) {
    yield* query(connection, text).pipe(explain(migration, offset))
  }
  yield* run(connection, migration)
  const record = [id, name, checksum]
  yield* query(connection, "INSERT INTO schema_migrations (id, name, checksum) VALUES ($1, $2, $3)", record)
  yield* query(connection, "COMMIT")
  yield* Effect.logDebug(`Applied migration ${name}`)
})

/** Returns whether nothing but the table of migrations is in the schema. */
const isEmpty = (connection: Pg.Client) =>
  query(
    connection,
    `SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname NOT LIKE 'schema\\_migrations%')
       AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid) AS mine
     FROM pg_namespace n WHERE nspname = current_schema()`
  ).pipe(
    Effect.flatMap(({ rows }) => decodeMine(rows)),
    Effect.map(([{ mine }]) => mine)
  )

/** Faster than all migrations one by one; the file records those that it stands for. */
const create = Effect.fnUntraced(function* (connection: Pg.Client, directory: string) {
  const schema = readSchema(directory)
  if (schema === undefined || !(yield* isEmpty(connection))) return
  yield* run(connection, schema)
  yield* query(connection, "COMMIT")
})

/** A failure leaves the earlier migrations applied, so the log names them. */
const applyAll = Effect.fnUntraced(function* (connection: Pg.Client, migrations: ReadonlyArray<Migration>) {
  const applied: Array<string> = []
  yield* Effect.gen(function* () {
    for (const migration of migrations) {
      yield* apply(connection, migration)
      applied.push(migration.name)
    }
  }).pipe(
    Effect.onError(() =>
      Effect.when(
        Effect.logWarning(
          `The migrations stopped after ${applied.length} of ${migrations.length}. Applied: ${applied.join(", ")}`
        ),
        () => applied.length > 0
      )
    )
  )
})

const refuseFor = <E>(find: Effect.Effect<string | undefined, E>) =>
  Effect.flatMap(find, (message) => (message === undefined ? Effect.void : new MigrationRefused({ message })))

const make = Effect.fnUntraced(function* (directory: string, timeouts: Timeouts) {
  const database = yield* Database
  const sql = yield* SqlClient
  const known = yield* read(directory)

  const applied = sql.unsafe(selectRecords).pipe(
    Effect.catchIf(isMissingTable, () => Effect.succeed([])),
    Effect.flatMap(decodeRecords)
  )

  const outstanding = Effect.flatMap(applied, (records) => findOutstanding(known, records))
  const isUpToDate = Effect.map(outstanding, ({ length }) => length === 0)

  const requireUsable = refuseFor(findObstacle(database.connect))

  const migrateLocked = (isWanted: (migration: Migration) => boolean) =>
    Effect.gen(function* () {
      const connection = yield* database.connect
      yield* configureSession(connection, timeouts)
      yield* refuseFor(findMissingPrivilege(connection))
      yield* lock(connection, timeouts, isUpToDate)
      yield* query(
        connection,
        `CREATE TABLE IF NOT EXISTS schema_migrations (
         id         integer PRIMARY KEY,
         name       text NOT NULL,
         checksum   text NOT NULL,
         applied_at timestamptz NOT NULL DEFAULT now()
       )`
      )
      const findWanted = query(connection, selectRecords).pipe(
        Effect.flatMap(({ rows }) => decodeRecords(rows)),
        Effect.flatMap((records) => findOutstanding(known, records)),
        Effect.map((missing) => missing.filter(isWanted))
      )
      const wanted = yield* findWanted
      if (!Arr.isNonEmptyReadonlyArray(wanted)) return nothing
      const upgrade = describeUpgrade(known, wanted)
      if (upgrade !== undefined) yield* Effect.logInfo(upgrade)
      if (wanted.length === known.length) yield* create(connection, directory)
      yield* applyAll(connection, yield* findWanted)
      return { names: wanted.map(({ name }) => name), summary: describeApplied(known, wanted) }
    }).pipe(Effect.scoped)

  return Migrations.of({
    migrate: Effect.gen(function* () {
      yield* requireUsable
      return (yield* isUpToDate) ? nothing : yield* migrateLocked(() => true)
    }).pipe(Effect.withSpan("Migrations.migrate")),
    migrateLike: Effect.fn("Migrations.migrateLike")(function* (other: ReadonlyArray<Applied>) {
      yield* requireUsable
      yield* findOutstanding(known, other)
      const ids = new Set(other.map(({ id }) => id))
      const own = yield* applied
      if (own.some(({ id }) => !ids.has(id))) {
        return yield* new MigrationRefused({
          message: "The database has migrations that the backup lacks: give it an empty one."
        })
      }
      if (own.length < ids.size) yield* migrateLocked(({ id }) => ids.has(id))
    }),
    outstanding: Effect.map(outstanding, (missing) => missing.map(({ name }) => name)),
    pending: Effect.map(applied, (records) => {
      const done = new Set(records.map(({ id }) => id))
      return known.flatMap(({ id, name }) => (done.has(id) ? [] : [name]))
    }).pipe(Effect.withSpan("Migrations.pending"))
  })
})

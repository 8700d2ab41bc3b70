import { hostname } from "node:os"
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Clock, Context, Data, Duration, Effect, Layer, Schedule, Schema } from "effect"
import * as Pg from "pg"
import { pluralize } from "../domain/Wording.ts"
import { ownFile } from "../services/runtime/System.ts"
import { isDeadlock, isLockTimeout } from "../services/sql/Outage.ts"
import { Database } from "./Database.ts"
import { configure, query, selectOne } from "./DatabaseConnections.ts"
import {
  type Applied,
  type FunctionFile,
  type Functions,
  isConcurrent,
  type Migration,
  MigrationRefused,
  noFunctions,
  readFunctions,
  readMigrations,
  readSchema,
  refusal,
  type SqlFile,
  statementsOf
} from "./MigrationFiles.ts"
import { findMissingPrivilege, findObstacle } from "./Requirements.ts"

interface Migrated {
  /** The applied migrations. */
  readonly names: ReadonlyArray<string>
  /** The applied files of functions, such as `functions/holds`. */
  readonly functions: ReadonlyArray<string>
  /** A text for the log. Undefined if the database was up to date. */
  readonly summary: string | undefined
}

const nothing: Migrated = { names: [], functions: [], summary: undefined }

/**
 * Applies each `NNNN_name.sql` once and records it in the same transaction. Only one process migrates at a time. An empty
 * database is created from `schema.sql` instead. The transaction of the last migration also applies changed files of
 * `functions/`, unless a newer program has applied a higher version of them.
 */
export class Migrations extends Context.Tag("gateway/Migrations")<
  Migrations,
  {
    /**
     * Changes nothing if the gateway could not use the database. Logs the start of an upgrade, and after a failure which
     * migrations were applied.
     */
    readonly migrate: Effect.Effect<Migrated, MigrationRefused | SqlError>
    /** Applies to an empty database the same migrations that another one has. */
    readonly migrateLike: (other: ReadonlyArray<Applied>) => Effect.Effect<void, MigrationRefused | SqlError>
    /**
     * Returns missing migrations and files of functions. Fails if the database does not match this program, for example if
     * it is newer.
     */
    readonly outstanding: Effect.Effect<ReadonlyArray<string>, MigrationRefused | SqlError>
    /**
     * Returns missing migrations, but no files of functions, because a program can run with the functions of another
     * version.
     */
    readonly pending: Effect.Effect<ReadonlyArray<string>, SqlError>
  }
>() {
  static readonly layerFrom = (directory: string, timeouts: Partial<Timeouts> = {}) =>
    Layer.effect(Migrations, make(directory, { lock: "1 minute", idle: "30 seconds", ...timeouts }))

  static readonly layer = Layer.suspend(() => Migrations.layerFrom(ownFile("migrations")))
}

interface Failure {
  readonly message: string
  /** The position of the error in the SQL text that was sent to the server. */
  readonly position: string | undefined
  /** The offset of the failed statement in the file. Undefined if the whole file was sent at once. */
  readonly offset: number | undefined
}

const describeFailure = ({ name, sql }: SqlFile, { message, offset, position }: Failure): string => {
  const line = position === undefined ? "" : `:${sql.slice(0, (offset ?? 0) + Number(position)).split("\n").length}`
  return offset === undefined
    ? `${name}.sql${line} failed and was rolled back: ${message}`
    : `${name}.sql${line} failed: ${message}. It runs outside a transaction: its earlier statements stay applied, and an invalid index may remain. The next run repeats the whole file.`
}

const numberOf = ({ id }: Pick<Migration, "id">): string => String(id).padStart(4, "0")

type MigrationIds = ReadonlyArray<Pick<Migration, "id">>

const findPrevious = (known: ReadonlyArray<Migration>, [first]: MigrationIds) =>
  known.findLast(({ id }) => first !== undefined && id < first.id)

/** Returns a line for the log that announces an upgrade. Undefined for a new database, or if `missing` is empty. */
const describeUpgrade = (known: ReadonlyArray<Migration>, missing: MigrationIds): string | undefined => {
  const before = findPrevious(known, missing)
  return before && `Upgrading the database from ${numberOf(before)}: ${pluralize(missing.length, "migration")}`
}

/** Returns a line for the log about the migrations `applied`, in order. Undefined if there are none. */
const describeApplied = (known: ReadonlyArray<Migration>, applied: MigrationIds): string | undefined => {
  const last = applied.at(-1)
  if (last === undefined) return undefined
  const before = findPrevious(known, applied)
  const count = pluralize(applied.length, "migration")
  return before === undefined
    ? `Created the database: ${count}`
    : `Upgraded the database from ${numberOf(before)} to ${numberOf(last)} (${count})`
}

const describeReplaced = ({ length }: ReadonlyArray<FunctionFile>): string | undefined =>
  length === 0 ? undefined : `Replaced SQL functions of the database: ${pluralize(length, "file")}`

const FunctionRecords = Schema.Array(
  Schema.Struct({ name: Schema.String, checksum: Schema.String, version: Schema.Int })
)

/** Returns the files that differ from those in the database. Returns none if a newer program applied those. */
const findStale = ({ files, version }: Functions, rows: unknown) =>
  Effect.map(Effect.orDie(Schema.decodeUnknown(FunctionRecords)(rows)), (records) =>
    files.filter(({ checksum, name }) => {
      const record = records.find((each) => each.name === name)
      return record === undefined || (record.checksum !== checksum && record.version <= version)
    })
  )

const contradiction = (known: ReadonlyArray<Migration>, record: Applied) => {
  const file = known.find(({ id }) => id === record.id)
  if (file === undefined) {
    return known.some(({ id }) => id > record.id)
      ? `The database has migration ${record.name}, which this program lacks.`
      : `The database is newer than this program (it has migration ${record.name}). Run the newer program.`
  }
  if (file.name !== record.name) return `Migration ${record.name} was applied, but this program calls it ${file.name}.`
  if (file.checksum !== record.checksum) {
    return `${file.name}.sql was changed after it was applied. Restore it, and put the change into a new migration.`
  }
  return undefined
}

/** Returns the missing migrations in order. Fails if the migrations of the database don't match the files. */
const findOutstanding = (known: ReadonlyArray<Migration>, applied: ReadonlyArray<Applied>) =>
  Effect.gen(function* () {
    for (const record of applied) {
      const message = contradiction(known, record)
      if (message !== undefined) return yield* refusal(message)
    }
    const done = new Set(applied.map(({ id }) => id))
    const missing = known.filter(({ id }) => !done.has(id))
    const late = missing.find(({ id }) => applied.some((record) => record.id > id))
    if (late !== undefined) {
      return yield* refusal(`${late.name}.sql has a lower number than an applied migration. Renumber it.`)
    }
    return missing
  })

const Records = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
const decodeRecords = (rows: unknown) => Effect.orDie(Schema.decodeUnknown(Records)(rows))

/** Runs a statement that returns one row with the boolean column `holds`. */
const isTrue = (connection: Pg.Client, text: string) =>
  Effect.map(selectOne(connection, Schema.Struct({ holds: Schema.Boolean }), text), ({ holds }) => holds)

const lockKey = "7025102614"
const selectRecords = "SELECT id, name, checksum FROM schema_migrations ORDER BY id"
const selectFunctions = "SELECT name, checksum, version FROM schema_functions"

const createTables = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    id         integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE IF NOT EXISTS schema_functions (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    -- The version of the functions of the program that applied it.
    version    integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`

const isMissingTable = ({ cause }: SqlError) => cause instanceof Pg.DatabaseError && cause.code === "42P01"

export interface Timeouts {
  readonly lock: Duration.DurationInput
  /** The server ends a session that is idle for this long, because a suspended process would keep the lock. */
  readonly idle: Duration.DurationInput
}

const lockRetryInterval = "250 millis"
const attemptsPerReminder = 20

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

/** Waits for the migration lock. Returns without it if another process has applied everything meanwhile. */
const lock = Effect.fnUntraced(function* (
  connection: Pg.Client,
  timeouts: Timeouts,
  isUpToDate: Effect.Effect<boolean, MigrationRefused | SqlError>
) {
  const until = (yield* Clock.currentTimeNanos) + BigInt(Duration.toMillis(timeouts.lock)) * 1_000_000n
  for (let attempts = 1; ; attempts++) {
    const isMine = yield* isTrue(connection, `SELECT pg_try_advisory_lock(${lockKey}) AS holds`)
    if (isMine || (yield* isUpToDate)) return
    if ((yield* Clock.currentTimeNanos) > until) {
      const message = `The migrations are locked by ${yield* findLockHolder(connection)} and not finished. End that session, or try again later.`
      return yield* new MigrationRefused({ message })
    }
    if (attempts % attemptsPerReminder === 0)
      yield* Effect.logInfo(`Waiting while ${yield* findLockHolder(connection)} migrates the database`)
    yield* Effect.sleep(lockRetryInterval)
  }
})

const explain = (file: SqlFile, { cause, message }: SqlError, offset?: number) => {
  const position = cause instanceof Pg.DatabaseError ? cause.position : undefined
  return refusal(describeFailure(file, { message, position, offset }))
}

/** A file to run, and the statement that records it in the same transaction. */
interface Step {
  readonly file: SqlFile
  readonly record?: readonly [text: string, values: Array<unknown>]
}

class StepFailed extends Data.TaggedError("StepFailed")<{ readonly step: Step; readonly error: SqlError }> {}

/** A statement that waits for a table's lock blocks all later ones, so it waits only a second at a time and is retried. */
const lockTries = {
  times: 400,
  schedule: Schedule.spaced("500 millis"),
  while: ({ error }: StepFailed) => isLockTimeout(error)
} as const
/** Deadlocks are possible, because statements of older programs may acquire the same locks in another order. */
const deadlockTries = {
  times: 5,
  schedule: Schedule.spaced("500 millis"),
  while: ({ error }: StepFailed) => isDeadlock(error)
} as const

/** Disables the check of function bodies, because they may call functions of files that follow. */
const begin = "BEGIN; SET LOCAL lock_timeout = '1s'; SET LOCAL check_function_bodies = off"

/** Runs all steps in one transaction. */
const runSteps = Effect.fnUntraced(function* (connection: Pg.Client, steps: Arr.NonEmptyReadonlyArray<Step>) {
  const attempt = (step: Step, text: string, values?: Array<unknown>) =>
    Effect.mapError(query(connection, text, values), (error) => new StepFailed({ step, error }))
  yield* attempt(steps[0], begin).pipe(
    Effect.zipRight(
      Effect.forEach(steps, (step) =>
        Effect.gen(function* () {
          if (!isConcurrent(step.file.sql)) yield* attempt(step, step.file.sql)
          if (step.record !== undefined) yield* attempt(step, ...step.record)
        })
      )
    ),
    Effect.tapError(() => Effect.ignore(query(connection, "ROLLBACK"))),
    Effect.retry(lockTries),
    Effect.retry(deadlockTries),
    Effect.mapError(({ error, step }) => explain(step.file, error))
  )
  yield* query(connection, "COMMIT")
})

const toStep = (migration: Migration): Step => {
  const { checksum, id, name } = migration
  const text = "INSERT INTO schema_migrations (id, name, checksum) VALUES ($1, $2, $3)"
  return { file: migration, record: [text, [id, name, checksum]] }
}

const toFunctionStep =
  (version: number) =>
  (file: FunctionFile): Step => {
    const text = `INSERT INTO schema_functions (name, checksum, version) VALUES ($1, $2, $3)
      ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, version = excluded.version, applied_at = now()`
    return { file, record: [text, [file.name, file.checksum, version]] }
  }

/** Applies a migration, then runs `next` in the same transaction. */
const apply = Effect.fnUntraced(function* (connection: Pg.Client, migration: Migration, next: ReadonlyArray<Step>) {
  // Runs concurrent statements one by one, without a transaction. If one fails, the next run repeats all of them.
  for (const { offset, text } of isConcurrent(migration.sql) ? statementsOf(migration.sql) : []) {
    yield* Effect.mapError(query(connection, text), (error) => explain(migration, error, offset))
  }
  yield* runSteps(connection, [toStep(migration), ...next])
  yield* Effect.logDebug(`Applied migration ${migration.name}`)
})

/** Returns whether the schema contains no tables except those of the migrations themselves. */
const isEmpty = (connection: Pg.Client) =>
  isTrue(
    connection,
    `SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname !~ '^schema_(migrations|functions)')
       AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid) AS holds
     FROM pg_namespace n WHERE nspname = current_schema()`
  )

/**
 * Fills an empty database from `schema.sql`, which is faster than running the migrations that it replaces and records them. If
 * it replaces all migrations, also runs `finalSteps` in the same transaction. Returns whether it did so.
 */
const create = Effect.fnUntraced(function* (
  connection: Pg.Client,
  directory: string,
  known: ReadonlyArray<Migration>,
  finalSteps: ReadonlyArray<Step>
) {
  const schema = readSchema(directory)
  if (schema === undefined || !(yield* isEmpty(connection))) return false
  const isComplete = known.every(({ name }) => schema.sql.includes(`'${name}'`))
  yield* runSteps(connection, [{ file: schema }, ...(isComplete ? finalSteps : [])])
  return isComplete
})

/** Runs `finalSteps` in the transaction of the last migration. After a failure, logs the earlier migrations, which stay applied. */
const applyAll = Effect.fnUntraced(function* (
  connection: Pg.Client,
  migrations: ReadonlyArray<Migration>,
  finalSteps: ReadonlyArray<Step>
) {
  if (migrations.length === 0 && Arr.isNonEmptyReadonlyArray(finalSteps)) yield* runSteps(connection, finalSteps)
  const applied: Array<string> = []
  yield* Effect.gen(function* () {
    for (const [index, migration] of migrations.entries()) {
      yield* apply(connection, migration, index + 1 === migrations.length ? finalSteps : [])
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
  const known = yield* readMigrations(directory)

  const functions = yield* readFunctions(directory)

  const orNone = <A>(rows: Effect.Effect<ReadonlyArray<A>, SqlError>) =>
    Effect.catchIf(rows, isMissingTable, () => Effect.succeed<ReadonlyArray<A>>([]))
  const applied = Effect.flatMap(orNone(sql.unsafe(selectRecords)), decodeRecords)
  const outstanding = Effect.gen(function* () {
    const missing = yield* findOutstanding(known, yield* applied)
    const stale = yield* findStale(functions, yield* orNone(sql.unsafe(selectFunctions)))
    return [...missing, ...stale].map(({ name }) => name)
  })
  const isUpToDate = Effect.map(outstanding, ({ length }) => length === 0)

  const requireUsable = refuseFor(findObstacle(database.connect))

  const migrateLocked = (isWanted: (migration: Migration) => boolean, { files, version }: Functions) =>
    Effect.gen(function* () {
      const connection = yield* database.connect
      yield* configureSession(connection, timeouts)
      yield* refuseFor(findMissingPrivilege(connection))
      yield* lock(connection, timeouts, isUpToDate)
      yield* query(connection, createTables)
      const findWanted = query(connection, selectRecords).pipe(
        Effect.flatMap(({ rows }) => decodeRecords(rows)),
        Effect.flatMap((records) => findOutstanding(known, records)),
        Effect.map((missing) => missing.filter(isWanted))
      )
      const wanted = yield* findWanted
      const stale = yield* findStale({ files, version }, (yield* query(connection, selectFunctions)).rows)
      const upgrade = describeUpgrade(known, wanted)
      if (upgrade !== undefined) yield* Effect.logInfo(upgrade)
      const finalSteps = stale.map(toFunctionStep(version))
      const isCreated = wanted.length === known.length && (yield* create(connection, directory, known, finalSteps))
      yield* applyAll(connection, yield* findWanted, isCreated ? [] : finalSteps)
      const summary = describeApplied(known, wanted) ?? describeReplaced(stale)
      return { names: wanted.map(({ name }) => name), functions: stale.map(({ name }) => name), summary }
    }).pipe(Effect.scoped)

  return Migrations.of({
    migrate: Effect.gen(function* () {
      yield* requireUsable
      return (yield* isUpToDate) ? nothing : yield* migrateLocked(() => true, functions)
    }).pipe(Effect.withSpan("Migrations.migrate")),
    migrateLike: Effect.fn("Migrations.migrateLike")(function* (other: ReadonlyArray<Applied>) {
      yield* requireUsable
      yield* findOutstanding(known, other)
      const ids = new Set(other.map(({ id }) => id))
      const own = yield* applied
      if (own.some(({ id }) => !ids.has(id))) {
        return yield* refusal("The database has migrations that the backup lacks. Restore into an empty database.")
      }
      // Omits the functions, because they need the tables of all migrations.
      if (own.length < ids.size) yield* migrateLocked(({ id }) => ids.has(id), noFunctions)
    }),
    outstanding,
    pending: Effect.map(applied, (records) => {
      const done = new Set(records.map(({ id }) => id))
      return known.flatMap(({ id, name }) => (done.has(id) ? [] : [name]))
    }).pipe(Effect.withSpan("Migrations.pending"))
  })
})

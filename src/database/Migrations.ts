import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { hostname } from "node:os"
import path from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Clock, Context, Data, Duration, Effect, Layer, Schedule, Schema } from "effect"
import * as Pg from "pg"
import { pluralize } from "../domain/Plural.ts"
import { ownFile } from "../services/runtime/System.ts"
import { isDeadlock, isLockTimeout } from "../services/sql/Outage.ts"
import { configure, query, selectOne } from "./Connections.ts"
import { Database } from "./Database.ts"
import { findMissingPrivilege, findObstacle } from "./Requirements.ts"

/** One line for the operator. */
export class MigrationRefused extends Data.TaggedError("MigrationRefused")<{ readonly message: string }> {}

interface SqlFile {
  /** `0001_organizations` */
  readonly name: string
  readonly sql: string
}

interface Applied {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

interface Migration extends Applied, SqlFile {}

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

  static readonly layer = Layer.suspend(() => Migrations.layerFrom(ownFile("migrations")))
}

const refusal = (message: string) => new MigrationRefused({ message })

const readText = (directory: string, file: string) =>
  readFileSync(path.join(directory, file), "utf8").replaceAll("\r\n", "\n")

const schemaFile = "schema.sql"

/** Creates what the migrations create, and records them; undefined in a directory without it. */
const readSchema = (directory: string): SqlFile | undefined =>
  existsSync(path.join(directory, schemaFile)) ? { name: "schema", sql: readText(directory, schemaFile) } : undefined

const parse = (directory: string, file: string): Effect.Effect<Migration, MigrationRefused> => {
  const number = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1]
  if (number === undefined) return refusal(`${file} in ${directory} is not named like 0001_name.sql.`)
  const sql = readText(directory, file)
  const checksum = createHash("sha256").update(sql).digest("hex")
  return Effect.succeed({ id: Number(number), name: path.basename(file, ".sql"), sql, checksum })
}

const read = Effect.fn("Migrations.read")(function* (directory: string) {
  const files = yield* Effect.try({
    try: () => readdirSync(directory).filter((file) => file.endsWith(".sql") && file !== schemaFile),
    catch: (error) => refusal(`The migrations cannot be read (${String(error)}).`)
  })
  const migrations = yield* Effect.forEach(files.toSorted(), (file) => parse(directory, file))
  for (const [index, { id, name }] of migrations.entries()) {
    const previous = migrations[index - 1]
    if (previous?.id === id) return yield* refusal(`${previous.name}.sql and ${name}.sql have the same number.`)
  }
  return migrations
})

/** PostgreSQL runs these statements only outside transactions. */
const isConcurrent = (sql: string) => /^(CREATE|DROP) INDEX CONCURRENTLY/m.test(sql)

const statementsOf = (sql: string) => {
  let offset = 0
  return sql.split(/;$/m).flatMap((text) => {
    const statement = { text, offset }
    offset += text.length + 1
    return text.trim() === "" ? [] : [statement]
  })
}

interface Failure {
  readonly message: string
  /** The server's position in the text that was sent. */
  readonly position: string | undefined
  /** The statement's offset in the file; undefined if the whole file was sent in one transaction. */
  readonly offset: number | undefined
}

const describeFailure = ({ name, sql }: SqlFile, { message, offset, position }: Failure): string => {
  const line = position === undefined ? "" : `:${sql.slice(0, (offset ?? 0) + Number(position)).split("\n").length}`
  return offset === undefined
    ? `${name}.sql${line} failed and was rolled back: ${message}`
    : `${name}.sql${line} failed: ${message}. It runs outside a transaction: its earlier statements stay applied, and an invalid index may remain. The next run repeats the whole file.`
}

const numberOf = ({ id }: Pick<Migration, "id">): string => String(id).padStart(4, "0")

type MigrationIds = Arr.NonEmptyReadonlyArray<Pick<Migration, "id">>

const findPrevious = (known: ReadonlyArray<Migration>, [first]: MigrationIds) =>
  known.findLast(({ id }) => id < first.id)

/** Returns one line for the start of an upgrade by `missing`; undefined for a new database. */
const describeUpgrade = (known: ReadonlyArray<Migration>, missing: MigrationIds): string | undefined => {
  const before = findPrevious(known, missing)
  return before && `Upgrading the database from ${numberOf(before)}: ${pluralize(missing.length, "migration")}`
}

/** Returns one line about `applied`, which are migrations of `known` in order. */
const describeApplied = (known: ReadonlyArray<Migration>, applied: MigrationIds): string => {
  const before = findPrevious(known, applied)
  const count = pluralize(applied.length, "migration")
  return before === undefined
    ? `Created the database: ${count}`
    : `Upgraded the database from ${numberOf(before)} to ${numberOf(Arr.lastNonEmpty(applied))} (${count})`
}

const contradiction = (known: ReadonlyArray<Migration>, record: Applied) => {
  const file = known.find(({ id }) => id === record.id)
  if (file === undefined) {
    return known.some(({ id }) => id > record.id)
      ? `The database has migration ${record.name}, which this program lacks.`
      : `The database is newer than this program (it has migration ${record.name}): run the newer program.`
  }
  if (file.name !== record.name) return `Migration ${record.name} was applied, but this program calls it ${file.name}.`
  if (file.checksum !== record.checksum) {
    return `${file.name}.sql was changed after it was applied: restore it and put the change into a new migration.`
  }
  return undefined
}

/** In order; fails where the database and the files contradict each other. */
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
      return yield* refusal(`${late.name}.sql comes too late: a higher number is already applied. Renumber it.`)
    }
    return missing
  })

const Records = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
const decodeRecords = (rows: unknown) => Effect.orDie(Schema.decodeUnknown(Records)(rows))

/** Returns the only column, which is named `holds`, of the only row. */
const isTrue = (connection: Pg.Client, text: string) =>
  Effect.map(selectOne(connection, Schema.Struct({ holds: Schema.Boolean }), text), ({ holds }) => holds)

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
    const isMine = yield* isTrue(connection, `SELECT pg_try_advisory_lock(${lockKey}) AS holds`)
    if (isMine || (yield* isUpToDate)) return
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
  isTrue(
    connection,
    `SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname NOT LIKE 'schema\\_migrations%')
       AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid) AS holds
     FROM pg_namespace n WHERE nspname = current_schema()`
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

import { createHash } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import { open, rename, rm, stat } from "node:fs/promises"
import path from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import { Data, Effect, ParseResult, Schema } from "effect"
import type * as Pg from "pg"
import * as Copy from "pg-copy-streams"
import { errorCode } from "../services/runtime/System.ts"
import { Database } from "./Database.ts"
import { reason } from "./DatabaseConnections.ts"
import { Migrations } from "./Migrations.ts"

/*
 * A backup is a gzip file that contains a JSON line with the header, the tables, and a JSON line with the row counts and the
 * SHA-256 of everything before it. A table is a JSON line, its rows in the text format of PostgreSQL's COPY, and a line `\.`.
 */

const Header = Schema.Struct({
  format: Schema.Literal("generation-gateway backup"),
  version: Schema.Literal(1),
  created_at: Schema.String,
  migrations: Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
})
type Header = typeof Header.Type

const Table = Schema.Struct({ table: Schema.String, columns: Schema.Array(Schema.String) })
type Table = typeof Table.Type

const End = Schema.Struct({
  rows: Schema.Record({ key: Schema.String, value: Schema.Number }),
  sha256: Schema.String
})
type End = typeof End.Type

const endOfRows = "\\.\n"
const marker = Buffer.from(endOfRows)
const markerInside = Buffer.from(`\n${endOfRows}`)
const newline = 0x0a

class BackupDamaged extends Error {}

const maxLineLength = 4 * 1024 * 1024

/** Reads a decompressed backup from start to end, and hashes everything before the last line. */
class ContainerReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #hash = createHash("sha256")
  #rest = Buffer.alloc(0)
  #unhashed = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next()
    if (next.done === true) return false
    this.#rest = Buffer.concat([this.#rest, next.value])
    return true
  }

  #take(bytes: number): Buffer {
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    this.#hash.update(this.#unhashed)
    this.#unhashed = taken
    return taken
  }

  async line(): Promise<unknown> {
    let end = this.#rest.indexOf(newline)
    while (end < 0) {
      if (this.#rest.length > maxLineLength || !(await this.#more())) throw new BackupDamaged("it ends too early")
      end = this.#rest.indexOf(newline)
    }
    const text = this.#take(end + 1).toString("utf8")
    try {
      return JSON.parse(text)
    } catch {
      throw new BackupDamaged("a line is not valid JSON")
    }
  }

  /** Yields the rows of a table in chunks of complete lines. */
  async *rows(): AsyncGenerator<Buffer> {
    while (true) {
      if (this.#rest.subarray(0, marker.length).equals(marker)) {
        this.#take(marker.length)
        return
      }
      const inside = this.#rest.indexOf(markerInside)
      const lines = (inside < 0 ? this.#rest.lastIndexOf(newline) : inside) + 1
      // Keeps the rest, because the chunk may end within the marker that ends the table.
      if (lines > 0) yield this.#take(lines)
      else if (!(await this.#more())) throw new BackupDamaged("it ends too early")
    }
  }

  /** Returns the hash of all lines before the last. Fails with BackupDamaged if data follows the last line. */
  async finish(): Promise<string> {
    if (this.#rest.length > 0 || (await this.#more())) throw new BackupDamaged("data follows its last line")
    return this.#hash.digest("hex")
  }
}

class BackupFailed extends Data.TaggedError("BackupFailed")<{ readonly message: string }> {}

interface BackupReport {
  readonly file: string
  readonly bytes: number
  readonly rows: Readonly<Record<string, number>>
}

const Tables = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    columns: Schema.Array(Schema.String),
    references: Schema.Array(Schema.String)
  })
)

/** Excludes unlogged tables, because their rows may be lost at any time. */
const selectTables = `
  SELECT c.relname AS name,
    ARRAY(SELECT attname::text FROM pg_attribute
      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum) AS columns,
    ARRAY(SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
      WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid) AS references
  FROM pg_class c
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p'
    AND c.relname NOT IN ('schema_migrations', 'schema_functions')
  ORDER BY c.relname`

type TableReferences = (typeof Tables.Type)[number]

/** Sorts each table after the tables that it references. */
const orderTables = (tables: ReadonlyArray<TableReferences>): ReadonlyArray<TableReferences> => {
  const placed = new Set<string>()
  const ordered: Array<TableReferences> = []
  while (ordered.length < tables.length) {
    const next = tables.find(
      ({ name, references }) => !placed.has(name) && references.every((reference) => placed.has(reference))
    )
    if (next === undefined) throw new Error("tables reference each other in a cycle")
    placed.add(next.name)
    ordered.push(next)
  }
  return ordered
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

const lineOf = (value: Header | Table | End) => `${JSON.stringify(value)}\n`

async function* container(client: Pg.Client, rows: Record<string, number>): AsyncGenerator<Buffer> {
  const hash = createHash("sha256")
  const addToHash = (text: string | Buffer) => {
    const bytes = typeof text === "string" ? Buffer.from(text) : text
    hash.update(bytes)
    return bytes
  }
  const migrations = await client.query("SELECT id, name, checksum FROM schema_migrations ORDER BY id")
  const created = await client.query("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS at")
  const [{ at }] = Schema.decodeUnknownSync(Schema.Tuple(Schema.Struct({ at: Schema.String })))(created.rows)
  const header = { format: "generation-gateway backup", version: 1, created_at: at, migrations: migrations.rows }
  yield addToHash(lineOf(Schema.decodeUnknownSync(Header)(header)))
  const found = await client.query(selectTables)
  for (const { columns, name } of orderTables(Schema.decodeUnknownSync(Tables)(found.rows))) {
    yield addToHash(lineOf({ table: name, columns }))
    const copied = client.query(Copy.to(`COPY ${quote(name)} (${columns.map(quote).join(", ")}) TO STDOUT`))
    for await (const chunk of copied) if (Buffer.isBuffer(chunk)) yield addToHash(chunk)
    rows[name] = copied.rowCount
    yield addToHash(endOfRows)
  }
  yield Buffer.from(lineOf({ rows, sha256: hash.digest("hex") }))
}

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false
  )

const syncDirectory = async (file: string) => {
  const directory = await open(path.dirname(file))
  await directory.sync().finally(() => directory.close())
}

const write = async (client: Pg.Client, file: string, signal: AbortSignal): Promise<BackupReport> => {
  if (await exists(file)) throw new BackupFailed({ message: `${file} already exists. Choose another name.` })
  const partial = `${file}.${process.pid}.partial`
  const rows: Record<string, number> = {}
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    const target = createWriteStream(partial, { flags: "wx", mode: 0o600, flush: true })
    await pipeline(Readable.from(container(client, rows)), createGzip(), target, { signal })
    await client.query("COMMIT")
    await rename(partial, file)
    await syncDirectory(file)
    const { size } = await stat(file)
    return { file, bytes: size, rows }
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

/** Writes a consistent snapshot of all tables. Gateways may run meanwhile. The file appears only when it is complete. */
export const backup = Effect.fn("Backup.backup")(function* (file: string) {
  const client = yield* Effect.flatMap(Database, ({ connect }) => connect)
  return yield* Effect.tryPromise({
    try: (signal) => write(client, path.resolve(file), signal),
    catch: (error) =>
      error instanceof BackupFailed
        ? error
        : new BackupFailed({ message: `The backup to ${file} failed: ${reason(error)}.` })
  })
}, Effect.scoped)

interface RestoreReport {
  readonly createdAt: string
  readonly rows: Readonly<Record<string, number>>
}

const failure = (file: string, error: unknown) => {
  const cause = ParseResult.isParseError(error) ? "a line has an invalid format" : reason(error)
  const isDamaged = error instanceof BackupDamaged || ParseResult.isParseError(error) || isZlibError(error)
  const message = isDamaged ? `${file} is not a complete backup: ${cause}.` : `${file} was not restored: ${cause}.`
  return new BackupFailed({ message })
}

const isZlibError = (error: unknown) => errorCode(error)?.startsWith("Z_") === true

const attempt = <A>(file: string, run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (error) => failure(file, error) })

const Filled = Schema.Tuple(Schema.Struct({ filled: Schema.Boolean }))

const isFilled = async (client: Pg.Client) => {
  const { rows } = await client.query(`
    SELECT EXISTS (SELECT FROM organizations) OR EXISTS (SELECT FROM instances) OR EXISTS (SELECT FROM request_log) AS filled`)
  return Schema.decodeUnknownSync(Filled)(rows)[0].filled
}

/** Disables triggers and foreign keys meanwhile, because the rows already satisfied them in the source database. */
const fill = async (client: Pg.Client, { columns, table }: Table, rows: AsyncIterable<Buffer>, signal: AbortSignal) => {
  const name = quote(table)
  await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`)
  await client.query(`DELETE FROM ${name}`)
  const copy = client.query(Copy.from(`COPY ${name} (${columns.map(quote).join(", ")}) FROM STDIN`))
  await pipeline(Readable.from(rows), copy, { signal })
  await client.query(`ALTER TABLE ${name} ENABLE TRIGGER USER`)
  return copy.rowCount
}

const setSequences = `
  SELECT format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM %I',
    pg_get_serial_sequence(quote_ident(table_name), column_name), column_name, table_name) AS statement
  FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'`

const Statements = Schema.Array(Schema.Struct({ statement: Schema.String }))

const restoreRows = async (client: Pg.Client, reader: ContainerReader, signal: AbortSignal) => {
  const rows: Record<string, number> = {}
  await client.query("BEGIN")
  if (await isFilled(client)) throw new Error("the database is not empty, or a gateway uses it")
  while (true) {
    const line = Schema.decodeUnknownSync(Schema.Union(Table, End))(await reader.line())
    if ("table" in line) {
      rows[line.table] = await fill(client, line, reader.rows(), signal)
      continue
    }
    if ((await reader.finish()) !== line.sha256) throw new BackupDamaged("its checksum does not match")
    const incomplete = Object.keys({ ...line.rows, ...rows }).find((table) => line.rows[table] !== rows[table])
    if (incomplete !== undefined) throw new BackupDamaged(`rows of ${incomplete} are missing`)
    break
  }
  // Empties a table that backups of older versions contain: it records SQL functions, which a backup does not restore.
  if ("schema_functions" in rows) await client.query("DELETE FROM schema_functions")
  const { rows: sequences } = await client.query(setSequences)
  for (const { statement } of Schema.decodeUnknownSync(Statements)(sequences)) await client.query(statement)
  await client.query("COMMIT")
  return rows
}

/** Restores into an empty database with the schema of the backup, in one transaction. Then applies newer migrations. */
export const restore = Effect.fn("Restore.restore")(function* (file: string) {
  const { migrate, migrateLike } = yield* Migrations
  const source = yield* Effect.acquireRelease(
    Effect.sync(() => createReadStream(file)),
    (stream) => Effect.sync(() => stream.destroy())
  )
  const plain = createGunzip()
  source.once("error", (error) => plain.destroy(error))
  const reader = new ContainerReader(source.pipe(plain))
  const header = yield* attempt(file, async () => Schema.decodeUnknownSync(Header)(await reader.line()))
  yield* Effect.mapError(
    migrateLike(header.migrations),
    (error) => new BackupFailed({ message: `${file} cannot be restored here: ${error.message}` })
  )
  const client = yield* Effect.flatMap(Database, ({ connect }) => connect)
  const rows = yield* attempt(file, (signal) => restoreRows(client, reader, signal))
  yield* migrate
  const report: RestoreReport = { createdAt: header.created_at, rows }
  return report
}, Effect.scoped)

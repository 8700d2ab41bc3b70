import { createHash } from "node:crypto"
import { createWriteStream } from "node:fs"
import { open, rename, rm, stat } from "node:fs/promises"
import path from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { Data, Effect, Schema } from "effect"
import type * as Pg from "pg"
import * as Copy from "pg-copy-streams"
import { reason } from "../Connections.ts"
import { Database } from "../Database.ts"
import { type End, endOfRows, Header, type Table } from "./Container.ts"

/** One line for the operator. */
export class BackupFailed extends Data.TaggedError("BackupFailed")<{ readonly message: string }> {}

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

/** Unlogged tables may be lost by design. */
const selectTables = `
  SELECT c.relname AS name,
    ARRAY(SELECT attname::text FROM pg_attribute
      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum) AS columns,
    ARRAY(SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
      WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid) AS references
  FROM pg_class c
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p'
    AND c.relname <> 'schema_migrations'
  ORDER BY c.relname`

type Described = (typeof Tables.Type)[number]

/** Each table after those that it refers to. */
const orderTables = (tables: ReadonlyArray<Described>): ReadonlyArray<Described> => {
  const placed = new Set<string>()
  const ordered: Array<Described> = []
  while (ordered.length < tables.length) {
    const next = tables.find(({ name, references }) => !placed.has(name) && references.every((it) => placed.has(it)))
    if (next === undefined) throw new Error("tables refer to each other in a circle")
    placed.add(next.name)
    ordered.push(next)
  }
  return ordered
}

export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

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
  if (await exists(file)) throw new Error("there is such a file already")
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

/** One snapshot of every table, while others write; the file appears whole or not at all. */
export const backup = Effect.fn("Backup.backup")(function* (file: string) {
  const client = yield* Effect.flatMap(Database, ({ connect }) => connect)
  return yield* Effect.tryPromise({
    try: (signal) => write(client, path.resolve(file), signal),
    catch: (error) => new BackupFailed({ message: `The backup ${file} was not made: ${reason(error)}.` })
  })
}, Effect.scoped)

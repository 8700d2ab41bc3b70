import { createReadStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import { Effect, ParseResult, Schema } from "effect"
import type * as Pg from "pg"
import * as Copy from "pg-copy-streams"
import { errorCode } from "../../services/runtime/System.ts"
import { reason } from "../Connections.ts"
import { Database } from "../Database.ts"
import { Migrations } from "../Migrations.ts"
import { BackupFailed, quote } from "./Backup.ts"
import { ContainerReader, Damaged, End, Header, Table } from "./Container.ts"

interface RestoreReport {
  readonly createdAt: string
  readonly rows: Readonly<Record<string, number>>
}

const failure = (file: string, error: unknown) => {
  const why = ParseResult.isParseError(error) ? "a line of it is not what it should be" : reason(error)
  const isDamaged = error instanceof Damaged || ParseResult.isParseError(error) || isZlibError(error)
  const message = isDamaged ? `${file} is no whole backup: ${why}.` : `${file} was not restored: ${why}.`
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

/** Own triggers and references wait, since the rows obeyed them where they come from. */
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
  if (await isFilled(client)) throw new Error("the database is not empty, or a gateway runs on it")
  while (true) {
    const line = Schema.decodeUnknownSync(Schema.Union(Table, End))(await reader.line())
    if ("table" in line) {
      rows[line.table] = await fill(client, line, reader.rows(), signal)
      continue
    }
    if ((await reader.finish()) !== line.sha256) throw new Damaged("its checksum is wrong")
    const wrong = Object.keys({ ...line.rows, ...rows }).find((table) => line.rows[table] !== rows[table])
    if (wrong !== undefined) throw new Damaged(`rows of ${wrong} are missing`)
    break
  }
  const { rows: sequences } = await client.query(setSequences)
  for (const { statement } of Schema.decodeUnknownSync(Statements)(sequences)) await client.query(statement)
  await client.query("COMMIT")
  return rows
}

/** Into an empty database, all or nothing, by the schema of the backup; what newer migrations there are follow. */
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

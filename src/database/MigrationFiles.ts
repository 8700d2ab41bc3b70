import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { Data, Effect, Schema } from "effect"

export class MigrationRefused extends Data.TaggedError("MigrationRefused")<{ readonly message: string }> {}

export interface SqlFile {
  /** For example `0001_organizations`. */
  readonly name: string
  readonly sql: string
}

export interface Applied {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

export interface Migration extends Applied, SqlFile {}

/** A file of SQL functions and triggers, which is applied again whenever it changes. */
export interface FunctionFile extends SqlFile {
  readonly checksum: string
}

export interface Functions {
  readonly files: ReadonlyArray<FunctionFile>
  /** Increases with each change of a file. An older program does not replace the functions of a newer one. */
  readonly version: number
}

export const noFunctions: Functions = { files: [], version: 0 }

export const refusal = (message: string) => new MigrationRefused({ message })

const readText = (directory: string, file: string) =>
  readFileSync(path.join(directory, file), "utf8").replaceAll("\r\n", "\n")

const schemaFile = "schema.sql"

/**
 * Returns SQL that creates the schema of all migrations at once and records them. Undefined if the directory has no such
 * file.
 */
export const readSchema = (directory: string): SqlFile | undefined =>
  existsSync(path.join(directory, schemaFile)) ? { name: "schema", sql: readText(directory, schemaFile) } : undefined

const checksumOf = (text: string) => createHash("sha256").update(text).digest("hex")

const Version = Schema.parseJson(Schema.Struct({ version: Schema.Int }))

/** Reads their version from `functions.json`, which `npm run schema` writes. */
export const readFunctions = (directory: string): Effect.Effect<Functions, MigrationRefused> =>
  Effect.try({
    try: () => {
      const folder = path.join(directory, "functions")
      if (!existsSync(folder)) return noFunctions
      const names = readdirSync(folder).filter((file) => file.endsWith(".sql"))
      const files = names.toSorted().map((file) => {
        const sql = readText(folder, file)
        return { name: `functions/${path.basename(file, ".sql")}`, sql, checksum: checksumOf(sql) }
      })
      return { files, ...Schema.decodeUnknownSync(Version)(readText(directory, "functions.json")) }
    },
    catch: (error) => refusal(`The SQL functions cannot be read (${String(error)}).`)
  })

const parse = (directory: string, file: string): Effect.Effect<Migration, MigrationRefused> => {
  const number = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1]
  if (number === undefined) return refusal(`${file} in ${directory} is not named like 0001_name.sql.`)
  const sql = readText(directory, file)
  return Effect.succeed({ id: Number(number), name: path.basename(file, ".sql"), sql, checksum: checksumOf(sql) })
}

export const readMigrations = Effect.fn("Migrations.read")(function* (directory: string) {
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

/** Returns whether PostgreSQL refuses to run these statements in a transaction. */
export const isConcurrent = (sql: string) => /^(CREATE|DROP) INDEX CONCURRENTLY/m.test(sql)

export const statementsOf = (sql: string) => {
  let offset = 0
  return sql.split(/;$/m).flatMap((text) => {
    const statement = { text, offset }
    offset += text.length + 1
    return text.trim() === "" ? [] : [statement]
  })
}

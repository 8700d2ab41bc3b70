import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { Array as Arr, Data, Effect } from "effect"
import { pluralize } from "../domain/Plural.ts"
import { ownFile } from "../services/runtime/System.ts"

/** One line for the operator. */
export class MigrationRefused extends Data.TaggedError("MigrationRefused")<{ readonly message: string }> {}

export interface Migration {
  readonly id: number
  /** `0001_organizations` */
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

export type Applied = Omit<Migration, "sql">

const refusal = (message: string) => new MigrationRefused({ message })

export const ownDirectory = () => ownFile("migrations")

const parse = (directory: string, file: string): Effect.Effect<Migration, MigrationRefused> => {
  const number = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1]
  if (number === undefined) return refusal(`${file} in ${directory} is not named like 0001_name.sql.`)
  const sql = readFileSync(path.join(directory, file), "utf8").replaceAll("\r\n", "\n")
  const checksum = createHash("sha256").update(sql).digest("hex")
  return Effect.succeed({ id: Number(number), name: path.basename(file, ".sql"), sql, checksum })
}

export const read = Effect.fn("MigrationFiles.read")(function* (directory: string) {
  const files = yield* Effect.try({
    try: () => readdirSync(directory).filter((file) => file.endsWith(".sql")),
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
export const isConcurrent = (sql: string) => /^(CREATE|DROP) INDEX CONCURRENTLY/m.test(sql)

export const statementsOf = (sql: string) => {
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

export const describeFailure = ({ name, sql }: Migration, { message, offset, position }: Failure): string => {
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
export const describeUpgrade = (known: ReadonlyArray<Migration>, missing: MigrationIds): string | undefined => {
  const before = findPrevious(known, missing)
  return before && `Upgrading the database from ${numberOf(before)}: ${pluralize(missing.length, "migration")}`
}

/** Returns one line about `applied`, which are migrations of `known` in order. */
export const describeApplied = (known: ReadonlyArray<Migration>, applied: MigrationIds): string => {
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
export const findOutstanding = (known: ReadonlyArray<Migration>, applied: ReadonlyArray<Applied>) =>
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

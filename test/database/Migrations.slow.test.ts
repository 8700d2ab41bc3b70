import path from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Fiber, Layer, Logger, LogLevel, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { directoryWith } from "../harness/temporary.ts"
import { numberedFiles } from "./schema/Schema.ts"

const first = { "0001_first.sql": "CREATE TABLE first (id integer PRIMARY KEY);" }
const second = { "0002_second.sql": "INSERT INTO first VALUES (1); INSERT INTO first VALUES (2);" }

const recordedLog = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  return { lines, log: Logger.replace(Logger.defaultLogger, logger) }
}

/** One program's view of the database: its connections and its migration files. */
const program = Effect.fnUntraced(function* (url: string, files: Readonly<Record<string, string>>) {
  const directory = yield* directoryWith(files)
  const database = Database.layerUrl(Redacted.make(url), { queryTimeout: "1 second" })
  const context = yield* Layer.build(Layer.provideMerge(Migrations.layerFrom(directory), database))
  const migrations = Context.get(context, Migrations)
  const migrate = Effect.map(migrations.migrate, ({ names }) => names)
  return { ...migrations, migrate, migrateFully: migrations.migrate, sql: Context.get(context, SqlClient) }
})

const migrate = (url: string, files: Readonly<Record<string, string>>) =>
  Effect.flatMap(program(url, files), (each) => each.migrate)

const refusal = (url: string, files: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(migrate(url, files)), ({ message }) => message)

describe("Migrations", () => {
  it.scopedLive("applies every file of the package once, however many start at once", function* () {
    const url = yield* Postgres.emptyUrl
    const files = numberedFiles().map(([file]) => path.basename(file, ".sql"))
    const layer = Layer.provideMerge(Migrations.layer, Database.layerUrl(Redacted.make(url)))
    const start = Effect.flatMap(Migrations, (each) => each.migrate).pipe(Effect.provide(layer))
    const { lines, log } = recordedLog()
    const results = yield* Effect.replicateEffect(start, 6, { concurrency: "unbounded" }).pipe(Effect.provide(log))
    assert.deepStrictEqual(
      results.flatMap(({ names }) => names),
      files.toSorted()
    )
    const summaries = results.flatMap(({ summary }) => summary ?? [])
    assert.deepStrictEqual(summaries, [`Created the database: ${files.length} migrations`])
    assert.deepStrictEqual(lines, [])
  })

  it.scopedLive("knows what is pending, before and after", function* () {
    const { migrate, pending, sql } = yield* program(yield* Postgres.emptyUrl, { ...first, ...second })
    assert.deepStrictEqual(yield* pending, ["0001_first", "0002_second"])
    assert.deepStrictEqual(yield* migrate, ["0001_first", "0002_second"])
    assert.deepStrictEqual(yield* pending, [])
    assert.deepStrictEqual(yield* migrate, [])
    assert.deepStrictEqual(yield* sql`SELECT id FROM first ORDER BY id`, [{ id: 1 }, { id: 2 }])
  })

  it.scopedLive("applies only what is new", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, first)
    assert.deepStrictEqual(yield* migrate(url, { ...first, ...second }), ["0002_second"])
  })

  it.scopedLive("logs the start of an upgrade, and returns one line about what it applied", function* () {
    const url = yield* Postgres.emptyUrl
    const third = { "0003_third.sql": "SELECT 1;", "0004_fourth.sql": "SELECT 1;" }
    const { lines, log } = recordedLog()
    const summaryOf = (files: Readonly<Record<string, string>>) =>
      Effect.flatMap(program(url, files), ({ migrateFully }) =>
        Effect.map(Effect.provide(migrateFully, log), ({ summary }) => summary)
      )
    const created = yield* summaryOf(first)
    assert.strictEqual(created, "Created the database: 1 migration")
    assert.isUndefined(yield* summaryOf(first))
    const upgraded = yield* summaryOf({ ...first, ...second, ...third })
    assert.strictEqual(upgraded, "Upgraded the database from 0001 to 0004 (3 migrations)")
    assert.deepStrictEqual(lines, ["Upgrading the database from 0001: 3 migrations"])
  })

  it.scopedLive("logs the start of an upgrade before its first migration ends", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, first)
    const { lines, log } = recordedLog()
    const broken = { ...first, "0002_broken.sql": "SELECT 1 / 0;", "0003_third.sql": "SELECT 1;" }
    assert.include(yield* Effect.provide(refusal(url, broken), log), "0002_broken.sql failed")
    assert.deepStrictEqual(lines, ["Upgrading the database from 0001: 2 migrations"])
  })

  it.scopedLive("logs which migrations stay applied after a failure", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, first)
    const { lines, log } = recordedLog()
    const third = { "0003_third.sql": "SELECT 1;", "0004_broken.sql": "SELECT 1 / 0;", "0005_fifth.sql": "SELECT 1;" }
    const files = { ...first, ...second, ...third }
    assert.include(yield* Effect.provide(refusal(url, files), log), "0004_broken.sql failed and was rolled back")
    assert.deepStrictEqual(lines, [
      "Upgrading the database from 0001: 4 migrations",
      "The migrations stopped after 2 of 4. Applied: 0002_second, 0003_third"
    ])
    const { pending } = yield* program(url, files)
    assert.deepStrictEqual(yield* pending, ["0004_broken", "0005_fifth"])
  })

  it.scopedLive("names each migration at the debug level", function* () {
    const { lines, log } = recordedLog()
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, { ...first, ...second }).pipe(Effect.provide(log), Logger.withMinimumLogLevel(LogLevel.Debug))
    for (const name of ["0001_first", "0002_second"])
      assert.isTrue(
        lines.some((line) => line.includes(name)),
        name
      )
  })

  it.scopedLive("builds an index beside writes, and again where it was left half done", function* () {
    const url = yield* Postgres.emptyUrl
    const index = `-- why
DROP INDEX CONCURRENTLY IF EXISTS first_id;
CREATE UNIQUE INDEX first_id ON first (id);

DROP INDEX CONCURRENTLY IF EXISTS first_ids;
CREATE INDEX CONCURRENTLY first_ids ON first ((1 / id));
`
    const files = { ...first, ...second, "0003_index.sql": index }
    const { migrate: migrateFirst, sql } = yield* program(url, first)
    yield* migrateFirst
    yield* sql`INSERT INTO first VALUES (0)`
    const message = yield* refusal(url, files)
    assert.include(message, "0003_index.sql failed: division by zero. It runs outside a transaction")
    assert.notInclude(message, "rolled back")
    const misspelt = { ...files, "0003_index.sql": index.replace("1 / id", "1 / di") }
    assert.include(yield* refusal(url, misspelt), '0003_index.sql:6 failed: column "di" does not exist')
    yield* sql`DELETE FROM first WHERE id = 0`
    assert.deepStrictEqual(yield* migrate(url, files), ["0003_index"])
    const indexes = yield* sql`
        SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index
        WHERE indrelid = 'first'::regclass ORDER BY 1`
    assert.deepStrictEqual(
      indexes,
      ["first_id", "first_ids", "first_pkey"].map((name) => ({ name, valid: true }))
    )
  })

  it.scopedLive("is not held to the query timeout", function* () {
    const url = yield* Postgres.emptyUrl
    assert.deepStrictEqual(yield* migrate(url, { "0001_slow.sql": "SELECT pg_sleep(1.5);" }), ["0001_slow"])
  })

  it.scopedLive("leaves nothing of a file that fails, and says where it failed", function* () {
    const url = yield* Postgres.emptyUrl
    const broken = { "0002_broken.sql": "INSERT INTO first VALUES (7);\n\nINSERT INTO absent VALUES (1);" }
    assert.strictEqual(
      yield* refusal(url, { ...first, ...broken }),
      '0002_broken.sql:3 failed and was rolled back: relation "absent" does not exist'
    )
    const { pending, sql } = yield* program(url, { ...first, ...second })
    assert.deepStrictEqual(yield* sql`SELECT id FROM first`, [])
    assert.deepStrictEqual(yield* pending, ["0002_second"])
  })

  it.scopedLive("applies a file again that met a deadlock, a few times", function* () {
    const url = yield* Postgres.emptyUrl
    // A sequence goes on through what is rolled back.
    const deadlockUntil = (last: number) => `
      DO $$ BEGIN
        IF nextval('tries') < ${last} THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
      END $$;
      CREATE TABLE made_once ();`
    const files = { "0001_tries.sql": "CREATE SEQUENCE tries;", "0002_deadlock.sql": deadlockUntil(3) }
    assert.deepStrictEqual(yield* migrate(url, files), ["0001_tries", "0002_deadlock"])
    assert.strictEqual(
      yield* refusal(url, { ...files, "0003_deadlocks.sql": deadlockUntil(1000) }),
      "0003_deadlocks.sql failed and was rolled back: deadlock detected"
    )
  })

  it.scopedLive("refuses a file that was changed after it was applied", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, first)
    assert.strictEqual(
      yield* refusal(url, { "0001_first.sql": "CREATE TABLE other ();", ...second }),
      "0001_first.sql was changed after it was applied. Restore it, and put the change into a new migration."
    )
    assert.deepStrictEqual(yield* migrate(url, { "0001_first.sql": first["0001_first.sql"] }), [])
  })

  it.scopedLive("refuses a database that is newer than the program, which yet counts as ready there", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrate(url, { ...first, ...second })
    assert.strictEqual(
      yield* refusal(url, first),
      "The database is newer than this program (it has migration 0002_second). Run the newer program."
    )
    const { pending } = yield* program(url, first)
    assert.deepStrictEqual(yield* pending, [])
  })

  it.scopedLive("refuses a number below one already applied", function* () {
    const url = yield* Postgres.emptyUrl
    const third = { "0003_third.sql": "SELECT 1;" }
    yield* migrate(url, { ...first, ...third })
    assert.strictEqual(
      yield* refusal(url, { ...first, ...second, ...third }),
      "0002_second.sql has a lower number than an applied migration. Renumber it."
    )
  })

  it.scopedLive("refuses files that are misnamed or share a number", function* () {
    const url = yield* Postgres.emptyUrl
    assert.include(yield* refusal(url, { "first.sql": "" }), "first.sql in ")
    assert.strictEqual(
      yield* refusal(url, { ...first, "0001_again.sql": "" }),
      "0001_again.sql and 0001_first.sql have the same number."
    )
  })
})

const five = "CREATE OR REPLACE FUNCTION number() RETURNS int LANGUAGE sql AS 'SELECT 5';"
const six = five.replace("5", "6")
const greeting =
  "CREATE OR REPLACE FUNCTION greeting() RETURNS text LANGUAGE sql AS $$ SELECT 'number ' || number() $$;"

const withFunctions = (version: number, files: Readonly<Record<string, string>>) => ({
  ...first,
  "functions.json": JSON.stringify({ version, checksum: "" }),
  ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`functions/${name}.sql`, text]))
})

const migrateFully = (url: string, files: Readonly<Record<string, string>>) =>
  Effect.flatMap(program(url, files), (each) => each.migrateFully)

/** What the database's function returns. */
const numberOf = (url: string) =>
  Effect.flatMap(program(url, first), ({ sql }) =>
    Effect.map(sql`SELECT number() AS number`, ([row]) => row?.["number"])
  )

describe("the files of functions", () => {
  it.scopedLive("are applied after the migrations, whichever they call, and again when they change", function* () {
    const url = yield* Postgres.emptyUrl
    const created = yield* migrateFully(url, withFunctions(1, { a: greeting, b: five }))
    assert.deepStrictEqual(created, {
      names: ["0001_first"],
      functions: ["functions/a", "functions/b"],
      summary: "Created the database: 1 migration"
    })
    assert.strictEqual(yield* numberOf(url), 5)
    const changed = withFunctions(2, { a: greeting, b: six })
    const { outstanding, pending } = yield* program(url, changed)
    assert.deepStrictEqual(yield* outstanding, ["functions/b"])
    assert.deepStrictEqual(yield* pending, [], "a program runs on other functions too")
    const { functions, summary } = yield* migrateFully(url, changed)
    assert.deepStrictEqual(functions, ["functions/b"])
    assert.strictEqual(summary, "Replaced SQL functions of the database: 1 file")
    assert.strictEqual(yield* numberOf(url), 6)
    assert.isUndefined((yield* migrateFully(url, changed)).summary)
  })

  it.scopedLive("of a newer program stay when an older one starts", function* () {
    const url = yield* Postgres.emptyUrl
    const older = withFunctions(1, { a: greeting, b: five })
    const newer = withFunctions(2, { a: greeting, b: six })
    yield* migrateFully(url, newer)
    for (const files of [older, newer, older]) {
      assert.deepStrictEqual((yield* migrateFully(url, files)).functions, [])
      assert.deepStrictEqual(yield* Effect.flatMap(program(url, files), (each) => each.outstanding), [])
      assert.strictEqual(yield* numberOf(url), 6)
    }
    // Without a new version the last start counts, as while somebody edits a file.
    yield* migrateFully(url, withFunctions(2, { a: greeting, b: five }))
    assert.strictEqual(yield* numberOf(url), 5)
  })

  it.scopedLive("stay when a program refuses the database, which has newer migrations", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrateFully(url, { ...withFunctions(1, { b: six }), ...second })
    assert.include(yield* refusal(url, withFunctions(1, { b: five })), "The database is newer than this program")
    assert.strictEqual(yield* numberOf(url), 6)
  })

  it.scopedLive("are rolled back with the last migration if one fails, and it is named", function* () {
    const url = yield* Postgres.emptyUrl
    yield* migrateFully(url, withFunctions(1, { b: five }))
    const broken = { ...withFunctions(2, { a: six, b: "\nCREATE OR REPLACE FUNCTION;" }), ...second }
    assert.strictEqual(
      yield* refusal(url, broken),
      'functions/b.sql:2 failed and was rolled back: syntax error at or near ";"'
    )
    assert.strictEqual(yield* numberOf(url), 5)
    const { outstanding } = yield* program(url, broken)
    assert.deepStrictEqual(yield* outstanding, ["0002_second", "functions/a", "functions/b"])
  })

  it.scopedLive("wait for locks of their tables a second at a time, with the migration", function* () {
    const url = yield* Postgres.emptyUrl
    const { sql } = yield* program(url, first)
    yield* migrateFully(url, first)
    const trigger = `CREATE OR REPLACE FUNCTION ignored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE OR REPLACE TRIGGER first_ignored BEFORE INSERT ON first FOR EACH ROW EXECUTE FUNCTION ignored();`
    const reading = Effect.zipRight(sql`INSERT INTO first VALUES (9)`, Effect.sleep("1.5 seconds"))
    const writer = yield* Effect.fork(sql.withTransaction(reading))
    yield* Effect.sleep("100 millis")
    const { functions, names } = yield* migrateFully(url, { ...withFunctions(1, { trigger }), ...second })
    yield* Fiber.join(writer)
    assert.deepStrictEqual([names, functions], [["0002_second"], ["functions/trigger"]])
    assert.deepStrictEqual(yield* sql`SELECT count(*)::int AS rows FROM first`, [{ rows: 3 }])
  })
})

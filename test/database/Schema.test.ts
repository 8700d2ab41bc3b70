import { readFileSync } from "node:fs"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import type * as Pg from "pg"
import { Database } from "../../src/database/Database.ts"
import { query } from "../../src/database/DatabaseConnections.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { oldestTested } from "../../src/database/Requirements.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { directoryWith } from "../harness/temporary.ts"
import * as InstalledPostgres from "./InstalledPostgres.ts"
import { readCatalog, readRows } from "./schema/Catalog.ts"
import { describeFunctions, describeSchema, functionFiles, numberedFiles } from "./schema/Schema.ts"
import { attributesOf, usageTotals } from "./schema/UsageTotals.ts"

const checkedIn = readFileSync("migrations/schema.sql", "utf8")
const version = readFileSync("migrations/functions.json", "utf8")
const functions = { ...Object.fromEntries(functionFiles()), "functions.json": version }
const numbered = directoryWith({ ...Object.fromEntries(numberedFiles()), ...functions })
const names = numberedFiles().map(([file]) => file.replace(".sql", ""))

const migrated = Effect.fnUntraced(function* (url: string, directory?: string) {
  const migrations = directory === undefined ? Migrations.layer : Migrations.layerFrom(directory)
  const context = yield* Layer.build(Layer.provideMerge(migrations, Database.layerUrl(Redacted.make(url))))
  const connection = yield* Context.get(context, Database).connect
  return { ...Context.get(context, Migrations), connection, ...(yield* Context.get(context, Migrations).migrate) }
})

/** The URL of a database without our tables, changed by `statement`. */
const preparedUrl = Effect.fnUntraced(function* (statement: string) {
  const url = yield* Postgres.emptyUrl
  const connection = Effect.flatMap(Database, ({ connect }) => connect)
  yield* Effect.flatMap(connection, (client) => query(client, statement)).pipe(
    Effect.scoped,
    Effect.provide(Database.layerUrl(Redacted.make(url)))
  )
  return url
})

/** Random texts, and the times at which the database was made. The month of statements is the same for both. */
const varies = /^(?:\d{4}-\d\d-\d\dT(?!00:00:00).*Z|[\da-f]{8}-[\da-f-]{27,})$/

const comparable = (connection: Pg.Client) =>
  Effect.map(readRows(connection), (rows) =>
    JSON.stringify(rows, (_, value: unknown) => (typeof value === "string" && varies.test(value) ? "…" : value))
  )

const assertSame = Effect.fnUntraced(function* (emptyUrl: Effect.Effect<string, unknown, Scope.Scope>) {
  const upgraded = yield* migrated(yield* emptyUrl, yield* numbered)
  const created = yield* migrated(yield* emptyUrl)
  assert.deepStrictEqual(created.names, names)
  assert.strictEqual(created.summary, upgraded.summary)
  assert.deepStrictEqual(created.functions, upgraded.functions)
  assert.deepStrictEqual(yield* readCatalog(created.connection), yield* readCatalog(upgraded.connection))
  assert.strictEqual(yield* comparable(created.connection), yield* comparable(upgraded.connection))
  assert.deepStrictEqual((yield* created.migrate).names, [])
  assert.deepStrictEqual(yield* created.outstanding, [])
  return [created, upgraded] as const
})

const isMadeAtOnce = (connection: Pg.Client) =>
  Effect.map(
    query(connection, "SELECT count(DISTINCT applied_at)::int AS transactions FROM schema_migrations"),
    ({ rows }) => rows[0]?.transactions === 1
  )

const { TEST_DATABASE_URL } = process.env

describe("migrations/schema.sql", () => {
  it.scopedLive("makes the same database as all migrations, with secrets of its own", function* () {
    const databases = yield* assertSame(Postgres.emptyUrl)
    const secrets = yield* Effect.forEach(databases, ({ connection }) =>
      Effect.map(readRows(connection), ({ number_seal }) => number_seal?.[0]?.["secret"])
    )
    assert.isString(secrets[0])
    assert.notStrictEqual(secrets[0], secrets[1])
    // Other versions of PostgreSQL print views in another way.
    if (TEST_DATABASE_URL !== undefined) return
    for (const { connection } of databases) {
      const text = yield* describeSchema(connection, checkedIn)
      assert.strictEqual(text, checkedIn, "migrations/schema.sql is not up to date: npm run schema")
    }
  })

  it.skipIf(!InstalledPostgres.isInstalled(oldestTested))("does so on the oldest PostgreSQL that is tested", () =>
    Effect.runPromise(Effect.scoped(Effect.asVoid(assertSame(InstalledPostgres.emptyUrl(oldestTested)))))
  )

  it.scopedLive("makes the tables in the first schema of the search path", function* () {
    const url = yield* preparedUrl(`CREATE SCHEMA "Own"; CREATE TABLE organizations (); DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = "Own", public', current_database()); END $$`)
    const { connection } = yield* migrated(url)
    const select = "SELECT relnamespace::regnamespace::text AS schema FROM pg_class WHERE relname = 'api_keys'"
    assert.deepStrictEqual((yield* query(connection, select)).rows, [{ schema: '"Own"' }])
    assert.isTrue(yield* isMadeAtOnce(connection))
  })

  it.scopedLive("is not used in a database that has other tables or functions", function* () {
    for (const statement of ["CREATE TABLE theirs ()", "CREATE FUNCTION theirs() RETURNS int RETURN 1"]) {
      const { connection, names: applied } = yield* migrated(yield* preparedUrl(statement))
      assert.deepStrictEqual(applied, names)
      assert.isFalse(yield* isMadeAtOnce(connection), statement)
    }
    const error = yield* Effect.flip(migrated(yield* preparedUrl("CREATE TABLE organizations ()")))
    assert.strictEqual(
      error.message,
      '0001_organizations.sql failed and was rolled back: relation "organizations" already exists'
    )
  })

  it.scopedLive("is followed by the migrations that are newer than it", function* () {
    const newer = { "9998_newer.sql": "CREATE TABLE newer ();", "9999_newest.sql": "DROP TABLE newer;" }
    const files = { ...Object.fromEntries(numberedFiles()), ...newer, "schema.sql": checkedIn }
    const created = yield* migrated(yield* Postgres.emptyUrl, yield* directoryWith(files))
    assert.deepStrictEqual(created.names, [...names, "9998_newer", "9999_newest"])
    assert.strictEqual(created.summary, `Created the database: ${names.length + 2} migrations`)
  })

  it.scopedLive("leaves nothing behind if it fails", function* () {
    const files = { ...Object.fromEntries(numberedFiles()), "schema.sql": `${checkedIn}\nSELECT 1 / 0;` }
    const url = yield* Postgres.emptyUrl
    const error = yield* Effect.flip(migrated(url, yield* directoryWith(files)))
    assert.strictEqual(error.message, "schema.sql failed and was rolled back: division by zero")
    assert.deepStrictEqual((yield* migrated(url)).names, names)
  })

  it.scopedLive("leaves no table without its functions and triggers", function* () {
    const failing = { ...functions, "schema.sql": checkedIn, "functions/zz.sql": "SELECT 1 / 0;" }
    const url = yield* Postgres.emptyUrl
    const directory = yield* directoryWith({ ...Object.fromEntries(numberedFiles()), ...failing })
    const error = yield* Effect.flip(migrated(url, directory))
    assert.strictEqual(error.message, "functions/zz.sql failed and was rolled back: division by zero")
    assert.deepStrictEqual((yield* migrated(url)).names, names)
  })
})

describe("migrations/functions", () => {
  it("has a version that rose with the last change of a file", () => {
    assert.strictEqual(
      version,
      describeFunctions(version),
      "migrations/functions.json is not up to date: npm run schema"
    )
  })

  it("sums each counted column of the log", () => {
    const text = readFileSync("migrations/functions/usage_totals.sql", "utf8")
    assert.strictEqual(text, usageTotals(attributesOf(checkedIn)), "usage_totals.sql is not up to date: npm run schema")
  })

  it("defines each function and trigger once, and no migration after 0060 defines any", () => {
    const defined = /^CREATE (?:OR REPLACE )?(?:FUNCTION [^(]+\([^)]*\)|TRIGGER \w+)/gm
    const definitions = functionFiles().flatMap(([, text]) => text.match(defined) ?? [])
    assert.strictEqual(new Set(definitions).size, definitions.length)
    assert.isAbove(definitions.length, 50)
    for (const [file, text] of numberedFiles()) if (file > "0061") assert.isNull(text.match(defined), file)
  })
})

import { readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted } from "effect"
import * as Pg from "pg"
import { Database } from "../../src/database/Database.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { OwnConnection, type Row } from "../../src/services/sql/SqlStatement.ts"
import { Cli } from "../cli/Cli.ts"
import { emptyUrl, freshUrl } from "../harness/database/Postgres.ts"
import { assert, describe, it, withLayer } from "../harness/It.ts"
import { directoryWith, temporaryDirectory } from "../harness/temporary.ts"

/** As an operator, a provider of databases, or another program may have set them. */
const ofDatabase = {
  DateStyle: "German, DMY",
  IntervalStyle: "sql_standard",
  bytea_output: "escape",
  extra_float_digits: "-15",
  standard_conforming_strings: "off",
  array_nulls: "off",
  transform_null_equals: "on",
  default_transaction_isolation: "serializable",
  idle_session_timeout: "1s"
}
const ofRole = {
  TimeZone: "Asia/Kathmandu",
  DateStyle: "SQL, DMY",
  statement_timeout: "250ms",
  lock_timeout: "1ms",
  idle_in_transaction_session_timeout: "1ms",
  transaction_timeout: "250ms"
}

const withClient = <A>(url: string, use: (client: Pg.Client) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const client = new Pg.Client(url)
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => use(client)),
    (client) => Effect.promise(() => client.end())
  )

const spoil = (url: string) =>
  withClient(url, async (client) => {
    const name = new URL(url).pathname.slice(1)
    const { rows } = await client.query<{ name: string }>("SELECT name FROM pg_settings")
    const known = new Set(rows.map((row) => row.name))
    for (const [where, settings] of [
      [`DATABASE ${name}`, ofDatabase],
      [`ROLE CURRENT_USER IN DATABASE ${name}`, ofRole]
    ] as const) {
      for (const [setting, value] of Object.entries(settings)) {
        if (known.has(setting)) await client.query(`ALTER ${where} SET ${setting} = '${value}'`)
      }
    }
  })

const spoilt = Effect.tap(freshUrl, spoil)
const spoiltEmpty = Effect.tap(emptyUrl, spoil)

const databaseOf = (url: string) => Layer.orDie(Database.layerUrl(Redacted.make(url)))

const settings = `SELECT name, current_setting(name) AS value FROM unnest(ARRAY[
  'DateStyle', 'IntervalStyle', 'TimeZone', 'bytea_output', 'extra_float_digits', 'standard_conforming_strings',
  'array_nulls', 'transform_null_equals', 'transaction_isolation', 'lock_timeout', 'idle_session_timeout',
  'statement_timeout', 'idle_in_transaction_session_timeout']) AS name`

const expected = {
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  standard_conforming_strings: "on",
  array_nulls: "on",
  transform_null_equals: "off",
  transaction_isolation: "read committed",
  lock_timeout: "0",
  idle_session_timeout: "0"
}

const toRecord = (rows: ReadonlyArray<Row>) => Object.fromEntries(rows.map(({ name, value }) => [String(name), value]))

/** Longer than the timeouts of the role. */
const entries = (count: number) => `
  INSERT INTO organizations (id, name, balance) VALUES ('org_1', 'acme', ${count});
  INSERT INTO ledger_entries (org_id, kind, amount, note)
    SELECT 'org_1', 'adjustment', 1, repeat(md5(n::text), 16) FROM generate_series(1, ${count}) AS n`

const fill = (url: string, count: number) => withClient(url, (client) => client.query(entries(count)))

const checksums = "SELECT count(*)::int AS n, md5(string_agg(e::text, '' ORDER BY id)) AS sum FROM ledger_entries AS e"

const contents = (url: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(checksums)).pipe(Effect.provide(databaseOf(url)))

describe("settings of the role, the database, the server and DATABASE_URL", () => {
  it.scopedLive("do not affect our connections", function* () {
    const url = yield* spoilt
    yield* Effect.gen(function* () {
      const pooled = toRecord(yield* (yield* SqlClient.SqlClient).unsafe<Row>(settings))
      assert.deepInclude(pooled, { ...expected, statement_timeout: "13500ms" })
      const own = yield* Effect.flatMap(OwnConnection, ({ connect }) => connect)
      assert.deepInclude(toRecord(yield* own.unsafe<Row>(settings)), { ...expected, statement_timeout: "54min" })
      const single = yield* Effect.flatMap(Database, ({ connect }) => connect)
      const { rows } = yield* Effect.promise(() => single.query(settings))
      assert.deepInclude(toRecord(rows), {
        ...expected,
        statement_timeout: "0",
        idle_in_transaction_session_timeout: "0"
      })
    }).pipe(Effect.scoped, Effect.provide(databaseOf(url)))
  })

  it.scopedLive("do not cancel a migration that takes long or waits", function* () {
    const url = `${yield* spoiltEmpty}&query_timeout=300&statement_timeout=250`
    const directory = yield* directoryWith({
      "0001_slow.sql": "SELECT pg_sleep(0.7); CREATE TABLE slow (at timestamptz DEFAULT '2026-02-01 10:00');",
      "0002_concurrent.sql": "CREATE INDEX CONCURRENTLY slow_at ON slow (at);"
    })
    const migrations = Layer.provide(Migrations.layerFrom(directory), databaseOf(url))
    const { names } = yield* Effect.provide(
      Effect.flatMap(Migrations, ({ migrate }) => migrate),
      migrations
    )
    assert.deepStrictEqual(names, ["0001_slow", "0002_concurrent"])
  })
})

withLayer(Cli.layer)("with unusual settings of the role", (it) => {
  it.scoped("commands show the same times", function* () {
    const url = yield* freshUrl
    yield* withClient(url, (client) =>
      client.query(`
        INSERT INTO organizations (id, name, balance, created_at) VALUES ('org_1', 'acme', 5, '2026-01-02T03:04:05Z');
        INSERT INTO ledger_entries (org_id, kind, amount, at) VALUES ('org_1', 'adjustment', 5, '2026-01-31T23:30:00Z')`)
    )
    const { run } = yield* Cli
    const shown = Effect.forEach(
      [
        ["orgs", "show", "acme"],
        ["ledger", "show", "acme"],
        ["statement", "acme", "--month", "2026-01"]
      ],
      (command) => run([...command, "--json"], { DATABASE_URL: url })
    )
    const before = yield* shown
    assert.include(before[1]?.stdout, String(Date.parse("2026-01-31T23:30:00Z") / 1000))
    yield* spoil(url)
    assert.deepStrictEqual(yield* shown, before)
    const { code, stderr } = yield* run(["orgs", "create", "second", "--credits", "5"], { DATABASE_URL: url })
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
  })

  it.scoped("a backup and a restore are not cancelled, and restore the same rows", function* () {
    const url = yield* freshUrl
    yield* fill(url, 60_000)
    yield* spoil(url)
    const { run } = yield* Cli
    const file = path.join(yield* temporaryDirectory, "copy.backup.gz")
    const made = yield* run(["backup", file, "--json"], { DATABASE_URL: url })
    assert.strictEqual(made.code, 0, made.stderr)
    assert.match(gunzipSync(readFileSync(file)).toString(), /\n1\torg_1\t20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+00\t/)

    const target = yield* spoiltEmpty
    const restored = yield* run(["restore", file, "--json"], { DATABASE_URL: target })
    assert.strictEqual(restored.code, 0, restored.stderr)
    assert.deepStrictEqual(yield* contents(target), yield* contents(url))
  })
})

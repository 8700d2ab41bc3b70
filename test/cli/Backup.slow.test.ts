import { createHash } from "node:crypto"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../../src/database/Database.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { functionFiles } from "../database/schema/Schema.ts"
import { eventually } from "../harness/database/Money.ts"
import { emptyUrl } from "../harness/database/Postgres.ts"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { Cli, failure, json } from "./Cli.ts"

const databaseOf = (url: string) => Layer.orDie(Database.layerUrl(Redacted.make(url)))
const suite = Layer.provideMerge(Layer.unwrapEffect(Effect.map(Cli, ({ url }) => databaseOf(url))), Cli.layer)

const chat = (base: string, key: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gemini-3.6-flash", messages: [{ role: "user", content: "hello" }] })
    })
    await response.arrayBuffer()
    return response.status
  })

const serve = (url: string) => start({ env: { DATABASE_URL: url, SANDBOX: "true" } })

const restored = Effect.fnUntraced(function* (file: string, url: string) {
  const { run } = yield* Cli
  return yield* run(["restore", file, "--json"], { DATABASE_URL: url })
})

const End = Schema.Struct({ rows: Schema.Record({ key: Schema.String, value: Schema.Number }) })

/** The database has each file of functions, with the triggers of the ledger. */
const assertFunctions = (url: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const applied = yield* sql<{ name: string }>`SELECT name FROM schema_functions ORDER BY name`
    assert.deepStrictEqual(
      applied.map(({ name }) => `${name}.sql`),
      functionFiles().map(([name]) => name)
    )
    const triggers = yield* sql`SELECT FROM pg_trigger WHERE tgname = 'ledger_entries_append_only'`
    assert.lengthOf(triggers, 1)
  }).pipe(Effect.provide(databaseOf(url)))

const countOf = (url: string, table: "organizations" | "ledger_entries") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql<{ n: number }>`SELECT count(*)::int AS n FROM ${sql(table)}`).pipe(
    Effect.map(([row]) => row?.n),
    Effect.provide(databaseOf(url))
  )

/** A file in a directory of its own, with what the suite's database has. */
const backedUp = Effect.gen(function* () {
  const file = path.join(yield* temporaryDirectory, "copy.backup.gz")
  const report = yield* json("backup", file)
  return { file, report }
})

withLayer(suite)("gateway backup and restore", (it) => {
  it.scoped("bring back what was there at one moment while customers called, and it serves again", function* () {
    const { id: org } = yield* json("orgs", "create", "acme", "--credits", "25")
    const { key } = yield* json("keys", "create", "--org", "acme")
    const served = yield* serve((yield* Cli).url)
    yield* Effect.repeat(chat(served.url, String(key)), { times: 20 })
    const calls = yield* chat(served.url, String(key)).pipe(Effect.forever, Effect.forkScoped)
    const { file, report } = yield* backedUp
    assert.strictEqual(calls.unsafePoll(), null)
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    assert.strictEqual(report["bytes"], statSync(file).size)
    assert.notInclude(gunzipSync(readFileSync(file)).toString(), String(key))

    const url = yield* emptyUrl
    const { code, stderr, stdout } = yield* restored(file, url)
    assert.strictEqual(code, 0, stderr)
    assert.deepInclude(JSON.parse(stdout), { rows: report["rows"], tables: report["tables"] })
    const again = yield* serve(url)
    assert.strictEqual(yield* chat(again.url, String(key)), 200)
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [last] = yield* sql`SELECT org_id, kind FROM ledger_entries ORDER BY id DESC LIMIT 1`
      assert.deepStrictEqual(last, { orgId: org, kind: "charge" })
      const triggers = yield* sql`SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'`
      assert.deepStrictEqual(triggers, [])
    }).pipe(Effect.provide(databaseOf(url)))
    const { run } = yield* Cli
    assert.strictEqual((yield* run(["ledger", "verify"], { DATABASE_URL: url })).code, 0)
  })

  it.scoped("refuse a file that exists, and a database that is not empty", function* () {
    const { url } = yield* Cli
    const { file } = yield* backedUp
    const before = readFileSync(file)
    assert.include(yield* failure(["backup", file]), `${file} already exists. Choose another name.`)
    assert.deepStrictEqual(readFileSync(file), before)
    const refusal = yield* failure(["restore", file], { DATABASE_URL: url })
    assert.strictEqual(refusal, `${file} was not restored: the database is not empty, or a gateway uses it.`)
    assert.include(yield* failure(["restore", `${file}.none`], { DATABASE_URL: url }), "ENOENT")
  })

  it.scoped("leave an empty database as it was when the file is cut, changed, or of another program", function* () {
    yield* json("orgs", "create", "second", "--credits", "5")
    const { file } = yield* backedUp
    const compressed = readFileSync(file)
    const plain = gunzipSync(compressed).toString()
    const lines = plain.split("\n")
    const without = lines.filter((line) => !line.includes("\tsecond\t")).join("\n")
    const wrong = [
      [compressed.subarray(0, compressed.length / 2), "is not a complete backup"],
      [compressed.subarray(0, 5), "is not a complete backup"],
      [gzipSync(plain.slice(0, plain.length / 2)), "it ends too early"],
      [gzipSync(plain.slice(0, plain.lastIndexOf("\n", plain.length - 2) + 1)), "it ends too early"],
      [gzipSync(plain.replace("\tsecond\t", "\tsec0nd\t")), "its checksum does not match"],
      [gzipSync(without), "is not a complete backup: its checksum does not match"],
      [gzipSync(`${plain}more`), "data follows its last line"],
      [gzipSync(plain.replace('"version":1', '"version":2')), "a line has an invalid format"],
      [gzipSync(plain.replace('{"id":1,', '{"id":9999,')), "The database is newer than this program"],
      [Buffer.from("not compressed"), "is not a complete backup"]
    ] as const
    const url = yield* emptyUrl
    for (const [content, message] of wrong) {
      const damaged = `${file}.damaged`
      writeFileSync(damaged, content)
      const { code, stderr } = yield* restored(damaged, url)
      assert.strictEqual(code, 1)
      assert.include(stderr, message)
    }
    assert.strictEqual((yield* restored(file, url)).code, 0)
    const copy = `${file}.copy`
    const { run } = yield* Cli
    assert.strictEqual((yield* run(["backup", copy], { DATABASE_URL: url })).code, 0)
    const copied = gunzipSync(readFileSync(copy)).toString().split("\n")
    assert.deepStrictEqual(copied.slice(1, -2), lines.slice(1, -2))
  })

  it.scoped("leave nothing half done when they are killed", function* () {
    const sql = yield* SqlClient.SqlClient
    const { start: startCommand, url } = yield* Cli
    const { id: org } = yield* json("orgs", "create", "large")
    yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, note)
        SELECT ${String(org)}, 'adjustment', 0, repeat(md5(n::text), 32) FROM generate_series(1, 30000) AS n`
    const cut = path.join(yield* temporaryDirectory, "cut.backup.gz")
    const isRunning = (database: string, statement: string) =>
      eventually(
        sql`SELECT FROM pg_stat_activity WHERE datname = ${database} AND state = 'active' AND query LIKE ${statement}`,
        (rows) => rows.length > 0
      )
    const nameOf = (address: string) => new URL(address).pathname.slice(1)
    const writing = yield* startCommand(["backup", cut])
    yield* isRunning(nameOf(url), 'COPY "ledger_entries"%TO STDOUT')
    yield* writing.kill
    yield* writing.finished
    assert.isFalse(existsSync(cut))

    const { file } = yield* backedUp
    const target = yield* emptyUrl
    const filling = yield* startCommand(["restore", file], { DATABASE_URL: target })
    yield* isRunning(nameOf(target), 'COPY "ledger_entries"%FROM STDIN')
    yield* filling.kill
    yield* filling.finished
    yield* eventually(countOf(target, "ledger_entries"), (count) => count === 0)
    const again = yield* restored(file, target)
    assert.strictEqual(again.code, 0, again.stderr)
    assert.isAbove((yield* countOf(target, "ledger_entries")) ?? 0, 30_000)
  })

  it.scoped("bring a backup of an older version up to date", function* () {
    const sql = yield* SqlClient.SqlClient
    const records = yield* sql<{ id: number; name: string; checksum: string }>`
        SELECT id, name, checksum FROM schema_migrations ORDER BY id`
    const old = yield* emptyUrl
    yield* Effect.gen(function* () {
      const { migrateLike } = yield* Migrations
      yield* migrateLike(records.slice(0, 11))
      const own = yield* SqlClient.SqlClient
      yield* own`INSERT INTO organizations (id, name) VALUES ('org_old', 'old')`
    }).pipe(Effect.provide(Layer.provideMerge(Migrations.layer, databaseOf(old))))
    const { run } = yield* Cli
    const file = path.join(yield* temporaryDirectory, "old.backup.gz")
    assert.strictEqual((yield* run(["backup", file], { DATABASE_URL: old })).code, 0)
    const url = yield* emptyUrl
    const { code, stderr } = yield* restored(file, url)
    assert.strictEqual(code, 0, stderr)
    const shown = yield* run(["orgs", "show", "old", "--json"], { DATABASE_URL: url })
    assert.include(shown.stdout, "org_old")
    yield* assertFunctions(url)
  })

  it.scoped(
    "apply the functions although a program that knew no files of functions copied their records",
    function* () {
      const { file } = yield* backedUp
      const [header = "", ...lines] = gunzipSync(readFileSync(file)).toString().trimEnd().split("\n")
      const end: unknown = JSON.parse(lines.pop() ?? "")
      const records = functionFiles().map(([name, text]) => {
        const checksum = createHash("sha256").update(text).digest("hex")
        return `${name.replace(".sql", "")}\t${checksum}\t9`
      })
      const table = JSON.stringify({ table: "schema_functions", columns: ["name", "checksum", "version"] })
      const content = `${[header, table, ...records, "\\.", ...lines].join("\n")}\n`
      const sha256 = createHash("sha256").update(content).digest("hex")
      const { rows } = Schema.decodeUnknownSync(End)(end)
      const last = JSON.stringify({ rows: { ...rows, schema_functions: records.length }, sha256 })
      const copied = path.join(path.dirname(file), "copied.backup.gz")
      writeFileSync(copied, gzipSync(`${content}${last}\n`))
      const url = yield* emptyUrl
      const { code, stderr } = yield* restored(copied, url)
      assert.strictEqual(code, 0, stderr)
      yield* assertFunctions(url)
    }
  )
})

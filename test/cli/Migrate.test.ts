import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { emptyUrl } from "../harness/database/Postgres.ts"
import { assert, withLayer } from "../harness/It.ts"
import { directoryWith } from "../harness/temporary.ts"
import { Cli } from "./Cli.ts"

const files = readdirSync("migrations").toSorted()
const old = files.filter((file) => file < "0045")
const outstanding = files.slice(old.length)
const last = outstanding.at(-1)?.slice(0, 4)

/** A database as version 0044 of the schema left it, changed by `statement`. */
const oldDatabase = Effect.fnUntraced(function* (statement = "SELECT 1") {
  const url = yield* emptyUrl
  const texts = old.map((file) => [file, readFileSync(path.join("migrations", file), "utf8")])
  const directory = yield* directoryWith(Object.fromEntries(texts))
  yield* Effect.gen(function* () {
    const { migrate } = yield* Migrations
    yield* migrate
    yield* (yield* SqlClient).unsafe(statement)
  }).pipe(
    Effect.provide(Layer.provideMerge(Migrations.layerFrom(directory), Database.layerUrl(Redacted.make(url), {})))
  )
  return url
})

const started = `gateway: info: Upgrading the database from 0044: ${outstanding.length} migrations\n`

withLayer(Cli.layer)("gateway migrate", (it) => {
  it.scoped("prints the start of an upgrade on stderr and its end on stdout", function* () {
    const { run } = yield* Cli
    assert.deepStrictEqual(yield* run(["migrate"], { DATABASE_URL: yield* oldDatabase() }), {
      code: 0,
      stdout: `Upgraded the database from 0044 to ${last} (${outstanding.length} migrations).\n`,
      stderr: started
    })
  })

  it.scoped("prints only the document on stdout with --json", function* () {
    const { run } = yield* Cli
    const { stdout } = yield* run(["migrate", "--json"], { DATABASE_URL: yield* oldDatabase() })
    assert.deepStrictEqual(JSON.parse(stdout), { applied: outstanding.map((file) => path.basename(file, ".sql")) })
  })

  it.scoped("names on stderr which migrations stay applied after a failure", function* () {
    const { run } = yield* Cli
    const url = yield* oldDatabase("CREATE TABLE number_seal ()")
    const { code, stderr, stdout } = yield* run(["migrate"], { DATABASE_URL: url })
    assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
    assert.deepStrictEqual(stderr.split("\n"), [
      started.trimEnd(),
      `gateway: warning: The migrations stopped after 1 of ${outstanding.length}. Applied: 0045_statement_events`,
      'gateway: 0046_sealed_numbers.sql failed and was rolled back: relation "number_seal" already exists',
      ""
    ])
  })
})

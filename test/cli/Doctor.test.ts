import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../../src/database/Database.ts"
import { emptyUrl } from "../harness/database/Postgres.ts"
import { Cli, json } from "../harness/gateway/Cli.ts"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"
import { freePort } from "../harness/Port.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
const suite = Layer.provideMerge(database, Cli.layer)

const Report = Schema.parseJson(
  Schema.Struct({
    healthy: Schema.Boolean,
    data: Schema.Array(Schema.Struct({ check: Schema.String, state: Schema.String, detail: Schema.String }))
  })
)

/** The states and details by check, and the exit code. */
const examine = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const { directory, run } = yield* Cli
  const port = String(yield* freePort)
  const DATA_DIR = path.join(directory, "data")
  const { code, stdout } = yield* run(["doctor", "--json"], { DATA_DIR, PORT: port, ...environment })
  const { data, healthy } = Schema.decodeSync(Report)(stdout)
  assert.strictEqual(code, healthy ? 0 : 1)
  const states = Object.fromEntries(data.map(({ check, state }) => [check, state]))
  return { code, states, details: Object.fromEntries(data.map(({ check, detail }) => [check, detail])) }
})

const sandbox = { SANDBOX: "true" }

withLayer(suite)("gateway doctor", (it) => {
  it.effect("looks at everything and changes nothing", function* () {
    const { directory } = yield* Cli
    const { code, details, states } = yield* examine({ ...sandbox, GEMINI_API_KEY: "secret-value" })
    assert.strictEqual(code, 0)
    assert.include(states, {
      settings: "ok",
      credentials: "ok",
      port: "ok",
      disk: states["disk"],
      database: "ok",
      clocks: "ok",
      connections: "ok",
      migrations: "ok",
      ledger: "ok",
      "media store": "warning"
    })
    assert.match(details["credentials"] ?? "", /^set: GEMINI_API_KEY; not set: /)
    assert.notInclude(JSON.stringify(details), "secret-value")
    assert.isFalse(existsSync(path.join(directory, "data")))
  })

  it.effect("makes a line of a database that is gone, and of settings and catalogs that are wrong", function* () {
    const { directory } = yield* Cli
    const gone = yield* examine({ ...sandbox, DATABASE_URL: `postgres://nobody@127.0.0.1:${yield* freePort}/none` })
    assert.strictEqual(gone.states["database"], "problem")
    assert.include(gone.details["database"], "ECONNREFUSED")
    assert.property(gone.states, "disk")
    const wrong = yield* examine({ DEFAULT_RPM: "many" })
    assert.deepStrictEqual(wrong.states, { settings: "problem" })
    assert.include(wrong.details["settings"], "DEFAULT_RPM")
    const file = path.join(directory, "broken.yaml")
    writeFileSync(file, "models:\n  - id: 7\n")
    const broken = yield* examine({ ...sandbox, CATALOG_FILE: file })
    assert.deepInclude(broken.states, { catalog: "problem", database: "ok" })
    assert.include(broken.details["catalog"], "broken.yaml:")
    assert.strictEqual((yield* examine({})).states["catalog"], "problem")
  })

  it.scoped("tells of migrations that are pending, and applies none", function* () {
    const url = yield* emptyUrl
    for (const _ of [1, 2]) {
      const { details, states } = yield* examine({ ...sandbox, DATABASE_URL: url })
      assert.deepInclude(states, { database: "ok", migrations: "problem" })
      assert.match(details["migrations"] ?? "", /^pending: 0001_organizations, .*Run gateway migrate$/)
    }
  })

  it.effect("tells of a ledger that is broken", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* json("orgs", "create", "cooked", "--credits", "5")
    yield* sql`UPDATE organizations SET balance = balance + 1 WHERE name = 'cooked'`
    const { details, states } = yield* examine(sandbox)
    assert.strictEqual(states["ledger"], "problem")
    assert.include(details["ledger"], "a balance is the sum")
    yield* sql`UPDATE organizations SET balance = balance - 1 WHERE name = 'cooked'`
  })

  it.scoped("finds the gateway that runs, and its media by their links", function* () {
    const { url } = yield* Cli
    const DATA_DIR = yield* temporaryDirectory
    const running = yield* start({ env: { ...sandbox, DATABASE_URL: url, DATA_DIR } })
    const PORT = new URL(running.url).port
    const { details, states } = yield* examine({ ...sandbox, DATA_DIR, PORT })
    assert.deepInclude(states, { port: "ok", "media store": "ok", "media links": "ok" })
    assert.match(details["port"] ?? "", /gateway .*answers, ready$/)
    assert.deepStrictEqual(
      readdirSync(path.join(DATA_DIR, "media", "public"), { recursive: true }).filter((name) =>
        String(name).endsWith(".png")
      ),
      []
    )
    const foreign = yield* examine({
      ...sandbox,
      PORT,
      DATA_DIR,
      MEDIA_PUBLIC_URL: `http://127.0.0.1:${yield* freePort}`
    })
    assert.strictEqual(foreign.states["media links"], "warning")
    const advised = [
      [500, "it fails there"],
      [403, "let the public read it, or set MEDIA_PUBLIC_URL"]
    ] as const
    for (const [status, advice] of advised) {
      const port = yield* listen(createServer((_, response) => response.writeHead(status).end()))
      const refused = yield* examine({ ...sandbox, PORT, DATA_DIR, MEDIA_PUBLIC_URL: `http://127.0.0.1:${port}` })
      assert.include(refused.details["media links"], ` answers ${status}: ${advice}`)
    }
  })

  it.scoped("uses an embedded database that is there, and makes none", function* () {
    const { run } = yield* Cli
    const DATA_DIR = yield* temporaryDirectory
    const environment = { DATABASE_URL: "", DATA_DIR }
    const none = yield* examine(environment)
    assert.deepInclude(none.states, { database: "warning" })
    assert.deepStrictEqual(readdirSync(DATA_DIR), [])
    assert.strictEqual((yield* run(["migrate"], environment)).code, 0)
    const made = yield* examine(environment)
    assert.deepInclude(made.states, { database: "ok", migrations: "ok", ledger: "ok" })
  })
})

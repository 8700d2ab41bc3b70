import { randomUUID } from "node:crypto"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted, Schema } from "effect"
import { checkVersion } from "../../src/cli/DoctorCommand.ts"
import { Database } from "../../src/database/Database.ts"
import { Embedded } from "../../src/database/Embedded.ts"
import { oldestTested } from "../../src/database/Requirements.ts"
import { emptyUrl } from "../harness/database/Postgres.ts"
import { logRequest } from "../harness/database/Rows.ts"
import { talkCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort, listen } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { Cli, json } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
const suite = Layer.provideMerge(database, Cli.layer)

const Report = Schema.parseJson(
  Schema.Struct({
    healthy: Schema.Boolean,
    data: Schema.Array(
      Schema.Struct({
        check: Schema.String,
        state: Schema.String,
        detail: Schema.String,
        items: Schema.optional(Schema.Array(Schema.String))
      })
    )
  })
)

/** The states, details and items by check, and the exit code. */
const examine = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const { directory, run } = yield* Cli
  const port = String(yield* freePort)
  const DATA_DIR = path.join(directory, "data")
  const { code, stdout } = yield* run(["doctor", "--json"], { DATA_DIR, PORT: port, ...environment })
  const { data, healthy } = Schema.decodeSync(Report)(stdout)
  assert.strictEqual(code, healthy ? 0 : 1)
  const states = Object.fromEntries(data.map(({ check, state }) => [check, state]))
  const details = Object.fromEntries(data.map(({ check, detail }) => [check, detail]))
  return { code, states, details, items: Object.fromEntries(data.map(({ check, items }) => [check, items])) }
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
      prices: "ok",
      requests: "ok",
      routes: "ok",
      models: "ok",
      margins: "ok",
      statements: "ok",
      discounts: "ok",
      webhooks: "ok",
      "media store": "warning"
    })
    assert.include(details["credentials"], "GEMINI_API_KEY")
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
      assert.include(details["migrations"], "0001_organizations")
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

  it.effect("tells of discounts that sell below cost", function* () {
    const { directory } = yield* Cli
    const file = path.join(directory, "costly.yaml")
    const route = "{provider: first, model: m, cost: {prompt_per_1m_usd: 1.6, completion_per_1m_usd: 3.2}}"
    writeFileSync(file, talkCatalog(["first"], route))
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* json("orgs", "create", "valued")
    for (const [discount, state, detail] of [
      [20, "ok", "no discounted price is below the costs in the catalog"],
      [
        20.5,
        "warning",
        "below the costs in the catalog at a discount of 20.5 % (valued): 4 prices of talk@first. Lower"
      ]
    ] as const) {
      yield* sql`UPDATE organizations SET discount_percent = ${discount} WHERE id = ${String(id)}`
      const { details, states } = yield* examine({ ...sandbox, CATALOG_FILE: file })
      assert.strictEqual(states["discounts"], state)
      assert.include(details["discounts"], detail)
    }
    for (const [index, percent] of [21, 22, 23, 24, 25, ...Array.from({ length: 7 }, () => 26)].entries()) {
      yield* sql`INSERT INTO organizations (id, name, discount_percent, created_at)
        VALUES (${`org_${index}`}, ${`customer ${index}`}, ${percent}, now() + ${index} * interval '1 second')`
    }
    const many = yield* examine({ ...sandbox, CATALOG_FILE: file })
    const names = "customer 5, customer 6, customer 7, customer 8, customer 9, and 2 more"
    const largest = `26 % (${names}): 4 prices of talk@first; 25 % (customer 4): `
    assert.include(many.details["discounts"], largest)
    assert.include(many.details["discounts"], "; and 2 more. Lower the discount")
    assert.lengthOf(many.items["discounts"] ?? [], 7 * 4)
    yield* sql`UPDATE organizations SET discount_percent = 0`
    yield* sql`UPDATE organizations SET discount_percent = 0 WHERE id = ${String(id)}`
  })

  it.effect("tells of models that are down, routes that are disabled, losses, and webhooks that fail", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = String((yield* json("orgs", "create", "told"))["id"])
    const instance = randomUUID()
    yield* sql`INSERT INTO instances (id) VALUES (${instance})`
    yield* sql`
      INSERT INTO route_health (instance_id, route, provider, model, circuit, last_error, last_error_at, requests,
        failures, published_at)
      VALUES (${instance}, 'm@p', 'p', 'm', 'open', '503 overloaded', now(), 9, 9, now())`
    yield* sql`INSERT INTO route_controls (route, disabled_at, note) VALUES ('m@q', now(), 'too dear')`
    yield* sql`
      INSERT INTO webhook_deliveries (event_id, org_id, url, type, data, created_at, tries, failure, next_at)
      VALUES ('evt_1', ${org}, 'https://x.test/', 'credits.low', '{}', now() - interval '2 hours', 3, 'status 500', now())`
    yield* logRequest({ model: "m", route: "m@p", provider: "p", charge: 5, cost: 7 })
    for (let nth = 1; nth <= 10; nth++) yield* logRequest({ model: "x", status: 502, code: "upstream_error" })
    const { code, details, states } = yield* examine(sandbox)
    assert.strictEqual(code, 1)
    assert.include(states, { models: "problem", routes: "warning", margins: "warning", webhooks: "warning" })
    assert.strictEqual(states["requests"], "problem")
    assert.include(details["requests"], "10 of the last 11 requests within 15 minutes failed")
    assert.include(details["requests"], "gateway requests --status error --since 15m")
    assert.include(details["models"], "m@p: 503 overloaded")
    for (const named of ["m@p", "503 overloaded", "m@q", "too dear"]) assert.include(details["routes"], named)
    assert.include(details["margins"], "0.000000002 USD")
    assert.include(details["webhooks"], "https://x.test/: status 500")
    yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${instance}`
    yield* sql`DELETE FROM route_controls`
    yield* sql`DELETE FROM webhook_deliveries`
    yield* sql`DELETE FROM request_log`
  })

  it.effect("tells of charges that are not added up for statements", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = String((yield* json("orgs", "create", "waiting"))["id"])
    yield* sql`INSERT INTO ledger_entries (org_id, at, kind, amount, note) VALUES (${org}, now() - interval '4 hours', 'adjustment', 0, 'n')`
    const { states } = yield* examine(sandbox)
    assert.strictEqual(states["statements"], "warning")
    yield* sql`SELECT add_charges('infinity')`
    assert.strictEqual((yield* examine(sandbox)).states["statements"], "ok")
  })

  it.effect("tells of prices below cost", function* () {
    const { directory } = yield* Cli
    const file = path.join(directory, "dear.yaml")
    const cost = "cost: {prompt_per_1m_usd: 1000, completion_per_1m_usd: 0}"
    writeFileSync(file, talkCatalog(["acme"], `{provider: acme, model: v-talk, ${cost}}`))
    const { details, states } = yield* examine({ CATALOG_FILE: file, ACME_KEY: "k" })
    assert.strictEqual(states["prices"], "warning")
    assert.include(details["prices"], "talk@acme")
  })

  it.effect("warns of a PostgreSQL that is older than the oldest that is tested", () =>
    Effect.sync(() => {
      const old = checkVersion({ major: oldestTested - 1, version: `${oldestTested - 1}.9` }, 3)
      assert.deepInclude(old, { check: "database", state: "warning" })
      assert.include(old.detail, `${oldestTested} or newer`)
      assert.strictEqual(checkVersion({ major: oldestTested, version: `${oldestTested}.0` }, 3).state, "ok")
    })
  )

  it.scoped("finds the gateway that runs, and its media by their links", function* () {
    const { url } = yield* Cli
    const DATA_DIR = yield* temporaryDirectory
    const running = yield* start({ env: { ...sandbox, DATABASE_URL: url, DATA_DIR } })
    const PORT = new URL(running.url).port
    const { states } = yield* examine({ ...sandbox, DATA_DIR, PORT })
    assert.deepInclude(states, { port: "ok", "media store": "ok", "media links": "ok" })
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
    for (const status of [500, 403]) {
      const port = yield* listen(createServer((_, response) => response.writeHead(status).end()))
      const refused = yield* examine({ ...sandbox, PORT, DATA_DIR, MEDIA_PUBLIC_URL: `http://127.0.0.1:${port}` })
      assert.include(refused.details["media links"], String(status))
    }
  })

  it.scoped("uses an embedded database that is there, and makes none", function* () {
    const { run } = yield* Cli
    const DATA_DIR = yield* temporaryDirectory
    const environment = { DATABASE_URL: "", DATA_DIR }
    const none = yield* examine(environment)
    assert.deepInclude(none.states, { database: "warning" })
    assert.deepStrictEqual(readdirSync(DATA_DIR), [])
    yield* Effect.scoped(Layer.build(Embedded.layer({ dataDir: DATA_DIR })))
    assert.strictEqual((yield* run(["migrate"], environment)).code, 0)
    const made = yield* examine(environment)
    assert.deepInclude(made.states, { database: "ok", migrations: "ok", ledger: "ok" })
  })
})

import { writeFileSync } from "node:fs"
import path from "node:path"
import { Effect, Layer, Redacted } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { Database } from "../../src/database/Database.ts"
import { ownServer } from "../database/OwnServer.ts"
import { openAccount, operator } from "../harness/client/Account.ts"
import { ask, get } from "../harness/client/ChatClient.ts"
import * as Metrics from "../harness/client/Metrics.ts"
import { assertCharged, copies, eventually } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import * as GatewayProcess from "../harness/gateway/GatewayProcess.ts"
import { assert, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"

const administer = (statement: string) =>
  Effect.acquireUseRelease(
    Effect.promise(() => new Pg.Client(inject("databaseServer")).connect()),
    (client) => Effect.promise(() => client.query(statement)),
    (client) => Effect.promise(() => client.end())
  )

/** Waits until the gateway has noticed its ended connections, so that no statement fails because of them. */
const fewConnections = (url: string) =>
  eventually(
    Effect.map(Metrics.scrapeAt(url), (samples) => Metrics.sumOf(samples, "gateway_database_connections")),
    (count) => count <= 3
  )

const readiness = (url: string) => Effect.map(get(`${url}/readyz`), ({ status, text }) => ({ status, text }))

deploymentTest(
  "new connections that the database refuses fail no request, and make the gateway unready until they are accepted",
  function* ({ env, gateway, upstream }) {
    const databaseUrl = env["DATABASE_URL"] ?? assert.fail("no database")
    const name = new URL(databaseUrl).pathname.slice(1)
    const allowConnections = (isAllowed: boolean) => administer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${isAllowed}`)
    const { stderr, url } = yield* gateway({ env: { DATABASE_URL: `${databaseUrl}&application_name=refused` } })
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(...copies(completion, 61))
    assert.strictEqual((yield* ask({ url, secret })).status, 200)

    yield* allowConnections(false)
    // One connection of the pool and the probe's stay, fewer than the requests need.
    yield* administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = '${name}' AND application_name = 'refused' AND pid NOT IN (
        SELECT pid FROM pg_stat_activity WHERE datname = '${name}' AND application_name = 'refused'
        ORDER BY backend_start LIMIT 2)`)
    yield* fewConnections(url)
    const reads = get(`${url}/v1/credits`, { authorization: `Bearer ${secret}` })
    const answers = yield* Effect.all(
      [
        Effect.replicateEffect(ask({ url, secret }), 60, { concurrency: 20 }),
        Effect.replicateEffect(reads, 200, { concurrency: 20 })
      ],
      { concurrency: "unbounded" }
    )
    const failed = answers.flat().filter(({ status }) => status !== 200)
    assert.deepStrictEqual(
      failed.map(({ status, text }) => [status, text]),
      []
    )
    yield* eventually(readiness(url), ({ status }) => status === 503)
    assert.include((yield* readiness(url)).text, "the database refuses new connections")
    const up = Effect.map(Metrics.scrapeAt(url), (samples) => Metrics.sumOf(samples, "gateway_database_up"))
    assert.strictEqual(yield* up, 0)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)

    yield* allowConnections(true)
    yield* eventually(readiness(url), ({ status }) => status === 200)
    assert.strictEqual(yield* up, 1)
    yield* assertCharged(org, copies(charge, 61))
    const lines = stderr()
      .split("\n")
      .filter((line) => line.includes("new connections"))
    assert.lengthOf(lines, 2)
    assert.match(lines[0] ?? "", /The database refuses new connections \(.*not currently accepting connections\)/)
    assert.match(lines[1] ?? "", /The database accepts new connections again after/)
    assert.notInclude(stderr(), "unreachable")
  }
)

const countFailed = (answers: ReadonlyArray<{ readonly status: number }>) =>
  answers.filter(({ status }) => status !== 200).length

it.scopedLive("a rotated password is read from .env when the old one is refused, and at a reload", function* () {
  const { run, url: urlOf } = yield* ownServer
  yield* run("CREATE ROLE app LOGIN PASSWORD 'one'", "CREATE DATABASE app OWNER app")
  const directory = yield* temporaryDirectory
  const write = (url: string) =>
    Effect.sync(() => writeFileSync(path.join(directory, ".env"), `SANDBOX=true\nDATABASE_URL='${url}'\n`))
  yield* write(urlOf("app", "one"))
  const line = [process.execPath, GatewayProcess.program, "serve"] as const
  const gateway = yield* GatewayProcess.start({ env: {}, command: { line, cwd: directory } })
  const { stderr, url } = gateway
  const database = Layer.provideMerge(operator, Database.layerUrl(Redacted.make(urlOf("app", "one"))))
  const { secret } = yield* Effect.provide(openAccount({}), database)
  const read = get(`${url}/v1/credits`, { authorization: `Bearer ${secret}` })
  const load = Effect.map(Effect.replicateEffect(read, 100, { concurrency: 20 }), countFailed)
  const endConnectionsBut = (left: number) =>
    run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND pid NOT IN (
      SELECT pid FROM pg_stat_activity WHERE usename = 'app' ORDER BY backend_start LIMIT ${left})`)
  const logged = (text: string) => eventually(Effect.sync(stderr), (all) => all.includes(text))
  assert.strictEqual(yield* load, 0)

  yield* run("ALTER ROLE app PASSWORD 'two'")
  yield* endConnectionsBut(2)
  yield* fewConnections(url)
  assert.strictEqual(yield* load, 0)
  yield* eventually(readiness(url), ({ status }) => status === 503)
  yield* logged('The database refuses new connections (password authentication failed for user "app")')
  yield* write(urlOf("app", "two"))
  yield* eventually(readiness(url), ({ status }) => status === 200)
  yield* logged("The database accepts the new credentials of DATABASE_URL")
  assert.strictEqual(yield* load, 0)

  // No connection is open: an outage with its reason, until the next password.
  yield* run("ALTER ROLE app PASSWORD 'three'")
  yield* endConnectionsBut(0)
  const refused = yield* eventually(read, ({ status }) => status !== 200)
  assert.deepStrictEqual([refused.status, refused.headers.get("retry-after")], [500, "5"])
  yield* logged('The database is unreachable (password authentication failed for user "app")')
  yield* write(urlOf("app", "three"))
  yield* eventually(readiness(url), ({ status }) => status === 200)
  assert.strictEqual(yield* load, 0)

  // A wrong one changes nothing.
  yield* write(urlOf("app", "wrong"))
  yield* gateway.signal("SIGHUP")
  yield* logged("The database credentials were not replaced: password authentication failed")
  assert.strictEqual(yield* load, 0)
  assert.strictEqual((yield* readiness(url)).status, 200)

  // Another role takes over before the old one is refused.
  yield* run("CREATE ROLE app2 LOGIN PASSWORD 'four' IN ROLE app")
  yield* write(urlOf("app2", "four", "app"))
  yield* gateway.signal("SIGHUP")
  const roles = Effect.promise(async () => {
    const client = await new Pg.Client(urlOf("app2", "four", "app")).connect()
    const { rows } = await client.query<{ readonly usename: string }>(
      "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name = 'generation-gateway' AND datname = 'app'"
    )
    await client.end()
    return rows.map(({ usename }) => usename)
  })
  yield* eventually(roles, (names) => names.length === 1 && names[0] === "app2")
  assert.strictEqual(yield* load, 0)
  assert.notMatch(stderr(), /'?(?:one|two|three|wrong|four)'?@|failed unexpectedly/)
})

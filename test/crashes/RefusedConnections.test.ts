import { Effect } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { openAccount } from "../harness/client/Account.ts"
import { ask, get } from "../harness/client/ChatClient.ts"
import * as Metrics from "../harness/client/Metrics.ts"
import { assertCharged, copies, eventually } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"

const administer = (statement: string) =>
  Effect.acquireUseRelease(
    Effect.promise(() => new Pg.Client(inject("databaseServer")).connect()),
    (client) => Effect.promise(() => client.query(statement)),
    (client) => Effect.promise(() => client.end())
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
    // One of the pool and the one beside it stay: more are needed for the requests.
    yield* administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = '${name}' AND application_name = 'refused' AND pid NOT IN (
        SELECT pid FROM pg_stat_activity WHERE datname = '${name}' AND application_name = 'refused'
        ORDER BY backend_start LIMIT 2)`)
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
    assert.notInclude(stderr(), "out of reach")
  }
)

import { Effect } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { openAccount } from "../harness/client/Account.ts"
import { ask, get } from "../harness/client/ChatClient.ts"
import * as Metrics from "../harness/client/Metrics.ts"
import { assertCharged, copies, eventually } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"

/** Makes the server refuse new connections to a database; those that are open stay. */
const allowConnections = (databaseUrl: string, isAllowed: boolean) =>
  Effect.acquireUseRelease(
    Effect.promise(() => new Pg.Client(inject("databaseServer")).connect()),
    (client) =>
      Effect.promise(() =>
        client.query(`ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} ALLOW_CONNECTIONS ${isAllowed}`)
      ),
    (client) => Effect.promise(() => client.end())
  )

const readiness = (url: string) => Effect.map(get(`${url}/readyz`), ({ status, text }) => ({ status, text }))

deploymentTest(
  "new connections that the database refuses fail no request, and make the gateway unready until they are accepted",
  function* ({ env, gateway, upstream }) {
    const databaseUrl = env["DATABASE_URL"] ?? assert.fail("no database")
    const { stderr, url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(...copies(completion, 61))
    assert.strictEqual((yield* ask({ url, secret })).status, 200)

    yield* allowConnections(databaseUrl, false)
    const answers = yield* Effect.replicateEffect(ask({ url, secret }), 60, { concurrency: 30 })
    assert.deepStrictEqual(
      answers.filter(({ status }) => status !== 200).map(({ status, text }) => [status, text]),
      []
    )
    yield* eventually(readiness(url), ({ status }) => status === 503)
    assert.include((yield* readiness(url)).text, "the database refuses new connections")
    const up = Effect.map(Metrics.scrapeAt(url), (samples) => Metrics.sumOf(samples, "gateway_database_up"))
    assert.strictEqual(yield* up, 0)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)

    yield* allowConnections(databaseUrl, true)
    yield* eventually(readiness(url), ({ status }) => status === 200)
    assert.strictEqual(yield* up, 1)
    yield* assertCharged(org, copies(charge, 61))
    const lines = stderr()
      .split("\n")
      .filter((line) => line.includes("new connections"))
    assert.lengthOf(lines, 2)
    assert.match(lines[0] ?? "", /The database refuses new connections \(.*not currently accepting connections\)/)
    assert.match(lines[1] ?? "", /The database accepts new connections again after/)
  }
)

import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { Effect, Fiber } from "effect"
import * as Pg from "pg"
import { get } from "../harness/client/ChatClient.ts"
import { eventually } from "../harness/database/Money.ts"
import { oldUrl } from "../harness/database/OldDatabase.ts"
import { program, start } from "../harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "../harness/It.ts"
import { freePort, listen } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const session = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Pg.Client(url)
      client.on("error", () => {})
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const lockOfMigrations = "SELECT pg_advisory_lock(7025102614)"

/** Holds the name of a table of the first migration until the transaction ends. */
const nameOfTable = "CREATE TABLE statement_notices ()"

/** Settings of a gateway whose migration is blocked until `release`. */
const blockedDatabase = Effect.fnUntraced(function* (statement: string) {
  const databaseUrl = yield* oldUrl()
  const blocker = yield* session(databaseUrl)
  yield* Effect.promise(() => blocker.query("BEGIN").then(() => blocker.query(statement)))
  const port = yield* freePort
  const DATA_DIR = yield* temporaryDirectory
  return {
    url: `http://127.0.0.1:${port}`,
    env: { DATABASE_URL: databaseUrl, SANDBOX: "true", DATA_DIR, PORT: String(port) },
    release: Effect.promise(() => blocker.query("SELECT pg_advisory_unlock_all(); ROLLBACK"))
  }
})

const probe = (url: string) => get(url).pipe(Effect.option)

const cases = [
  { title: "waits for another process", statement: lockOfMigrations, settings: {} },
  { title: "runs", statement: nameOfTable, settings: {} },
  { title: "runs in the first of two workers", statement: nameOfTable, settings: { WORKERS: "2" } }
]

describe("a start with migrations to apply", () => {
  it.scopedLive("changes nothing in the database while another program has the gateway's port", function* () {
    const databaseUrl = yield* oldUrl()
    const port = yield* listen(createServer())
    const env = { DATABASE_URL: databaseUrl, SANDBOX: "true", DATA_DIR: yield* temporaryDirectory, PORT: String(port) }
    const { message } = yield* Effect.flip(start({ env }))
    assert.include(message, `gateway: 127.0.0.1:${port} is already in use`)
    const client = yield* session(databaseUrl)
    const { rows } = yield* Effect.promise(() => client.query("SELECT max(id) AS last FROM schema_migrations"))
    assert.deepStrictEqual(rows, [{ last: 44 }])
  })
})

describe("while a migration", () => {
  it.live.each(cases)("$title, the gateway is alive and not ready, and serves afterwards", ({ settings, statement }) =>
    Effect.gen(function* () {
      const { env, release, url } = yield* blockedDatabase(statement)
      const starting = yield* Effect.fork(start({ env: { ...env, ...settings } }))
      yield* eventually(probe(`${url}/healthz`), ({ _tag }) => _tag === "Some")
      const health = yield* get(`${url}/healthz`)
      assert.deepStrictEqual([health.status, JSON.parse(health.text)], [200, { status: "ok" }])
      const ready = yield* get(`${url}/readyz`)
      assert.deepStrictEqual([ready.status, JSON.parse(ready.text)], [503, { status: "unready", reason: "migrating" }])
      const other = yield* get(`${url}/v1/models`)
      assert.strictEqual(other.status, 503)
      assert.strictEqual(other.headers.get("retry-after"), "5")
      assert.isNull(starting.unsafePoll())

      yield* release
      yield* Fiber.join(starting)
      yield* eventually(get(`${url}/readyz`), ({ status }) => status === 200)
      assert.strictEqual((yield* get(`${url}/v1/models`)).status, 401)
    }).pipe(Effect.scoped)
  )

  it.scopedLive("waits, a signal stops the gateway", function* () {
    const { env, url } = yield* blockedDatabase(lockOfMigrations)
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [program, "serve"], { env, stdio: "ignore" })),
      (running) => Effect.sync(() => running.kill("SIGKILL"))
    )
    const ended = yield* Effect.fork(
      Effect.async<number | null>((resume) => void child.once("exit", (code) => resume(Effect.succeed(code))))
    )
    yield* eventually(probe(`${url}/healthz`), ({ _tag }) => _tag === "Some")
    assert.isNull(ended.unsafePoll())
    child.kill("SIGTERM")
    assert.strictEqual(yield* Fiber.join(ended), 0)
  })
})

import net from "node:net"
import { SqlClient } from "@effect/sql/SqlClient"
import { PgClient } from "@effect/sql-pg"
import { Context, Deferred, Effect, Fiber, Layer, Logger, LogLevel, Option, Redacted, Schedule, Stream } from "effect"
import { Database } from "../../src/database/Database.ts"
import { databaseUrlForm } from "../../src/services/sql/DatabaseUrl.ts"
import { isAnnounced, isOutage } from "../../src/services/sql/Outage.ts"
import { proxyTo } from "../harness/database/DatabaseProxy.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it, liveOver } from "../harness/It.ts"
import { postmasterPid, query, temporarySite } from "./EmbeddedDatabase.ts"

const backend = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
  return row?.pid ?? assert.fail("no row")
})

/** The same database through a door that can be frozen. */
const throughProxy = Effect.map(Effect.flatMap(Postgres.freshUrl, proxyTo), (door) => ({
  ...door,
  url: Redacted.make(door.url)
}))

const untilItWorks = { times: 1200, schedule: Schedule.spaced("50 millis") } as const

describe("Database", () => {
  liveOver(Postgres.layerWith({ maxConnections: 1 }))(
    "gives rows camelCase names, takes camelCase names and leaves JSON alone",
    function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TEMP TABLE probe (some_column text, attempts jsonb)`
      const row = { someColumn: "x", attempts: '{"cost_nano": 1}' }
      const rows = yield* sql`INSERT INTO probe ${sql.insert(row)} RETURNING *`
      assert.deepStrictEqual(rows, [{ someColumn: "x", attempts: { cost_nano: 1 } }])
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 3 }))(
    "says who it is and never opens more connections than allowed",
    function* () {
      const sql = yield* SqlClient
      const busy = yield* Effect.replicateEffect(sql`SELECT pg_backend_pid() AS pid FROM pg_sleep(0.05)`, 12, {
        concurrency: "unbounded"
      })
      assert.strictEqual(new Set(busy.flat().map(({ pid }) => pid)).size, 3)
      const names =
        yield* sql`SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()`
      assert.deepStrictEqual(names, [{ applicationName: "generation-gateway" }])
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 4 }))(
    "survives the end of its connections, idle or busy",
    function* () {
      const sql = yield* SqlClient
      const others = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                         WHERE datname = current_database() AND pid <> pg_backend_pid()`
      yield* Effect.replicateEffect(sql`SELECT pg_sleep(0.05)`, 4, { concurrency: "unbounded" })
      const victim = yield* Effect.fork(Effect.flip(sql`SELECT pg_sleep(10)`))
      yield* Effect.repeat(
        sql`SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(10)' AND state = 'active'`,
        { until: (rows) => rows.length > 0, schedule: Schedule.spaced("10 millis") }
      )
      yield* others
      assert.include(String((yield* victim).cause), "terminating connection due to administrator command")
      const pids = yield* Effect.replicateEffect(Effect.retry(backend, untilItWorks), 8, { concurrency: "unbounded" })
      assert.lengthOf(pids, 8)
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 1, queryTimeout: "500 millis" }))(
    "ends a statement on the server before giving up on it",
    function* () {
      const sql = yield* SqlClient
      const before = yield* backend
      const { cause } = yield* Effect.flip(sql`SELECT pg_sleep(10)`)
      assert.include(String(cause), "canceling statement due to statement timeout")
      assert.strictEqual(yield* backend, before)
    }
  )

  it.scopedLive("cuts a connection that no longer answers, and goes on with another", function* () {
    const { freeze, thaw, url } = yield* throughProxy
    const layer = yield* Layer.build(Database.layerUrl(url, { maxConnections: 1, queryTimeout: "500 millis" }))
    const before = yield* Effect.provide(backend, layer)
    yield* freeze
    const { cause } = yield* Effect.flip(Effect.provide(backend, layer))
    assert.include(String(cause), "No answer within 500 ms")
    yield* thaw
    assert.notStrictEqual(yield* Effect.provide(Effect.retry(backend, untilItWorks), layer), before)
  })

  it.scopedLive("cuts a transaction's connection too, and leaves no lock behind", function* () {
    const { freeze, thaw, url } = yield* throughProxy
    const layer = yield* Layer.build(Database.layerUrl(url, { maxConnections: 2, queryTimeout: "500 millis" }))
    const sql = Context.get(layer, SqlClient)
    const locked = sql`LOCK TABLE organizations`.pipe(Effect.zipRight(freeze), Effect.zipRight(sql`SELECT 1`))
    yield* Effect.flip(sql.withTransaction(locked))
    yield* thaw
    yield* Effect.retry(sql.withTransaction(sql`LOCK TABLE organizations`), untilItWorks)
  })

  liveOver(Postgres.layerWith({ maxConnections: 2 }))(
    "ends a transaction that stands still, and with it its locks",
    function* () {
      const sql = yield* SqlClient
      const over = yield* Deferred.make<void>()
      const locked = yield* Deferred.make<void>()
      const still = sql`LOCK TABLE organizations`.pipe(
        Effect.zipRight(Deferred.succeed(locked, undefined)),
        Effect.zipRight(Deferred.await(over)),
        Effect.zipRight(sql`SELECT 1`)
      )
      const standing = yield* Effect.fork(Effect.flip(sql.withTransaction(still)))
      yield* Deferred.await(locked)
      yield* sql.withTransaction(sql`LOCK TABLE organizations`)
      yield* Deferred.succeed(over, undefined)
      assert.isTrue(isOutage(yield* Fiber.join(standing)))
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 3 }))(
    "makes every connection anew once its server takes no writes",
    function* () {
      const sql = yield* SqlClient
      const onEach = Effect.replicateEffect(sql`SELECT pg_backend_pid() AS pid FROM pg_sleep(0.1)`, 3, {
        concurrency: "unbounded"
      })
      const demoted = yield* Effect.replicateEffect(
        sql`SELECT pg_backend_pid() AS pid, set_config('default_transaction_read_only', 'on', false) FROM pg_sleep(0.1)`,
        3,
        { concurrency: "unbounded" }
      )
      const write = sql`UPDATE access_revision SET revision = revision + 1`
      const { cause } = yield* Effect.flip(write)
      assert.include(String(cause), "read-only transaction")
      yield* Effect.retry(write, untilItWorks)
      yield* Effect.replicateEffect(write, 10)
      const before = new Set(demoted.flat().map(({ pid }) => pid))
      const after = (yield* onEach).flat().map(({ pid }) => pid)
      assert.isFalse(after.some((pid) => before.has(pid)))
    }
  )

  it.scopedLive("is lost while its server takes no writes, and found again when it does", () =>
    Effect.gen(function* () {
      const url = new URL(yield* Postgres.freshUrl)
      const name = url.pathname.slice(1)
      const admin = yield* Layer.build(Database.layerUrl(Redacted.make(url.href), { maxConnections: 1 }))
      const adminSql = Context.get(admin, SqlClient)
      const layer = yield* Layer.build(Database.layerUrl(Redacted.make(url.href), { isWatched: true }))
      const sql = Context.get(layer, SqlClient)
      yield* adminSql.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      yield* adminSql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
      // At first it may be lost for the connections that ended.
      yield* Effect.flip(sql`SELECT 1`).pipe(
        Effect.filterOrFail((failure) => isAnnounced(failure) && String(failure.cause).includes("it is read-only")),
        Effect.retry(untilItWorks)
      )
      yield* adminSql.unsafe(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
      yield* Effect.retry(sql`UPDATE access_revision SET revision = revision + 1`, untilItWorks)
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None))
  )

  liveOver(Postgres.layerWith({ maxConnections: 1 }))(
    "fails, and does not die, when a transaction cannot be committed",
    function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE parent (id integer PRIMARY KEY)`
      yield* sql`CREATE TABLE child (id integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`
      const { cause } = yield* Effect.flip(sql.withTransaction(sql`INSERT INTO child VALUES (1)`))
      assert.include(String(cause), "violates foreign key constraint")
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 6 }))("lets no interrupted query harm another's", function* () {
    const sql = yield* SqlClient
    const given = Effect.fork(sql`SELECT pg_sleep(0.003)`).pipe(
      Effect.tap(() => Effect.sleep("1 millis")),
      Effect.flatMap(Fiber.interrupt)
    )
    const kept = Effect.uninterruptible(sql`SELECT pg_sleep(0.001)`)
    yield* Effect.all(
      [Effect.replicateEffect(given, 400, { concurrency: 6 }), Effect.replicateEffect(kept, 800, { concurrency: 6 })],
      {
        concurrency: "unbounded"
      }
    )
  })

  it.scopedLive("gives up on a server that accepts and stays silent, in one line without the password", function* () {
    const { freeze, url } = yield* throughProxy
    yield* freeze
    const secret = new URL(Redacted.value(url))
    secret.password = "hunter2"
    const { message } = yield* Effect.flip(Layer.build(Database.layerUrl(Redacted.make(secret.href))))
    assert.match(message, /^The database cannot be reached: .*timeout.*\.$/)
    assert.notInclude(message, "hunter2")
  })

  it.scopedLive("says in one line what is wrong with its URL", function* () {
    const refusal = (url: string) =>
      Layer.build(Database.layerUrl(Redacted.make(url))).pipe(
        Effect.flip,
        Effect.map(({ message }) => message)
      )
    const closed = yield* Effect.promise(
      () =>
        new Promise<number>((resolve) => {
          const server = net.createServer().listen(0, "127.0.0.1", () => {
            const address = server.address()
            server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
          })
        })
    )
    const invalid = `DATABASE_URL must be ${databaseUrlForm}.`
    assert.strictEqual(yield* refusal("mysql://root:hunter2@localhost/db"), invalid)
    assert.strictEqual(yield* refusal("postgres://user:hunter2@host:notaport/db"), invalid)
    assert.strictEqual(yield* refusal("postgres://user:2/hunter2@host/db"), invalid)
    assert.strictEqual(
      yield* refusal("postgres://user:hunter2@host/db?ssl=hunter2"),
      "DATABASE_URL cannot be used: ssl must be true, false or no-verify."
    )
    assert.strictEqual(
      yield* refusal("postgres://user:hunter2@host/db?sslmode=hunter2"),
      "DATABASE_URL cannot be used: sslmode must be disable, allow, prefer, require, verify-ca, verify-full or no-verify."
    )
    assert.strictEqual(
      yield* refusal("postgres://user:hunter2@host/db?sslrootcert=/hunter2"),
      "DATABASE_URL cannot be used: a file of sslcert, sslkey or sslrootcert cannot be read (ENOENT)."
    )
    assert.strictEqual(
      yield* refusal("postgres://user:hunter2@host/db?sslnegotiation=hunter2"),
      'DATABASE_URL cannot be used: Invalid sslnegotiation value: the one given. Valid values are "postgres" and "direct".'
    )
    assert.strictEqual(
      yield* refusal(`postgres://u:hunter2@127.0.0.1:${closed}/db`),
      `The database cannot be reached: connect ECONNREFUSED 127.0.0.1:${closed}.`
    )
  })

  it.scopedLive("gives a connection beside the pool on which a query may take its time", function* () {
    const layer = yield* Layer.build(Postgres.layerWith({ maxConnections: 1, queryTimeout: "300 millis" }))
    const connection = yield* Context.get(layer, Database).connect
    const { rows } = yield* Effect.promise(() => connection.query("SELECT 1 AS one FROM pg_sleep(0.6)"))
    assert.deepStrictEqual(rows, [{ one: 1 }])
  })

  it.scopedLive("hears notifications", function* () {
    const pg = Context.get(yield* Layer.build(Postgres.layer), PgClient.PgClient)
    const heard = yield* Effect.fork(Stream.runHead(pg.listen("news")))
    const tell = pg`SELECT pg_notify('news', 'hello')`
    yield* Effect.race(heard.await, Effect.forever(Effect.delay(tell, "20 millis")))
    assert.deepStrictEqual(yield* heard, Option.some("hello"))
  })

  it.scopedLive("finds the embedded server again after it died", function* () {
    const site = yield* temporarySite()
    const layer = yield* Layer.build(Database.layer({ url: Option.none(), dataDir: site.dataDir }))
    const before = postmasterPid(site) ?? assert.fail("no server")
    yield* query(site, "CREATE TABLE kept AS SELECT 42 AS answer")
    process.kill(before, "SIGKILL")
    const sql = Context.get(layer, SqlClient)
    yield* Effect.retry(
      sql`SELECT answer FROM kept`.pipe(Effect.filterOrFail(() => postmasterPid(site) !== before)),
      untilItWorks
    )
    assert.deepStrictEqual(yield* sql`SELECT answer FROM kept`, [{ answer: 42 }])
  })
})

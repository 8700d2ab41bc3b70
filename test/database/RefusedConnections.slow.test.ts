import { renameSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Logger, LogLevel, Option, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { isAnnounced, isOutage } from "../../src/services/sql/Outage.ts"
import { proxyTo } from "../harness/database/DatabaseProxy.ts"
import { eventually } from "../harness/database/Money.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporarySite } from "./EmbeddedDatabase.ts"
import { ownServer } from "./OwnServer.ts"

const options = { isWatched: true, maxConnections: 8 } as const

const refusing = "the database refuses new connections"

/** A pool that is watched, and what it logs. */
const opened = <E, R>(layer: Layer.Layer<Database | SqlClient, E, R>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (LogLevel.greaterThanEqual(logLevel, LogLevel.Info)) lines.push(String(message))
    })
    const context = yield* Layer.build(Layer.provide(layer, Logger.replace(Logger.defaultLogger, logger)))
    const sql = Context.get(context, SqlClient)
    const query = sql<{ pid: number }>`SELECT pg_backend_pid() AS pid FROM pg_sleep(0.02)`
    // The connection of the watch counts towards the limits, and is to meet what happens to all.
    const others = sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
    yield* eventually(others, ({ length }) => length > 0)
    return {
      sql,
      lines,
      trouble: Effect.sync(Context.get(context, Database).unreadyReason),
      /** Sends more statements at once than there are connections; returns how many connections ran them. */
      load: Effect.map(
        Effect.replicateEffect(query, 40, { concurrency: "unbounded" }),
        (rows) => new Set(rows.flat().map(({ pid }) => pid)).size
      )
    }
  })

const becomes = (trouble: Effect.Effect<string | undefined>, expected: string | undefined) =>
  eventually(trouble, (seen) => seen === expected)

describe("new connections that are refused", () => {
  it.scopedLive("by a role's limit leave statements to the open connections", function* () {
    const { run, url } = yield* ownServer
    yield* run("CREATE ROLE app LOGIN PASSWORD 'one' CONNECTION LIMIT 4", "CREATE DATABASE app OWNER app")
    const { lines, load, trouble } = yield* opened(Database.layerUrl(Redacted.make(url("app", "one")), options))
    assert.strictEqual(yield* load, 3)
    yield* becomes(trouble, refusing)
    assert.strictEqual(yield* load, 3)
    assert.lengthOf(lines, 1)
    assert.match(
      lines[0] ?? "",
      /refuses new connections \(too many connections for role "app"\); requests share 3 open connections/
    )
    yield* run("ALTER ROLE app CONNECTION LIMIT 20")
    yield* becomes(trouble, undefined)
    assert.strictEqual(yield* load, 8)
    assert.lengthOf(lines, 2)
    assert.match(lines[1] ?? "", /accepts new connections again/)
  })

  it.scopedLive.each(["refusing", "silent"] as const)("by a pooler that is full and %s", function* (how) {
    const { empty, fill, url } = yield* proxyTo(yield* Postgres.freshUrl)
    const { lines, load, sql, trouble } = yield* opened(Database.layerUrl(Redacted.make(url), options))
    yield* Effect.replicateEffect(sql`SELECT pg_sleep(0.1)`, 2, { concurrency: 2 })
    yield* fill(how)
    assert.strictEqual(yield* load, 2)
    yield* becomes(trouble, refusing)
    assert.lengthOf(lines, 1)
    assert.match(lines[0] ?? "", how === "silent" ? /does not answer/ : /no more connections allowed/)
    yield* empty
    yield* becomes(trouble, undefined)
    assert.strictEqual(yield* load, 8)
  })

  it.scopedLive("by a socket that is gone", function* () {
    const site = yield* temporarySite()
    const layer = Database.layer({ url: Option.none(), dataDir: site.dataDir, options })
    const { lines, load, trouble } = yield* opened(layer)
    const [socket, hidden] = [path.join(site.home, "run"), path.join(site.home, "hidden")]
    renameSync(socket, hidden)
    assert.isAtMost(yield* load, 3)
    yield* becomes(trouble, refusing)
    assert.match(lines[0] ?? "", /refuses new connections \(connect ENOENT /)
    renameSync(hidden, socket)
    yield* becomes(trouble, undefined)
    assert.strictEqual(yield* load, 8)
  })

  it.scopedLive("fail statements at once, as a logged outage, if no connection is open", function* () {
    const { run, url } = yield* ownServer
    yield* run("CREATE ROLE app LOGIN PASSWORD 'one'", "CREATE DATABASE app OWNER app")
    const { lines, load, sql, trouble } = yield* opened(Database.layerUrl(Redacted.make(url("app", "one")), options))
    yield* run(
      "ALTER ROLE app PASSWORD 'two'",
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
    )
    const failure = yield* eventually(Effect.flip(sql`SELECT 1`), isAnnounced)
    assert.isTrue(isOutage(failure))
    yield* becomes(trouble, "the database is unreachable")
    assert.lengthOf(
      lines.filter((line) => line.includes("password authentication failed")),
      1,
      lines.join("\n")
    )
    yield* run("ALTER ROLE app PASSWORD 'one'")
    yield* becomes(trouble, undefined)
    assert.strictEqual(yield* load, 8)
  })
})

describe("credentials that are replaced", () => {
  const replaceable = Effect.gen(function* () {
    const { run, url } = yield* ownServer
    yield* run("CREATE ROLE app LOGIN PASSWORD 'one'", "CREATE DATABASE app OWNER app")
    let now = url("app", "one")
    const rereadUrl = Effect.sync(() => Redacted.make(now))
    const pool = yield* opened(Database.layerUrl(Redacted.make(now), { ...options, rereadUrl }))
    const set = (next: string) =>
      Effect.sync(() => {
        now = next
      })
    return { ...pool, run, url, set }
  })

  it.scopedLive("are taken as soon as the old ones are refused, for every new connection", function* () {
    const { lines, load, run, set, trouble, url } = yield* replaceable
    yield* run("ALTER ROLE app PASSWORD 'two'")
    yield* load
    yield* becomes(trouble, refusing)
    yield* set(url("app", "two"))
    yield* becomes(trouble, undefined)
    assert.strictEqual(yield* load, 8)
    assert.isTrue(lines.some((line) => line.includes("accepts the new credentials of DATABASE_URL")))
    assert.notInclude(lines.join("\n"), "two")
  })

  it.scopedLive("are never those of another database", function* () {
    const { lines, load, run, set, trouble, url } = yield* replaceable
    yield* run("CREATE DATABASE other OWNER app", "ALTER ROLE app PASSWORD 'two'")
    yield* set(url("app", "two", "other"))
    yield* load
    yield* becomes(trouble, refusing)
    yield* eventually(
      Effect.sync(() => lines),
      (all) => all.some((line) => line.includes("names another server or database. Restart the gateway"))
    )
    assert.strictEqual(yield* trouble, refusing)
  })
})

/** Runs once for all test files: starts a PostgreSQL server and creates the migrated database that tests copy. */

import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Exit, Layer, Logger, LogLevel, Redacted, Schedule, Scope } from "effect"
import * as Pg from "pg"
import type { TestProject } from "vitest/node"
import { Database } from "../../src/database/Database.ts"
import { Embedded } from "../../src/database/Embedded.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { bundles, isAlive, makerOf, prefix, root } from "./temporary.ts"

/** Removes the directories of ended processes. Database servers end with their processes. */
const sweep = (isOver: (pid: number) => boolean) =>
  Effect.sync(() => {
    for (const directory of [root, bundles]) {
      for (const name of existsSync(directory) ? readdirSync(directory) : []) {
        const pid = makerOf(name)
        if (pid !== undefined && isOver(pid)) rmSync(path.join(directory, name), { recursive: true, force: true })
      }
    }
  })

const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = mkdtempSync(prefix)
    chmodSync(directory, 0o755)
    return directory
  }),
  (directory) =>
    Effect.sync(() => existsSync(path.join(directory, "postgres/data/postmaster.pid"))).pipe(
      Effect.repeat({ while: (isRunning) => isRunning, schedule: Schedule.spaced("20 millis") }),
      Effect.timeoutOption("10 seconds"),
      Effect.zipRight(Effect.sync(() => rmSync(directory, { recursive: true, force: true })))
    )
)

/** Turns off durability, because test databases exist only for seconds. */
const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_wal_size: "1GB",
  max_connections: "400"
}

const embeddedServer = Effect.gen(function* () {
  yield* sweep((pid) => !isAlive(pid))
  yield* Effect.addFinalizer(() => sweep((pid) => pid === process.pid || !isAlive(pid)))
  const dataDir = yield* temporaryDirectory
  const context = yield* Layer.build(Embedded.layer({ dataDir, settings }))
  const { host, user } = Context.get(context, Embedded)
  return `postgres://${user}@localhost/postgres?host=${encodeURIComponent(host)}`
})

const withDatabase = (server: string, database: string) => {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}

const administer = (server: string, statement: string) =>
  Effect.promise(async () => {
    const client = new Pg.Client(server)
    await client.connect()
    await client.query(statement)
    await client.end()
  })

const template = Effect.fnUntraced(function* (server: string) {
  const name = `gateway_template_${process.pid}`
  yield* Effect.acquireRelease(administer(server, `CREATE DATABASE ${name}`), () =>
    administer(server, `DROP DATABASE ${name} WITH (FORCE)`)
  )
  const layer = Layer.provide(Migrations.layer, Database.layerUrl(Redacted.make(withDatabase(server, name))))
  yield* Effect.provide(
    Effect.flatMap(Migrations, ({ migrate }) => Logger.withMinimumLogLevel(migrate, LogLevel.Warning)),
    layer
  )
  return name
})

interface Server {
  readonly url: string
  readonly template: string
  readonly close: () => Promise<void>
}

/**
 * Starts a server, or uses that of `TEST_DATABASE_URL`, for example to test another version. Its user must be permitted
 * to create databases.
 */
const start = async (): Promise<Server> => {
  const scope = Effect.runSync(Scope.make())
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const make = Effect.gen(function* () {
    const url = process.env["TEST_DATABASE_URL"] ?? (yield* embeddedServer)
    return { url, template: yield* template(url), close }
  })
  return Effect.runPromise(Scope.extend(make, scope)).catch(async (error: unknown) => {
    await close()
    throw error
  })
}

declare global {
  /** Each project of vitest.config.ts loads this file separately. They share one server through this global variable. */
  var testServer: { users: number; readonly started: Promise<Server> } | undefined
}

export default async function setup(project: TestProject) {
  const shared = (globalThis.testServer ??= { users: 0, started: start() })
  shared.users += 1
  const { close, template, url } = await shared.started
  project.provide("databaseServer", url)
  project.provide("databaseTemplate", template)
  return async () => {
    shared.users -= 1
    if (shared.users === 0) await close()
  }
}

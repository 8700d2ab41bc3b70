import { hostname } from "node:os"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import * as Pg from "pg"
import { Database } from "../../src/database/Database.ts"
import { Migrations, type Timeouts } from "../../src/database/Migrations.ts"
import { proxyTo } from "../harness/database/DatabaseProxy.ts"
import { eventually } from "../harness/database/Money.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { directoryWith } from "../harness/temporary.ts"

const directory = directoryWith({
  "0001_slow.sql": "SELECT pg_sleep(0.7); CREATE TABLE slow ();",
  "0002_more.sql": "CREATE TABLE more ();"
})

const program = (url: string, from: string, timeouts: Partial<Timeouts>) =>
  Effect.map(
    Layer.build(Layer.provide(Migrations.layerFrom(from, timeouts), Database.layerUrl(Redacted.make(url)))),
    (context) => ({ migrate: Effect.map(Context.get(context, Migrations).migrate, ({ names }) => names) })
  )

/** A session of somebody who took the lock and stands still. */
const frozen = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Pg.Client({ connectionString: url, application_name: "someone else" })
      client.on("error", () => {})
      await client.connect()
      await client.query("SELECT pg_advisory_lock(7025102614)")
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

describe("the lock of the migrations", () => {
  it.scopedLive("is not waited for longer than a while, and the refusal says who has it", function* () {
    const url = yield* Postgres.emptyUrl
    yield* frozen(url)
    const { migrate } = yield* program(url, yield* directory, { lock: "1 second" })
    const { message } = yield* Effect.flip(migrate)
    assert.match(message, /^The migrations are locked by "someone else" from \S.* \(PostgreSQL pid \d+, since 20\S+Z\)/)
  })

  it.scopedLive("is not waited for once there is nothing to apply", function* () {
    const url = yield* Postgres.emptyUrl
    const from = yield* directory
    const [one, other] = [yield* program(url, from, {}), yield* program(url, from, {})]
    const first = yield* Effect.fork(one.migrate)
    const second = yield* Effect.fork(other.migrate)
    const results = [yield* Fiber.join(first), yield* Fiber.join(second)]
    assert.deepStrictEqual(results.flat().toSorted(), ["0001_slow", "0002_more"])
    yield* frozen(url)
    assert.deepStrictEqual(yield* other.migrate, [])
  })

  it.scopedLive(
    "is taken from a process that stands still in the middle of a migration, and its work undone",
    function* () {
      const url = yield* Postgres.emptyUrl
      const from = yield* directory
      const door = yield* proxyTo(url)
      const stopped = yield* program(door.url, from, { idle: "1 second" })
      const lost = yield* Effect.fork(Effect.either(stopped.migrate))
      const observer = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new Pg.Client({ connectionString: url })
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      const sessions = Effect.promise(() =>
        observer.query(
          "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
        )
      )
      const { rows } = yield* eventually(sessions, ({ rowCount }) => rowCount === 1)
      assert.deepStrictEqual(rows, [
        { application_name: `generation-gateway migration, ${hostname()} pid ${process.pid}`.slice(0, 63) }
      ])
      yield* door.freeze
      const { migrate } = yield* program(url, from, { lock: "20 seconds" })
      assert.deepStrictEqual(yield* migrate, ["0001_slow", "0002_more"])
      yield* door.cut
      yield* Fiber.join(lost)
    }
  )

  it.scopedLive("of a table is not waited for by others behind a migration", function* () {
    const url = yield* Postgres.emptyUrl
    const client = () =>
      Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new Pg.Client({ connectionString: url })
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
    const [reader, writer] = [yield* client(), yield* client()]
    const ask = (one: Pg.Client, text: string) => Effect.promise(() => one.query(text))
    yield* ask(reader, "CREATE TABLE busy (id integer)")
    yield* ask(reader, "BEGIN; SELECT * FROM busy")
    const from = yield* directoryWith({ "0001_change.sql": "ALTER TABLE busy ADD COLUMN more integer;" })
    const { migrate } = yield* program(url, from, {})
    const migrated = yield* Effect.fork(migrate)
    const waiting = ask(writer, "SELECT FROM pg_locks WHERE NOT granted AND relation = 'busy'::regclass")
    yield* eventually(waiting, ({ rowCount }) => rowCount === 1)
    yield* ask(writer, "INSERT INTO busy VALUES (1)")
    assert.isNull(migrated.unsafePoll(), "the reader still reads")
    yield* ask(reader, "COMMIT")
    assert.deepStrictEqual(yield* Fiber.join(migrated), ["0001_change"])
  })
})

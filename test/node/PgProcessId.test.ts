import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Fiber, Layer } from "effect"
import * as Pg from "pg"
import { hideProcessId } from "../../src/node/Postgres.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"

const slow = "SELECT pg_sleep(600)"
const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

const observerOf = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Pg.Client(url)
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const poolOf = (url: string, prepare: (client: Pg.Client) => void) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Pg.Pool({
        connectionString: url,
        Client: class extends Pg.Client {
          constructor(config?: Pg.ClientConfig) {
            super(config)
            prepare(this)
            this.on("error", () => {})
          }
        }
      }).on("error", () => {})
    ),
    (pool) => Effect.promise(() => pool.end())
  )

/** Whether a statement goes on in the database after its fiber was interrupted. */
const outlives = (prepare: (client: Pg.Client) => void) =>
  Effect.gen(function* () {
    const url = yield* Postgres.emptyUrl
    const pool = yield* poolOf(url, prepare)
    const observer = yield* observerOf(url)
    yield* Effect.addFinalizer(() => Effect.promise(() => observer.query(`SELECT pg_terminate_backend(pid) ${others}`)))
    const isRunning = Effect.map(
      Effect.promise(() => observer.query(`SELECT ${others} AND state = 'active' AND query = '${slow}'`)),
      ({ rows }) => rows.length > 0
    )
    const sql = Context.get(
      yield* Layer.build(PgClient.layerFromPool({ acquire: Effect.succeed(pool) })),
      SqlClient.SqlClient
    )
    const fiber = yield* Effect.fork(sql.unsafe(slow))
    yield* Effect.repeat(isRunning, { until: (is) => is })
    yield* Fiber.interrupt(fiber)
    yield* Effect.sleep("200 millis")
    return yield* isRunning
  })

describe("an interrupted statement", () => {
  it.scopedLive("is cancelled by the process id of its connection, whatever that runs by then", function* () {
    assert.isFalse(yield* outlives(() => {}))
  })

  it.scopedLive("goes on where the process id is hidden", function* () {
    assert.isTrue(yield* outlives(hideProcessId))
  })
})

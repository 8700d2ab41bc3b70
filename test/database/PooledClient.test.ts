import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Option } from "effect"
import * as Pg from "pg"
import * as EventLoop from "../../src/services/runtime/EventLoop.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it, liveOver } from "../harness/It.ts"

/** Each turn of the event loop takes so long. */
const keepBusy = (millis: number) =>
  Effect.sync(() => {
    const until = performance.now() + millis
    while (performance.now() < until);
  }).pipe(Effect.zipRight(EventLoop.yieldTurn), Effect.forever)

describe("a connection of the pool", () => {
  it.scopedLive("is needed as the driver's own is pooled with a query that goes on after its timeout", function* () {
    const url = yield* Postgres.emptyUrl
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pg.Pool({ connectionString: url, max: 1, query_timeout: 200 }).on("error", () => {})),
      (made) => Effect.promise(() => made.end())
    )
    const fails = (text: string) =>
      Effect.acquireUseRelease(
        Effect.promise(() => pool.connect()),
        (client) => Effect.isFailure(Effect.tryPromise(() => client.query(text))),
        (client) => Effect.sync(() => client.release())
      )
    assert.isFalse(yield* fails("SELECT 1"))
    assert.isTrue(yield* fails("SELECT pg_sleep(600)"))
    assert.isTrue(yield* fails("SELECT 1"))
  })

  liveOver(Postgres.layerWith({ maxConnections: 1, queryTimeout: "100 millis" }))(
    "takes a busy process of ours for no silence of the server",
    function* () {
      const sql = yield* SqlClient
      // The server's own limit is a tenth shorter.
      yield* sql`SET statement_timeout = 0`
      const answer = sql`SELECT true AS is_answered FROM pg_sleep(0.2)`
      assert.deepStrictEqual(yield* Effect.race(answer, keepBusy(100)), [{ isAnswered: true }])
      assert.isTrue(yield* Effect.isFailure(sql`SELECT FROM pg_sleep(10)`))
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 1 }))(
    "prepares what it is asked often, and nothing else",
    function* () {
      const sql = yield* SqlClient
      const often = (n: number) => sql`SELECT ${n}::int + 1 AS next`
      const answers = yield* Effect.forEach(
        Array.from({ length: 170 }, (_, n) => n),
        often
      )
      assert.deepStrictEqual(
        answers.flat(),
        Array.from({ length: 170 }, (_, n) => ({ next: n + 1 }))
      )
      yield* Effect.forEach(
        Array.from({ length: 300 }, (_, n) => n),
        (n) => sql.unsafe(`SELECT $1::int AS c${n}`, [n])
      )
      yield* Effect.replicateEffect(sql.unsafe("SELECT 1; SELECT 2"), 30)
      yield* often(1)
      const prepared = yield* sql`SELECT statement FROM pg_prepared_statements`
      assert.deepStrictEqual(prepared, [{ statement: "SELECT $1::int + 1 AS next" }])
    }
  )

  liveOver(Postgres.layerWith({ maxConnections: 1 }))("goes on after a prepared statement has failed", function* () {
    const sql = yield* SqlClient
    const divide = (by: number) => sql<{ result: number }>`SELECT 10 / ${by}::int AS result`
    const tried = yield* Effect.forEach(
      Array.from({ length: 30 }, (_, n) => n % 3),
      (by) => Effect.option(divide(by))
    )
    assert.lengthOf(tried.filter(Option.isSome), 20)
    assert.deepStrictEqual(yield* divide(5), [{ result: 2 }])
  })
})

import { createServer } from "node:net"
import { Effect, Option } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { failConnecting, isWaitTimeout, judgeConnecting } from "../../src/node/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"

const lost = new Error("the database is lost")

const poolOf = (connectionString: string, failure: () => Error | undefined) =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new Pg.Pool({
          connectionString,
          connectionTimeoutMillis: 2000,
          Client: class extends Pg.Client {
            constructor(config?: Pg.ClientConfig) {
              super(config)
              this.connect = failConnecting(super.connect.bind(this), failure)
            }
          }
        })
    ),
    (pool) => Effect.promise(() => pool.end())
  )

const query = (pool: Pg.Pool) =>
  Effect.tryPromise({ try: () => pool.query("SELECT 1 AS one"), catch: (error) => error })

describe("a pool of pg whose connecting fails", () => {
  it.scopedLive("passes the failure on, as a promise and to a callback, until it is over", function* () {
    let failure: Error | undefined = lost
    const pool = yield* poolOf(inject("databaseServer"), () => failure)
    assert.strictEqual(yield* Effect.flip(query(pool)), lost)
    assert.strictEqual(
      yield* Effect.async<unknown>((resume) => pool.connect((error) => resume(Effect.succeed(error)))),
      lost
    )
    failure = undefined
    assert.deepStrictEqual((yield* query(pool)).rows, [{ one: 1 }])
  })

  it.scopedLive("fails at once where a silent server would be waited for", function* () {
    const url = `postgres://u@127.0.0.1:${yield* listen(createServer())}/d`
    const outcomeWith = (failure: Error | undefined) =>
      Effect.flatMap(
        poolOf(url, () => failure),
        (pool) => Effect.timeoutOption(Effect.flip(query(pool)), "300 millis")
      )
    assert.deepStrictEqual(yield* outcomeWith(undefined), Option.none())
    assert.deepStrictEqual(yield* outcomeWith(lost), Option.some(lost))
  })
})

describe("a pool of pg with one connection open, whose next one is refused", () => {
  const refused = new Error("too many connections")
  const made = (judge?: (error: Error, pool: Pg.Pool) => Error | undefined) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        let clients = 0
        const pool = new Pg.Pool({
          connectionString: inject("databaseServer"),
          connectionTimeoutMillis: 1000,
          Client: class extends Pg.Client {
            constructor(config?: Pg.ClientConfig) {
              super(config)
              clients += 1
              const isFirst = clients === 1
              this.connect = failConnecting(super.connect.bind(this), () => (isFirst ? undefined : refused))
            }
          }
        })
        if (judge !== undefined) pool.connect = judgeConnecting(pool.connect.bind(pool), (error) => judge(error, pool))
        return pool
      }),
      (pool) => Effect.promise(() => pool.end())
    )
  const twoAtOnce = (pool: Pg.Pool) =>
    Effect.all([Effect.either(query(pool)), Effect.either(query(pool))], { concurrency: 2 })

  it.scopedLive("fails the second of two statements", function* () {
    const pool = yield* made()
    assert.deepStrictEqual(
      (yield* twoAtOnce(pool)).map(({ _tag }) => _tag),
      ["Right", "Left"]
    )
  })

  it.scopedLive("serves both, one after the other, if the refusal lets the second wait", function* () {
    const pool = yield* made((_, { options }) => {
      options.max = 1
      return undefined
    })
    assert.deepStrictEqual(
      (yield* twoAtOnce(pool)).map(({ _tag }) => _tag),
      ["Right", "Right"]
    )
  })

  it.scopedLive("reports a timeout of the wait with a known message", function* () {
    const pool = yield* made((error) => error)
    pool.options.max = 1
    const client = yield* Effect.promise(() => pool.connect())
    const error = yield* Effect.flip(query(pool))
    client.release()
    assert.isTrue(error instanceof Error && isWaitTimeout(error))
  })
})

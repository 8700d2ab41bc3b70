import { Clock, Data, Duration, Effect, Either } from "effect"
import * as Pg from "pg"
import * as Metrics from "../services/metrics/Metrics.ts"
import { sleepUnlessStalled } from "../services/runtime/EventLoop.ts"
import type { GuardedPool } from "./GuardedPool.ts"
import * as Session from "./Session.ts"

const every = Duration.millis(250)
/** Per probe; the server is lost after a second one, on a new connection. */
const answerWithin = Duration.millis(1_750)

const tooManyConnections = "53300"
const isFull = (error: unknown) => error instanceof Pg.DatabaseError && error.code === tooManyConnections

class TooSlow extends Data.TaggedError("TooSlow")<{}> {
  override readonly message = "it does not answer"
}

/** Probes the server beside the pool; logs once when it is lost and once when it is back. */
export const watch = Effect.fnUntraced(function* (
  config: Pg.ClientConfig,
  pool: GuardedPool,
  reason: (error: unknown) => string
) {
  let client: Pg.Client | undefined
  let lostAt: bigint | undefined

  const disconnect = Effect.sync(() => {
    client?.connection.stream.destroy()
    client = undefined
  })
  const connectOnce = async () => {
    if (client !== undefined) return client
    client = new Pg.Client(config).on("error", () => {})
    return Session.open(client)
  }
  const ask = Effect.tryPromise({
    try: async () => {
      const connection = await connectOnce()
      const { rows } = await connection.query<{ readonly refuses: boolean }>(
        "SELECT current_setting('transaction_read_only')::boolean AS refuses"
      )
      if (rows[0]?.refuses === true) throw new Error("it takes no writes")
    },
    catch: (error) => error
  }).pipe(
    Effect.raceFirst(Effect.zipRight(sleepUnlessStalled(answerWithin), new TooSlow())),
    Effect.tapError(() => disconnect),
    Effect.catchIf(isFull, () => Effect.void)
  )
  const askTwice = Effect.suspend(() => {
    const { answers } = pool
    // An overloaded machine may be late with the probe while it answers others.
    const isResponsive = (error: unknown) => error instanceof TooSlow && pool.answers > answers
    return Effect.catchIf(Effect.retry(ask, { times: 1 }), isResponsive, () => Effect.void)
  })

  const check = Effect.gen(function* () {
    const answer = yield* Effect.either(askTwice)
    const now = yield* Clock.currentTimeNanos
    if (Either.isLeft(answer) && lostAt === undefined) {
      lostAt = now
      const why = reason(answer.left)
      Metrics.databaseUp.unsafeUpdate(0, [])
      pool.lose(`The database is out of reach: ${why}`)
      yield* Effect.logError(`The database is out of reach (${why}); requests fail until it is back`)
    }
    if (Either.isRight(answer) && lostAt !== undefined) {
      Metrics.databaseUp.unsafeUpdate(1, [])
      pool.regain()
      yield* Effect.logInfo(
        `The database is back after ${Duration.format(Duration.millis(Number((now - lostAt) / 1_000_000n)))}`
      )
      lostAt = undefined
    }
  })

  Metrics.databaseUp.unsafeUpdate(1, [])
  yield* Effect.addFinalizer(() => disconnect)
  yield* check.pipe(
    Effect.zipRight(Effect.sleep(every)),
    Effect.forever,
    // Sockets keep real time, whatever clock the process is given.
    Effect.withClock(Clock.make()),
    Effect.interruptible,
    Effect.forkScoped
  )
})

import { Clock, Data, Duration, Effect, Either, Option } from "effect"
import * as Pg from "pg"
import { Reloads } from "../services/control/ControlFollower.ts"
import * as Metrics from "../services/metrics/Metrics.ts"
import { sleepUnlessStalled } from "../services/runtime/EventLoop.ts"
import { type DatabaseServer, openSession, type Server } from "./DatabaseServer.ts"
import type { GuardedPool } from "./GuardedPool.ts"

const probeEvery = Duration.millis(250)
/** After refusals, pauses between probes grow to this, because some servers lock a role after many refused logins. */
const maxPause = Duration.seconds(5)
/** The time limit of a probe. If it fails, a second one on a new connection decides whether the server is unreachable. */
const answerWithin = Duration.millis(1_750)
/** Shorter than the driver's own time limit, whose error lacks the cause that the log shows. */
const connectWithin = Duration.seconds(4)

/** Returns whether the server is starting, shutting down or read-only. */
const isUnavailable = (code: string | undefined) => code?.startsWith("57P") === true || code === "25006"

/**
 * Returns whether the server or a pooler refused a connection, for example because of a wrong password or a connection
 * limit.
 */
const isRefusal = (error: unknown): boolean => error instanceof Pg.DatabaseError && !isUnavailable(error.code)

class TooSlow extends Data.TaggedError("TooSlow")<{}> {
  override readonly message = "it does not answer"
}

const failAfter =
  (limit: Duration.Duration) =>
  <A>(self: Effect.Effect<A, unknown>) =>
    Effect.raceFirst(self, Effect.zipRight(sleepUnlessStalled(limit), new TooSlow()))

const destroy = (client: Pg.Client) => Effect.sync(() => client.connection.stream.destroy())

const formatSince = (since: bigint) =>
  Effect.map(Clock.currentTimeNanos, (now) => Duration.format(Duration.millis(Number((now - since) / 1_000_000n))))

/**
 * Probes the server over a connection of its own. After a refused connection, also probes whether new ones are accepted. Logs
 * when an outage or a refusal begins and ends. Reads the credentials again after a refusal and at each reload.
 */
export const watch = Effect.fnUntraced(function* (
  server: DatabaseServer,
  common: Pg.ClientConfig,
  pool: GuardedPool,
  reason: (error: unknown) => string
) {
  const mutex = yield* Effect.makeSemaphore(1)
  let client: Pg.Client | undefined
  let lostAt: bigint | undefined
  let refusedAt: bigint | undefined
  let pause = probeEvery

  const disconnect = Effect.suspend(() => {
    const last = client
    client = undefined
    return last === undefined ? Effect.void : destroy(last)
  })

  const open = (target: Server) =>
    Effect.suspend(() => {
      let opened: Pg.Client | undefined
      return Effect.tryPromise({
        try: () => {
          opened = new Pg.Client({ ...target, ...common }).on("error", () => {})
          return openSession(opened)
        },
        catch: (error) => error
      }).pipe(Effect.onError(() => (opened === undefined ? Effect.void : destroy(opened))))
    })

  const recordAccepted = Effect.suspend(() => {
    pool.accept()
    if (refusedAt === undefined) return Effect.void
    const since = refusedAt
    refusedAt = undefined
    Metrics.databaseUp.unsafeUpdate(1, [])
    return Effect.flatMap(formatSince(since), (time) =>
      Effect.logInfo(`The database accepts new connections again after ${time}`)
    )
  })

  const adopt = (next: Server) =>
    Effect.suspend(() => {
      server.current = next
      pool.adopt(next)
      return Effect.zipRight(
        disconnect,
        Effect.logInfo("The database accepts the new credentials of DATABASE_URL; connections are replaced")
      )
    })

  const openOrRenew = Effect.suspend(() => open(server.current)).pipe(
    Effect.catchIf(isRefusal, (error) =>
      Effect.flatMap(
        server.reread,
        Option.match({
          onNone: () => Effect.fail(error),
          onSome: (next) => Effect.tap(open(next), () => adopt(next))
        })
      )
    ),
    Effect.tap(() => recordAccepted)
  )

  const probeServer = Effect.gen(function* () {
    const connection = (client ??= yield* openOrRenew)
    const { rows } = yield* Effect.tryPromise({
      try: () =>
        connection.query<{ readonly refuses: boolean }>(
          "SELECT current_setting('transaction_read_only')::boolean AS refuses"
        ),
      catch: (error) => error
    })
    if (rows[0]?.refuses === true) return yield* Effect.fail(new Error("it is read-only"))
  }).pipe(
    failAfter(answerWithin),
    Effect.tapError(() => disconnect)
  )
  const probeServerTwice = Effect.suspend(() => {
    const { answers } = pool
    // Ignores a late probe while other statements get responses: then this machine is overloaded, and the server works.
    const isResponsive = (error: unknown) => error instanceof TooSlow && pool.answers > answers
    return probeServer.pipe(
      Effect.retry({ times: 1, while: (error) => !isRefusal(error) }),
      Effect.catchIf(isResponsive, () => Effect.void)
    )
  })

  const lose = Effect.fnUntraced(function* (error: unknown) {
    if (lostAt !== undefined) return
    lostAt = yield* Clock.currentTimeNanos
    refusedAt = undefined
    const cause = reason(error)
    Metrics.databaseUp.unsafeUpdate(0, [])
    pool.lose(cause)
    yield* Effect.logError(`The database is unreachable (${cause}). Requests fail until it is back`)
  })
  const regain = Effect.fnUntraced(function* () {
    pause = probeEvery
    if (lostAt === undefined) return
    const time = yield* formatSince(lostAt)
    lostAt = undefined
    Metrics.databaseUp.unsafeUpdate(1, [])
    pool.regain()
    yield* Effect.logInfo(`The database is back after ${time}`)
  })

  const check = mutex.withPermits(1)(
    Effect.gen(function* () {
      const answer = yield* Effect.either(probeServerTwice)
      pool.cutSlow(Duration.toMillis(answerWithin))
      if (Either.isRight(answer)) return yield* regain()
      pause = isRefusal(answer.left) ? Duration.min(Duration.times(pause, 2), maxPause) : probeEvery
      // If the server refuses only new connections, the pool keeps using its open ones.
      if (isRefusal(answer.left) && lostAt === undefined && pool.usable > 0) return pool.limit()
      return yield* lose(answer.left)
    })
  )

  const refuse = Effect.fnUntraced(function* (error: unknown) {
    refusedAt = yield* Clock.currentTimeNanos
    const cause = reason(error)
    Metrics.databaseUp.unsafeUpdate(0, [])
    pool.refuse(cause)
    const effect = pool.usable === 0 ? "requests fail" : `requests share ${pool.usable} open connections`
    yield* Effect.logError(`The database refuses new connections (${cause}); ${effect} until it accepts them`)
  })

  /** Checks whether new connections are accepted. Reports a refusal, unless the whole server is unreachable. */
  const confirm = Effect.gen(function* () {
    if (lostAt !== undefined) return false
    const probe = yield* Effect.either(mutex.withPermits(1)(failAfter(connectWithin)(openOrRenew)))
    if (Either.isRight(probe)) {
      yield* destroy(probe.right)
      return true
    }
    yield* check
    if (lostAt === undefined && refusedAt === undefined) yield* refuse(probe.left)
    return false
  })

  const watchRefusals = Effect.gen(function* () {
    yield* pool.awaitRefusal
    let wait = probeEvery
    while (!(yield* confirm)) {
      yield* Effect.sleep(wait)
      wait = Duration.min(Duration.times(wait, 2), maxPause)
    }
  })

  const reload = Effect.gen(function* () {
    const next = yield* server.reread
    if (Option.isNone(next)) return
    const probe = yield* Effect.either(failAfter(connectWithin)(open(next.value)))
    if (Either.isLeft(probe)) {
      return yield* Effect.logError(`The database credentials were not replaced: ${reason(probe.left)}`)
    }
    yield* Effect.zipRight(destroy(probe.right), adopt(next.value))
    yield* recordAccepted
  }).pipe(mutex.withPermits(1))

  Metrics.databaseUp.unsafeUpdate(1, [])
  yield* Effect.addFinalizer(() => disconnect)
  yield* Effect.flatMap(Reloads, ({ register }) => register(reload))
  yield* Effect.all(
    [
      Effect.zipRight(
        check,
        Effect.suspend(() => Effect.sleep(pause))
      ),
      watchRefusals
    ].map(Effect.forever),
    {
      concurrency: "unbounded",
      discard: true
    }
  ).pipe(
    // Uses the real clock even in tests with a test clock, because sockets use real time.
    Effect.withClock(Clock.make()),
    Effect.interruptible,
    Effect.forkScoped
  )
})

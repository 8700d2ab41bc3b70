import { SqlClient, Statement } from "@effect/sql"
import { Deferred, Duration, Effect, Fiber, Struct, TestClock, TestServices } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { done, rendering, type Script } from "../../fakes/VideoProviderFake.ts"
import { eventually, type NeverHappened, whileLocked } from "../../harness/database/Money.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { assertDelivered, makeGate, price, submitsOnly, type VideoBench, videoTest, withBench } from "./VideoBench.ts"

const times = (count: number) => Array.from({ length: count }, (_, index) => index)

const begun = Effect.fnUntraced(function* (bench: VideoBench, script: Script) {
  bench.provider.on("m@a", script)
  const process = yield* bench.process({ lookEvery: "1 hour" })
  yield* process.videos.create(bench.job())
  return process
})

const allOver = ({ hurry, rows }: VideoBench, count: number) =>
  eventually(
    Effect.zipRight(hurry, rows),
    (all) => all.filter(({ step }) => step === "over").length === count,
    "50 seconds"
  )

/** Statements of the test's own, so many that whatever was about to happen has. */
const meanwhile = ({ hurry }: VideoBench) => Effect.repeatN(hurry, 60)

describe.concurrent("two instances with one database", () => {
  videoTest("work on each video one at a time and complete all of them once", function* (bench) {
    const { charged, job, process, provider, store } = bench
    const both = yield* Effect.all([process(), process()])
    const slowly = Effect.sleep("15 millis")
    provider.on("m@a", { poll: [Effect.zipRight(slowly, rendering), Effect.zipRight(slowly, done)] })
    yield* Effect.forEach(
      times(20),
      (index) => both[index % 2]?.videos.create(job({ prompt: String(index) })) ?? Effect.void,
      { concurrency: 5 }
    )
    const all = yield* allOver(bench, 20)
    assert.isTrue(all.every(({ status }) => status === "completed"))
    assert.strictEqual(provider.mostAtOnce, 1)
    assert.lengthOf(provider.calls("submit"), 20)
    assert.lengthOf(provider.calls("download"), 20)
    assert.strictEqual(store.names.public.length, 20)
    yield* charged(...times(20).map(() => price))
  })

  videoTest("take over a video once its lease has lapsed and not before", function* (bench) {
    const { lapse, process, provider, row } = bench
    const polling = yield* makeGate
    yield* begun(bench, { poll: [Effect.zipRight(polling.wait, rendering), done] })
    yield* polling.reached
    const { lease } = yield* row
    yield* process()
    yield* meanwhile(bench)
    assert.deepStrictEqual([(yield* row).lease, provider.calls("poll")], [lease, ["m@a"]])
    yield* lapse
    const { polls } = yield* assertDelivered(bench)
    assert.strictEqual(polls, 1)
    yield* polling.open
    yield* meanwhile(bench)
    assert.deepInclude(yield* row, { status: "completed", polls: 1, idle: true })
  })

  videoTest("take over at once what the other releases when it stops", function* (bench) {
    const { process, provider, row, sql } = bench
    const polling = yield* makeGate
    const first = yield* begun(bench, { poll: [polling.wait.pipe(Effect.zipRight(rendering)), done] })
    yield* polling.reached
    yield* first.stop
    assert.deepInclude(yield* row, { step: "rendering", lease: null })
    assert.lengthOf(yield* sql`SELECT id FROM videos WHERE next_at <= now()`, 1)
    yield* process()
    assert.deepInclude(yield* assertDelivered(bench), { uncertainSubmits: 0 })
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
  })
})

describe.concurrent("a lease", () => {
  const renewed = (bench: VideoBench): Effect.Effect<unknown, NeverHappened> =>
    eventually(
      Effect.orDie(bench.sql`SELECT id FROM videos WHERE lease_until > now() + interval '20 seconds'`),
      (rows) => rows.length > 0,
      "20 seconds"
    )

  videoTest("lasts as long as the timings say", function* (bench) {
    const { job, sql } = bench
    const { videos } = yield* bench.process({ ...submitsOnly, timings: { videoLease: Duration.minutes(10) } })
    yield* videos.create(job())
    yield* bench.hurry
    yield* eventually(
      Effect.orDie(sql`SELECT id FROM videos WHERE lease_until > now() + interval '5 minutes'`),
      (rows) => rows.length === 1
    )
  })

  videoTest("is renewed during work even while another job's row is locked", function* (bench) {
    const { job, provider, rows, sql } = bench
    const polling = yield* makeGate
    provider.on("m@a", { poll: [Effect.zipRight(polling.wait, done)] })
    const { videos } = yield* bench.process({ timings: { renewVideoLeaseEvery: Duration.seconds(1) } })
    yield* videos.create(job({ prompt: "kept" }))
    const { video } = yield* videos.create(job())
    yield* eventually(
      Effect.sync(() => provider.busy.length),
      (busy) => busy === 2
    )
    const leases = (yield* rows).map(({ lease }) => lease)
    const over = yield* Deferred.make<void>()
    const kept = whileLocked(sql`SELECT id FROM videos WHERE id <> ${video.id} FOR UPDATE`, Deferred.await(over)).pipe(
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    yield* sql`UPDATE videos SET lease_until = now() + interval '16 seconds'`
    const keeping = yield* Effect.fork(kept)
    yield* renewed(bench)
    assert.deepStrictEqual((yield* rows).map(Struct.get("lease")), leases)
    yield* Deferred.succeed(over, undefined)
    yield* Fiber.join(keeping)
    yield* polling.open
    yield* allOver(bench, 2)
    yield* bench.charged(price, price)
  })
})

describe.concurrent("an instance with many videos", () => {
  videoTest("waits for a submit under way when it stops, and releases everything else", function* (bench) {
    const { job, process, provider, rows } = bench
    const polling = yield* makeGate
    const submitting = yield* makeGate
    provider.on("m@a", { poll: [Effect.zipRight(polling.wait, done), done] })
    const first = yield* process()
    yield* first.videos.create(job({ prompt: "polled" }))
    yield* polling.reached
    provider.on("m@a", { submit: [submitting.wait] })
    const creating = yield* Effect.fork(first.videos.create(job({ prompt: "submitted" })))
    yield* submitting.reached
    const stopping = yield* Effect.fork(first.stop)
    const [polled] = yield* eventually(rows, ([one]) => one?.lease === null)
    assert.deepInclude(polled, { step: "rendering", uncertainSubmits: 0 })
    assert.deepInclude((yield* rows)[1], { step: "submitting" })
    yield* submitting.open
    yield* Fiber.join(stopping)
    yield* Fiber.await(creating)
    assert.deepInclude((yield* rows)[1], { step: "rendering", lease: null, uncertainSubmits: 0, handle: "m@a 2" })
    yield* process()
    yield* allOver(bench, 2)
    yield* bench.charged(price, price)
  })

  videoTest("works on a limited number of videos at a time and finishes all of them", function* (bench) {
    const { hurry, job, process, provider, rows } = bench
    const polling = yield* makeGate
    const first = yield* process({ lookEvery: "1 hour" })
    provider.on("m@a", { poll: [Effect.zipRight(polling.wait, done)] })
    yield* Effect.forEach(times(40), (index) => first.videos.create(job({ prompt: String(index) })), { concurrency: 8 })
    yield* first.stop
    const second = yield* process()
    const busy = Effect.zipRight(
      hurry,
      Effect.sync(() => provider.busy.length)
    )
    yield* eventually(busy, (count) => count === 16)
    yield* meanwhile(bench)
    assert.strictEqual(provider.busy.length, 16)
    assert.lengthOf(
      (yield* rows).filter(({ lease }) => lease !== null),
      16
    )
    // Its own customers do not wait behind them.
    const { video } = yield* second.videos.create(job({ prompt: "new" }))
    assert.strictEqual(video.status, "queued")
    yield* polling.open
    yield* allOver(bench, 41)
    yield* bench.charged(...times(41).map(() => price))
  })

  videoTest("is not blocked by a video that it cannot read", function* (bench) {
    const { desk, hurry, job, process, rows, sql } = bench
    const first = yield* process(submitsOnly)
    const { video } = yield* first.videos.create(job())
    yield* first.videos.create(job())
    yield* first.stop
    yield* sql`UPDATE videos SET route = '{"of": "another version"}' WHERE id = ${video.id}`
    yield* process()
    yield* allOver(bench, 1)
    assert.deepStrictEqual((yield* desk.find(OrganizationScope.all, video.id)).route, null)
    yield* sql`UPDATE videos SET deadline = now() WHERE id = ${video.id}`
    yield* allOver(bench, 2)
    yield* eventually(Effect.zipRight(hurry, rows), (all) => all.every(({ idle }) => idle))
    const { error, status } = yield* desk.find(OrganizationScope.all, video.id)
    assert.deepStrictEqual([status, error?.code], ["failed", "timeout"])
    yield* bench.charged(price)
  })
})

/** A process at its usual pace, and how many statements about videos it has made. */
const counted = Effect.fnUntraced(function* ({ process }: VideoBench) {
  let statements = 0
  const counting: Statement.Statement.Transformer = (statement) =>
    Effect.sync(() => {
      const [text] = statement.compile()
      if (text.includes("videos")) statements += 1
      return statement
    })
  yield* Statement.withTransformer(process({ lookEvery: "5 seconds" }), counting)
  const count = Effect.sync(() => statements)
  return { count, becomes: (expected: number) => TestServices.provideLive(eventually(count, (n) => n >= expected)) }
})

/** Statements of the test's own, so many that whatever was about to happen has. */
const pause = ({ sql }: VideoBench) => Effect.repeatN(sql`SELECT pg_sleep(0.002)`, 20)

/** Looks with nothing to be done, each at least 5 s of the clock after the last. */
const assertQuiet = Effect.fnUntraced(function* (bench: VideoBench) {
  const { becomes, count } = yield* counted(bench)
  yield* becomes(2)
  for (let looks = 1; looks <= 4; looks += 1) {
    let seconds = 0
    yield* pause(bench)
    for (; (yield* count) === 2 * looks && seconds < 20; seconds += 1) {
      yield* TestClock.adjust("1 second")
      yield* pause(bench)
    }
    assert.isAtLeast(seconds, 5)
    yield* becomes(2 * looks + 2)
    assert.strictEqual(yield* count, 2 * looks + 2)
  }
})

/** So many jobs that a provider renders, of a process that is gone; nobody has asked after them. */
const rendered = Effect.fnUntraced(function* (
  { job, process, provider, sql }: VideoBench,
  count: number,
  rest: string
) {
  const creator = yield* process({ lookEvery: "1 hour" })
  provider.on("m@a", { poll: [rendering] })
  yield* Effect.forEach(Array.from({ length: count }), () => creator.videos.create(job()), { concurrency: 4 })
  yield* creator.stop
  yield* sql`UPDATE videos SET polls = 0, lease = NULL, lease_until = NULL, next_at = now() + ${rest}::interval`
  provider.called.length = 0
})

describe.concurrent("an instance", () => {
  it.effect("queries the database twice in 5 s while there are no videos", () => withBench(assertQuiet))

  it.effect("queries the database twice in 5 s while 20 videos are waiting", () =>
    withBench((bench) =>
      Effect.gen(function* () {
        yield* rendered(bench, 20, "1 hour")
        yield* assertQuiet(bench)
        assert.deepStrictEqual(bench.provider.calls("poll"), [])
      })
    )
  )

  it.effect("queries the database a few times for each poll, and not until the next is due", () =>
    withBench((bench) =>
      Effect.gen(function* () {
        const { provider, rows } = bench
        yield* rendered(bench, 20, "0")
        const { count } = yield* counted(bench)
        const rested = eventually(rows, (all) => all.every(({ lease, polls }) => lease === null && polls >= 1))
        yield* TestServices.provideLive(rested)
        yield* pause(bench)
        // It is polled and put to rest; for each there may be a look for the next, and one for when that is due.
        assert.isAtMost(yield* count, provider.calls("poll").length * 4 + 4)
      })
    )
  )
})

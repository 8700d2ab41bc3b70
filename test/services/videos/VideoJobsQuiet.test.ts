import { Statement } from "@effect/sql"
import { assert, describe, it } from "@effect/vitest"
import { Effect, TestClock, TestServices } from "effect"
import { rendering } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { type VideoBench, withBench } from "../../harness/database/VideoBench.ts"

/** A process at its usual pace, and how many statements about videos it has made. */
const counted = ({ process }: VideoBench) =>
  Effect.gen(function* () {
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
const meanwhile = ({ sql }: VideoBench) => Effect.repeatN(sql`SELECT pg_sleep(0.002)`, 20)

/** Looks with nothing to be done, each at least 5 s of the clock after the last. */
const assertQuiet = (bench: VideoBench) =>
  Effect.gen(function* () {
    const { becomes, count } = yield* counted(bench)
    yield* becomes(2)
    for (let looks = 1; looks <= 4; looks += 1) {
      let seconds = 0
      yield* meanwhile(bench)
      for (; (yield* count) === 2 * looks && seconds < 20; seconds += 1) {
        yield* TestClock.adjust("1 second")
        yield* meanwhile(bench)
      }
      assert.isAtLeast(seconds, 5)
      yield* becomes(2 * looks + 2)
      assert.strictEqual(yield* count, 2 * looks + 2)
    }
  })

/** So many jobs that a provider renders, of a process that is gone; nobody has asked after them. */
const rendered = ({ job, process, provider, sql }: VideoBench, count: number, rest: string) =>
  Effect.gen(function* () {
    const creator = yield* process({ lookEvery: "1 hour" })
    provider.on("m@a", { poll: [rendering] })
    yield* Effect.forEach(Array.from({ length: count }), () => creator.videos.create(job()), { concurrency: 4 })
    yield* creator.stop
    yield* sql`UPDATE videos SET polls = 0, lease = NULL, lease_until = NULL, next_at = now() + ${rest}::interval`
    provider.called.length = 0
  })

describe.concurrent("a process asks the database", () => {
  it.effect("twice in 5 s while there are no videos", () => withBench(assertQuiet))

  it.effect("twice in 5 s while 20 videos rest", () =>
    withBench((bench) =>
      Effect.gen(function* () {
        yield* rendered(bench, 20, "1 hour")
        yield* assertQuiet(bench)
        assert.deepStrictEqual(bench.provider.calls("poll"), [])
      })
    )
  )

  it.effect("a few times for each look at a render, and no more until the next is due", () =>
    withBench((bench) =>
      Effect.gen(function* () {
        const { provider, rows } = bench
        yield* rendered(bench, 20, "0")
        const { count } = yield* counted(bench)
        const rested = eventually(rows, (all) => all.every(({ lease, polls }) => lease === null && polls >= 1))
        yield* TestServices.provideLive(rested)
        yield* meanwhile(bench)
        // It is polled and put to rest; for each there may be a look for the next, and one for when that is due.
        assert.isAtMost(yield* count, provider.calls("poll").length * 4 + 4)
      })
    )
  )
})

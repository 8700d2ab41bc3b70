import { Duration, Effect, Either, Exit, Fiber, Schedule, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { proxyTo } from "../../harness/database/DatabaseProxy.ts"
import { eventually, lock, waitingForLock } from "../../harness/database/Money.ts"
import { assert, describe } from "../../harness/It.ts"
import {
  assertDelivered,
  type ProcessOptions,
  picture,
  price,
  submitsOnly,
  type VideoBench,
  videoTest
} from "./VideoBench.ts"

/** For tests that wait until a request has failed. */
const timings = { settleWithin: Duration.seconds(3) }

/** A process that can lose its database, and that finds no work by itself. */
const losing = Effect.fnUntraced(function* ({ process, url }: VideoBench, options: ProcessOptions = {}) {
  const door = yield* proxyTo(url)
  const { stop, videos } = yield* process({ ...submitsOnly, ...options, url: door.url })
  const isCut = eventually(door.isCut, (cut) => cut)
  return { door, videos, isCut, stop }
})

describe.concurrent("a video whose instance loses its database", () => {
  for (const when of ["before", "after"] as const) {
    videoTest(`${when} the COMMIT that creates it exists once`, function* (bench) {
      const { job, money, process, store } = bench
      const { door, isCut, stop, videos } = yield* losing(bench)
      yield* door.cutAt("COMMIT", when)
      const creating = yield* Effect.fork(videos.create(job({ key, references: [picture] })))
      yield* isCut
      yield* door.mend
      const { video } = yield* Fiber.join(creating)
      assert.deepInclude(yield* money, { held: price, openHolds: 1 })
      assert.deepStrictEqual([store.names.public.length, store.names.private.length], [0, 1])
      yield* stop
      yield* process()
      assert.deepInclude(yield* assertDelivered(bench), { id: video.id, uncertainSubmits: 0 })
    })

    videoTest(`${when} the COMMIT that creates it does not exist if an outage outlasts its request`, function* (bench) {
      const { charged, job, org, provider, rows, sql } = bench
      const { door, videos } = yield* losing(bench, { timings })
      yield* door.cutAt("COMMIT", when)
      const exit = yield* Effect.exit(videos.create(job({ key })))
      assert.isTrue(Exit.isFailure(exit))
      assert.lengthOf(yield* rows, when === "before" ? 0 : 1)
      yield* door.mend
      yield* eventually(sql`SELECT id FROM all_holds WHERE state = 'open'`, (open) => open.length === 0)
      yield* charged()
      assert.deepStrictEqual(provider.called, [])
      assert.deepStrictEqual(yield* videos.list(org, 100), [])
      // The key is freed behind the request's back, too.
      const again = Effect.retry(videos.create(job({ key })), {
        schedule: Schedule.spaced("100 millis"),
        times: 100,
        while: ({ _tag }) => _tag === "IdempotencyConflict"
      })
      assert.isFalse((yield* again).replayed)
    })

    videoTest(`${when} the COMMIT that completes it is charged once and keeps its file`, function* (bench) {
      const { hurry, job, money, store } = bench
      const door = yield* proxyTo(bench.url)
      const { videos } = yield* bench.process({ url: door.url })
      yield* videos.create(job({ references: [picture] }))
      store.after(door.cutAt("COMMIT", when))
      yield* hurry
      yield* eventually(door.isCut, (cut) => cut)
      assert.deepInclude(yield* money, { charges: when === "before" ? [] : [price] })
      yield* door.mend
      yield* eventually(
        Effect.sync(() => store.names.private.length),
        (left) => left === 0
      )
      yield* assertDelivered(bench)
      assert.deepStrictEqual(bench.provider.calls("download"), ["m@a"])
    })
  }
})

const key = "k"

/** Nobody can end a job that was not told of, until it is let; counts who tried. */
const obstructed = Effect.fnUntraced(function* ({ sql }: VideoBench) {
  yield* sql`CREATE SEQUENCE tries`
  yield* sql`CREATE FUNCTION obstruct() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM nextval('tries'); RAISE EXCEPTION 'not now'; END $$`
  yield* sql`CREATE TRIGGER obstructed BEFORE UPDATE ON videos FOR EACH ROW
      WHEN (NEW.status = 'failed' AND OLD.accepted_at IS NULL) EXECUTE FUNCTION obstruct()`
  const tries = sql`SELECT last_value::int AS tries FROM tries`.pipe(
    Effect.flatMap(Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ tries: Schema.Number })))),
    Effect.map(([row]) => row.tries)
  )
  return { tries, clear: sql`DROP TRIGGER obstructed ON videos` }
})

describe.concurrent("a video whose request was answered with a failure", () => {
  videoTest("is not continued by its own instance, which has yet to fail it", function* (bench) {
    const { charged, job, lapse, org, provider, row, rows, sql } = bench
    const door = yield* proxyTo(bench.url)
    const { videos } = yield* bench.process({ url: door.url, timings })
    yield* door.cutAt("COMMIT", "after")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(videos.create(job({ key })))))
    assert.lengthOf(yield* rows, 1)
    yield* lapse
    const { clear, tries } = yield* obstructed(bench)
    yield* door.mend
    yield* eventually(tries, (made) => made >= 3, "30 seconds")
    assert.deepInclude(yield* row, { step: "submit", accepted: false })
    yield* clear
    yield* eventually(sql`SELECT id FROM all_holds WHERE state = 'open'`, (open) => open.length === 0, "30 seconds")
    assert.deepStrictEqual(provider.called, [])
    assert.deepStrictEqual(yield* videos.list(org, 100), [])
    yield* charged()
    assert.isFalse((yield* videos.create(job({ key }))).replayed)
  })

  videoTest("is neither rendered by another instance nor charged if it was never submitted", function* (bench) {
    const { charged, job, lapse, org, process, provider, row, rows } = bench
    const door = yield* proxyTo(bench.url)
    const dead = yield* process({ url: door.url, lookEvery: "1 hour", timings })
    yield* door.cutAt("COMMIT", "after")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(dead.videos.create(job()))))
    assert.lengthOf(yield* rows, 1)
    yield* lapse
    const { videos } = yield* process()
    yield* eventually(row, ({ status }) => status === "failed")
    assert.deepStrictEqual(provider.called, [])
    assert.deepStrictEqual(yield* videos.list(org, 100), [])
    yield* charged()
  })

  videoTest("is failed and frees its key even if a statement whose answer was lost accepted it", function* (bench) {
    const { charged, job, row } = bench
    const door = yield* proxyTo(bench.url)
    const { videos } = yield* bench.process({ url: door.url, lookEvery: "1 hour", timings })
    yield* door.cutAt("SET accepted_at = coalesce", "after")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(videos.create(job({ key })))))
    assert.isTrue((yield* row).accepted)
    yield* door.mend
    yield* eventually(row, ({ status }) => status === "failed")
    yield* charged()
    assert.isFalse((yield* videos.create(job({ key }))).replayed)
  })

  videoTest("leaves no reference behind if it was never written", function* (bench) {
    const { job, process, rows, store } = bench
    const door = yield* proxyTo(bench.url)
    const { videos } = yield* process({ url: door.url, timings })
    yield* door.cutAt("COMMIT", "before")
    const references = [picture]
    assert.isTrue(Exit.isFailure(yield* Effect.exit(videos.create(job({ references })))))
    assert.lengthOf(yield* rows, 0)
    assert.lengthOf(store.names.private, 1)
    yield* door.mend
    yield* eventually(
      Effect.sync(() => store.names.private.length),
      (left) => left === 0
    )
  })
})

describe.concurrent("a video that is requested again", () => {
  videoTest("is not replayed when it fails unlisted at the same moment", function* (bench) {
    const { charged, desk, job, process, rows, sql } = bench
    const dying = yield* process({
      lookEvery: "1 hour",
      // The end of the test interrupts it.
      reach: (name) => (name === "after_hold" ? Effect.interruptible(Effect.never) : Effect.void)
    })
    yield* Effect.forkScoped(dying.videos.create(job({ key })))
    const [placed] = yield* eventually(rows, (all) => all.length > 0)
    const id = placed?.id ?? ""
    yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${yield* dying.instance.id}`
    const door = yield* proxyTo(bench.url)
    const { videos } = yield* process({ url: door.url, lookEvery: "1 hour" })
    yield* door.cutAt("SET accepted_at = coalesce", "before")
    const again = yield* Effect.fork(Effect.flip(videos.create(job({ key }))))
    yield* eventually(door.isCut, (cut) => cut)
    yield* desk.cancel(OrganizationScope.all, id)
    yield* door.mend
    assert.strictEqual((yield* Fiber.join(again))._tag, "IdempotencyConflict")
    assert.isFalse((yield* videos.create(job({ key }))).replayed)
    yield* desk.cancel(OrganizationScope.all, (yield* videos.list(bench.org, 1))[0]?.id ?? "")
    yield* charged()
  })
})

describe("many videos of one organization", () => {
  videoTest("wait for each other without blocking others' use of the database", function* (bench) {
    const { charged, job, org, outside, process, provider } = bench
    const { videos } = yield* process()
    const { unlock } = yield* Effect.provide(lock(org), outside)
    const creating = yield* Effect.fork(
      Effect.forEach(Array.from({ length: 30 }), () => Effect.either(videos.create(job())), {
        concurrency: "unbounded"
      })
    )
    yield* Effect.provide(waitingForLock("generation-gateway"), outside)
    assert.deepStrictEqual(yield* Effect.timeout(videos.list(org, 1), "3 seconds"), [])
    assert.isNull(creating.unsafePoll())
    yield* unlock
    assert.lengthOf((yield* Fiber.join(creating)).filter(Either.isRight), 30)
    yield* bench.hurry
    assert.lengthOf(provider.calls("submit"), 30)
    for (const { id } of yield* videos.list(org, 100))
      yield* Effect.ignore(bench.desk.cancel(OrganizationScope.all, id))
    const clips = (yield* bench.rows).filter(({ status }) => status === "completed")
    yield* charged(...clips.map(() => 800_000_000n))
  })
})

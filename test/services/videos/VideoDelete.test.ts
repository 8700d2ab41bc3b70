import { Deferred, Effect, Fiber } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { done, rendering } from "../../fakes/VideoProviderFake.ts"
import { assert, describe } from "../../harness/It.ts"
import { price, submitsOnly, videoTest } from "./VideoBench.ts"

const percent = (value: number) => Effect.succeed({ state: "in_progress", percent: value } as const)

describe.concurrent("a video that its customer deletes", () => {
  videoTest("is gone for its customer, and stays with its charge for the operator", function* (bench) {
    const { charged, desk, job, org, over, process, sql, store } = bench
    const { videos } = yield* process()
    const { video } = yield* videos.create(job({ key: "key" }))
    const { media } = yield* over
    assert.deepStrictEqual(store.names.public, [media])
    yield* videos.delete(org, video.id)
    assert.deepStrictEqual(store.names.public, [])
    assert.deepStrictEqual(yield* sql`SELECT name FROM media_removals`, [])
    assert.strictEqual((yield* Effect.flip(videos.find(org, video.id)))._tag, "VideoNotFound")
    assert.strictEqual((yield* Effect.flip(videos.delete(org, video.id)))._tag, "VideoNotFound")
    assert.deepStrictEqual(yield* videos.list(org, 10), [])
    assert.deepStrictEqual(yield* videos.list(org, 10, { order: "asc", after: video.id }), [])
    const seen = yield* desk.find(OrganizationScope.all, video.id)
    assert.deepStrictEqual([seen.status, seen.media, seen.charge_usd], ["completed", media, price])
    assert.isNotNull(seen.deleted_at)
    assert.strictEqual((yield* desk.list(OrganizationScope.all, { limit: 10 })).length, 1)
    const again = yield* videos.create(job({ key: "key" }))
    assert.deepStrictEqual([again.replayed, again.video.id], [true, video.id])
    yield* charged(price)
  })

  videoTest("must be over, and its own organization's", function* (bench) {
    const { job, org, process, row } = bench
    const { videos } = yield* process(submitsOnly)
    const { video } = yield* videos.create(job())
    const other = yield* bench.bench.organization(0n)
    assert.strictEqual((yield* Effect.flip(videos.delete(org, video.id)))._tag, "VideoNotFinished")
    assert.strictEqual((yield* Effect.flip(videos.delete(other.org, video.id)))._tag, "VideoNotFound")
    assert.strictEqual((yield* row).status, "queued")
    assert.strictEqual((yield* videos.find(org, video.id)).id, video.id)
  })

  videoTest("loses its clip later where the store or the process fails at that moment", function* (bench) {
    const { job, org, over, process, sql, store } = bench
    const reached = yield* Deferred.make<void>()
    const first = yield* process({
      reach: (name) =>
        name === "deletion_committed"
          ? Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)
          : Effect.void
    })
    const { video } = yield* first.videos.create(job())
    const { media } = yield* over
    const deletion = yield* Effect.fork(first.videos.delete(org, video.id))
    yield* Deferred.await(reached)
    yield* Fiber.interrupt(deletion)
    yield* first.stop
    assert.deepStrictEqual(yield* sql`SELECT name FROM media_removals`, [{ name: media }])
    assert.deepStrictEqual(store.names.public, [media])
    yield* process()
    yield* Effect.repeat(sql`SELECT name FROM media_removals`, { until: (rows) => rows.length === 0 })
    assert.deepStrictEqual(store.names.public, [])
  })

  videoTest("may be deleted many times at once, and is once", function* (bench) {
    const { job, org, over, process } = bench
    const { videos } = yield* process()
    const { video } = yield* videos.create(job())
    yield* over
    const outcomes = yield* Effect.forEach(
      Array.from({ length: 8 }),
      () => Effect.either(videos.delete(org, video.id)),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Right").length, 1)
  })
})

describe.concurrent("the progress of a video", () => {
  videoTest("follows what the provider tells, never falls, and is 100 only at the end", function* (bench) {
    const { job, org, process, provider, row } = bench
    const { videos } = yield* process()
    const before: Array<number> = []
    const look = Effect.gen(function* () {
      before.push((yield* videos.find(org, (yield* row).id)).progress)
    }).pipe(Effect.orDie)
    const polls = [rendering, percent(40), percent(20), rendering, percent(250), done]
    provider.on("m@a", { poll: polls.map((poll) => Effect.zipRight(look, poll)) })
    const { video } = yield* videos.create(job())
    yield* bench.over
    assert.deepStrictEqual([video.progress, ...before], [0, 0, 0, 40, 40, 40, 99])
    assert.strictEqual((yield* videos.find(org, video.id)).progress, 100)
  })
})

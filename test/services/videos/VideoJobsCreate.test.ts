import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { busy, failure, refused } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import {
  assertDelivered,
  assertFailed,
  credits,
  price,
  submitsOnly,
  videoTest
} from "../../harness/database/VideoBench.ts"
import { png } from "../../harness/fixtures/TinyPictures.ts"

const limit = failure("limit", 429)
const account = failure("account", 401)

describe.concurrent("creating a video", () => {
  videoTest(
    "holds its price for the job, and answers once a provider has it",
    function* ({ job, money, process, row, sql }) {
      const { stop, videos } = yield* process(submitsOnly)
      const asked = { ...job(), seconds: 4 }
      const { video } = yield* videos.create(asked)
      assert.deepInclude(video, { status: "queued", seconds: 4, completedAt: undefined })
      assert.deepInclude(yield* row, { id: video.id, status: "queued", step: "rendering", accepted: true })
      assert.deepInclude(yield* money, { balance: credits, held: price / 2n, openHolds: 1 })
      assert.deepStrictEqual([asked.record.route?.id, asked.record.charge], ["m@a", 0n])
      const [hold] = yield* sql`SELECT id, instance_id FROM holds WHERE state = 'open'`
      assert.deepStrictEqual(hold, { id: asked.record.hold, instanceId: null })
      yield* stop
      assert.deepInclude(yield* money, { held: price / 2n, openHolds: 1 })
    }
  )

  videoTest(
    "is refused where the balance or the key's cap does not cover it, and leaves nothing",
    function* ({ bench, job, key, money, process, provider, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      const reference = { references: [{ _tag: "Bytes", bytes: png }] } as const
      yield* bench.cap(key, price + 1n, "month")
      yield* videos.create(job())
      yield* videos.create(job())
      store.before(Effect.dieMessage("nothing is stored for whoever cannot pay"))
      const capped = yield* Effect.flip(videos.create(job({ ...reference, key: "k" })))
      assert.deepInclude(capped, { _tag: "SpendLimitReached", period: "month" })
      yield* bench.cap(key, credits * 2n, "month")
      yield* sql`UPDATE organizations SET balance = held + ${price} - 1`
      const poor = yield* Effect.flip(videos.create(job({ ...reference, key: "k" })))
      assert.strictEqual(poor._tag, "InsufficientCredits")
      yield* sql`UPDATE organizations SET balance = ${credits}`
      assert.lengthOf(yield* rows, 2)
      assert.lengthOf(provider.calls("submit"), 2)
      assert.deepStrictEqual(store.names, { public: [], private: [] })
      assert.deepStrictEqual(yield* sql`SELECT claim FROM idempotency_keys`, [])
      assert.deepInclude(yield* money, { held: 2n * price, openHolds: 2 })
      assert.isTrue(yield* bench.proved)
    }
  )

  videoTest(
    "keeps no reference where the money is gone before the job is written",
    function* ({ job, process, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      store.after(Effect.orDie(sql`UPDATE organizations SET balance = 0`))
      const poor = yield* Effect.flip(videos.create(job({ references: [{ _tag: "Bytes", bytes: png }] })))
      assert.strictEqual(poor._tag, "InsufficientCredits")
      assert.deepStrictEqual([yield* rows, store.names.private], [[], []])
    }
  )

  videoTest(
    "looks at a reference after the money, and at money after the key",
    function* ({ bench, job, key, process, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      const bad = { references: [{ _tag: "Bytes", bytes: Buffer.from("no picture") }] } as const
      const unusable = yield* Effect.flip(videos.create(job({ ...bad, key: "k" })))
      assert.deepInclude(unusable, {
        _tag: "InvalidRequest",
        message: "Failed to process the reference image.",
        param: "image"
      })
      yield* bench.cap(key, 0n, "day")
      assert.strictEqual((yield* Effect.flip(videos.create(job(bad))))._tag, "SpendLimitReached")
      const long = yield* Effect.flip(videos.create(job({ key: "k".repeat(256) })))
      assert.deepInclude(long, { _tag: "InvalidRequest", param: null })
      assert.deepStrictEqual([yield* rows, yield* sql`SELECT claim FROM idempotency_keys`], [[], []])
      assert.deepStrictEqual(store.names, { public: [], private: [] })
    }
  )

  for (const [what, script, tag, code, detail] of [
    ["moderation", [failure("moderation", 400)], "ContentRejected", "content_policy_violation", {}],
    ["a rejection", [failure("request", 422)], "UpstreamRejected", "upstream_error", { param: null }],
    ["no socket to any", [refused, refused, refused], "AllProvidersFailed", "upstream_error", { status: "network" }],
    ["all busy", [busy, busy, busy], "AllProvidersFailed", "upstream_error", { provider: "c", status: 503 }],
    ["all throttled", [limit, limit, limit], "AllProvidersFailed", "upstream_error", { status: 429 }],
    ["no account", [account, account, account], "AllProvidersFailed", "upstream_error", { status: 401 }]
  ] as const) {
    videoTest(`that ends in ${what} says so, holds nothing, shows nothing and frees its key`, function* (bench) {
      const { job, org, process, provider, sql } = bench
      const { videos } = yield* process()
      const routes = ["m@a", "m@b", "m@c"]
      routes.forEach((route, index) => provider.on(route, { submit: [script[index] ?? Effect.void] }))
      const asked = job({ key: "k", references: [{ _tag: "Bytes", bytes: png }] })
      const failed = yield* Effect.flip(videos.create(asked))
      assert.deepInclude(failed, { _tag: tag, ...detail })
      assert.deepStrictEqual(
        provider.calls(),
        script.map((_, index) => `submit ${routes[index]}`)
      )
      assert.lengthOf(asked.record.attempts.list, script.length)
      const row = yield* assertFailed(bench, code)
      assert.deepInclude(row, { accepted: false, doubts: 0 })
      assert.deepStrictEqual(yield* videos.list(org, 100), [])
      assert.strictEqual((yield* Effect.flip(videos.find(org, row.id)))._tag, "VideoNotFound")
      assert.deepStrictEqual(yield* sql`SELECT claim FROM idempotency_keys`, [])
      routes.forEach((route) => provider.on(route, {}))
    })
  }

  videoTest("that takes longer than its customer waits goes on, and is there in the end", function* (bench) {
    const { job, money, org, process, provider, row } = bench
    const { videos } = yield* process({ answerWithin: "200 millis" })
    const gate = yield* Deferred.make<void>()
    provider.on("m@a", { submit: [Deferred.await(gate)] })
    const { video } = yield* videos.create(job({ key: "k" }))
    assert.strictEqual(video.status, "queued")
    assert.deepInclude(yield* row, { step: "submitting", accepted: true })
    assert.deepInclude(yield* videos.find(org, video.id), { status: "queued" })
    assert.deepInclude(yield* money, { held: price, openHolds: 1 })
    yield* Deferred.succeed(gate, undefined)
    yield* assertDelivered(bench)
    const again = yield* videos.create(job({ key: "k" }))
    assert.deepStrictEqual(again, { video, replayed: true })
  })

  videoTest("that takes longer and comes to nothing fails for all to see, and keeps its key", function* (bench) {
    const { job, org, process, provider } = bench
    const { videos } = yield* process({ answerWithin: "200 millis" })
    const gate = yield* Deferred.make<void>()
    provider.on("m@a", { submit: [Effect.zipRight(Deferred.await(gate), failure("moderation", 400))] })
    const { video } = yield* videos.create(job({ key: "k" }))
    yield* Deferred.succeed(gate, undefined)
    yield* assertFailed(bench, "content_policy_violation")
    const found = yield* videos.find(org, video.id)
    assert.deepInclude(found, {
      status: "failed",
      error: { code: "content_policy_violation", message: "Content was rejected by the moderation system." }
    })
    assert.isNumber(found.completedAt)
    assert.deepStrictEqual(yield* videos.create(job({ key: "k" })), { video, replayed: true })
  })

  const arriving = Effect.gen(function* () {
    const arrived = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const submit = Effect.zipRight(Deferred.succeed(arrived, undefined), Deferred.await(gate))
    return { submit, arrived: Deferred.await(arrived), open: Deferred.succeed(gate, undefined) }
  })

  videoTest("that the gateway ends itself costs nothing, whatever the provider made of it", function* (bench) {
    const { job, process, provider, sql, over } = bench
    const { inFlight, videos } = yield* process()
    const { arrived, open, submit } = yield* arriving
    provider.on("m@a", { submit: [submit] })
    const asking = yield* Effect.fork(Effect.uninterruptible(inFlight.track(videos.create(job({ key: "k" })))))
    yield* arrived
    yield* inFlight.abort
    assert.isTrue(Exit.isInterrupted(yield* Fiber.await(asking)))
    assert.deepInclude(yield* over, { status: "failed", errorCode: "internal_error", accepted: false, doubts: 1 })
    yield* open
    yield* eventually(
      Effect.sync(() => provider.calls()),
      (calls) => calls.includes("cancel m@a")
    )
    assert.deepInclude(yield* assertFailed(bench, "internal_error"), { accepted: false, doubts: 1 })
    assert.deepStrictEqual(yield* sql`SELECT claim FROM idempotency_keys WHERE key IS NOT NULL`, [])
  })
})

import { Deferred, Duration, Effect, Exit, Fiber } from "effect"
import { busy, failure, refused } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { tracked } from "../../harness/InFlight.ts"
import { assert, describe } from "../../harness/It.ts"
import {
  assertDelivered,
  assertFailed,
  credits,
  makeGate,
  picture,
  price,
  submitsOnly,
  type VideoBench,
  videoTest
} from "./VideoBench.ts"

describe.concurrent("a video", () => {
  videoTest("is accepted, rendered, stored and charged", function* (bench) {
    const { job, money, org, process, provider, until } = bench
    const { videos } = yield* process()
    const { replayed, video } = yield* videos.create(job())
    assert.isFalse(replayed)
    assert.deepInclude(video, { status: "queued", model: "m", seconds: 8, url: undefined, error: undefined })
    assert.match(video.id, /^vid_/)
    assert.deepInclude(yield* money, { held: price, openHolds: 1, charges: [] })
    yield* until(({ status }) => status === "completed")
    const { media } = yield* assertDelivered(bench)
    const found = yield* videos.find(org, video.id)
    assert.deepInclude(found, { status: "completed", url: `http://media.test/${media}`, seconds: 8 })
    assert.deepStrictEqual(provider.calls(), ["submit m@a", "poll m@a", "download m@a"])
  })
})

const limit = failure("limit", 429)
const account = failure("account", 401)

describe.concurrent("creating a video", () => {
  videoTest(
    "holds its price for the job and answers once a provider has accepted it",
    function* ({ job, money, process, row, sql }) {
      const { stop, videos } = yield* process(submitsOnly)
      const asked = { ...job(), seconds: 4 }
      const { video } = yield* videos.create(asked)
      assert.deepInclude(video, { status: "queued", seconds: 4, completedAt: undefined })
      assert.deepInclude(yield* row, { id: video.id, status: "queued", step: "rendering", accepted: true })
      assert.deepInclude(yield* money, { balance: credits, held: price / 2n, openHolds: 1 })
      assert.deepStrictEqual([asked.record.summary.route?.id, asked.record.summary.charge], ["m@a", 0n])
      const [hold] = yield* sql`SELECT id, instance_id FROM all_holds WHERE state = 'open'`
      assert.deepStrictEqual(hold, { id: asked.record.summary.hold, instanceId: null })
      yield* stop
      assert.deepInclude(yield* money, { held: price / 2n, openHolds: 1 })
    }
  )

  videoTest(
    "is refused where the balance or the key's cap does not cover it, and leaves no row",
    function* ({ bench, job, key, money, process, provider, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      const reference = { references: [picture] } as const
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
    "keeps no reference where the balance is spent before the job is written",
    function* ({ job, process, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      store.after(Effect.orDie(sql`UPDATE organizations SET balance = 0`))
      const poor = yield* Effect.flip(videos.create(job({ references: [picture] })))
      assert.strictEqual(poor._tag, "InsufficientCredits")
      assert.deepStrictEqual([yield* rows, store.names.private], [[], []])
    }
  )

  videoTest(
    "checks the reference after the balance, and the balance after the idempotency key",
    function* ({ bench, job, key, process, rows, sql, store }) {
      const { videos } = yield* process(submitsOnly)
      const bad = { references: [{ _tag: "Bytes", bytes: Buffer.from("no picture") }] } as const
      const unusable = yield* Effect.flip(videos.create(job({ ...bad, key: "k" })))
      assert.deepInclude(unusable, {
        _tag: "InvalidRequest",
        message: "Failed to process the reference image.",
        hint: "The image is not a complete PNG, JPEG, WebP or GIF.",
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
    videoTest(`that ends in ${what} fails with it, holds nothing, lists nothing and frees its key`, function* (bench) {
      const { job, org, process, provider, sql } = bench
      const { videos } = yield* process()
      const routes = ["m@a", "m@b", "m@c"]
      routes.forEach((route, index) => provider.on(route, { submit: [script[index] ?? Effect.void] }))
      const asked = job({ key: "k", references: [picture] })
      const failed = yield* Effect.flip(videos.create(asked))
      assert.deepInclude(failed, { _tag: tag, ...detail })
      assert.deepStrictEqual(
        provider.calls(),
        script.map((_, index) => `submit ${routes[index]}`)
      )
      assert.lengthOf(asked.record.attempts.list, script.length)
      const row = yield* assertFailed(bench, code)
      assert.deepInclude(row, { accepted: false, uncertainSubmits: 0 })
      assert.deepStrictEqual(yield* videos.list(org, 100), [])
      assert.strictEqual((yield* Effect.flip(videos.find(org, row.id)))._tag, "VideoNotFound")
      assert.deepStrictEqual(yield* sql`SELECT claim FROM idempotency_keys`, [])
      routes.forEach((route) => provider.on(route, {}))
    })
  }

  videoTest("that takes longer than the request goes on and completes", function* (bench) {
    const { job, money, org, process, provider, row } = bench
    const { videos } = yield* process({ timings: { answerVideoWithin: Duration.millis(200) } })
    const { open, wait } = yield* makeGate
    provider.on("m@a", { submit: [wait] })
    const { video } = yield* videos.create(job({ key: "k" }))
    assert.strictEqual(video.status, "queued")
    assert.deepInclude(yield* row, { step: "submitting", accepted: true })
    assert.deepInclude(yield* videos.find(org, video.id), { status: "queued" })
    assert.deepInclude(yield* money, { held: price, openHolds: 1 })
    yield* open
    yield* assertDelivered(bench)
    const again = yield* videos.create(job({ key: "k" }))
    assert.deepStrictEqual(again, { video, replayed: true })
  })

  videoTest("that takes longer than the request and fails is listed as failed and keeps its key", function* (bench) {
    const { job, org, process, provider } = bench
    const { videos } = yield* process({ timings: { answerVideoWithin: Duration.millis(200) } })
    const { open, wait } = yield* makeGate
    provider.on("m@a", { submit: [Effect.zipRight(wait, failure("moderation", 400))] })
    const { video } = yield* videos.create(job({ key: "k" }))
    yield* open
    yield* assertFailed(bench, "content_policy_violation")
    const found = yield* videos.find(org, video.id)
    assert.deepInclude(found, {
      status: "failed",
      error: { code: "content_policy_violation", message: "Content was rejected by the moderation system." }
    })
    assert.isNumber(found.completedAt)
    assert.deepStrictEqual(yield* videos.create(job({ key: "k" })), { video, replayed: true })
  })

  videoTest("that the gateway fails costs nothing, even if its provider rendered it", function* (bench) {
    const { job, process, provider, sql, over } = bench
    const { inFlight, videos } = yield* process()
    const { open, reached, wait } = yield* makeGate
    provider.on("m@a", { submit: [wait] })
    const asking = yield* Effect.fork(Effect.uninterruptible(tracked(inFlight, videos.create(job({ key: "k" })))))
    yield* reached
    yield* inFlight.abort
    assert.isTrue(Exit.isInterrupted(yield* Fiber.await(asking)))
    assert.deepInclude(yield* over, {
      status: "failed",
      errorCode: "internal_error",
      accepted: false,
      uncertainSubmits: 1
    })
    yield* open
    yield* eventually(
      Effect.sync(() => provider.calls()),
      (calls) => calls.includes("cancel m@a")
    )
    assert.deepInclude(yield* assertFailed(bench, "internal_error"), { accepted: false, uncertainSubmits: 1 })
    assert.deepStrictEqual(yield* sql`SELECT claim FROM idempotency_keys WHERE key IS NOT NULL`, [])
  })
})

const key = "k"

/** A process that has written its job, and does nothing more. */
const stoppedAfterHold = Effect.fnUntraced(function* ({ job, process }: VideoBench) {
  const written = yield* Deferred.make<void>()
  const halted = Effect.zipRight(Deferred.succeed(written, undefined), Effect.never)
  const reach = (name: string) => (name === "after_hold" ? halted : Effect.void)
  const dying = yield* process({ lookEvery: "1 hour", reach })
  // What died is never interrupted.
  yield* Effect.forkDaemon(dying.videos.create(job({ key })))
  yield* Deferred.await(written)
  return dying
})

describe.concurrent("a video asked for with an idempotency key", () => {
  videoTest("is created once for any number of requests", function* (bench) {
    const { job, process, provider } = bench
    const first = yield* process({ lookEvery: "1 hour" })
    const second = yield* process()
    const created = yield* first.videos.create(job({ key, references: [picture] }))
    const again = yield* second.videos.create(job({ key, references: [picture] }))
    assert.deepStrictEqual([created.replayed, again], [false, { ...created, replayed: true }])
    const { video } = created
    yield* assertDelivered(bench)
    const record = job({ key, references: [picture] })
    assert.deepStrictEqual(yield* second.videos.create(record), { video, replayed: true })
    assert.deepStrictEqual([...record.record.summary.notes], ["replayed"])
    assert.isUndefined(record.record.summary.hold)
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
    for (const other of [{ prompt: "a dog" }, { seconds: 8 }, { references: [] }]) {
      const refused = yield* Effect.flip(second.videos.create(job({ key, references: [picture], ...other })))
      assert.deepInclude(refused, { _tag: "InvalidRequest", param: null })
    }
    yield* bench.charged(price)
  })

  videoTest("keeps its key in flight until it is answered, and frees it when it fails", function* (bench) {
    const { job, process, provider, rows } = bench
    const { videos } = yield* process()
    const { open, reached, wait } = yield* makeGate
    provider.on("m@a", { submit: [Effect.zipRight(wait, busy), Effect.void] })
    provider.on("m@b", { submit: [busy] })
    provider.on("m@c", { submit: [busy] })
    const first = yield* Effect.fork(videos.create(job({ key })))
    yield* reached
    assert.strictEqual((yield* Effect.flip(videos.create(job({ key }))))._tag, "IdempotencyConflict")
    yield* open
    assert.strictEqual((yield* Effect.flip(Fiber.join(first)))._tag, "AllProvidersFailed")
    const { replayed, video } = yield* videos.create(job({ key }))
    assert.isFalse(replayed)
    const over = yield* eventually(Effect.zipRight(bench.hurry, rows), (all) =>
      all.some(({ id, step }) => id === video.id && step === "over")
    )
    assert.deepStrictEqual(
      over.map(({ accepted, status }) => [accepted, status]),
      [
        [false, "failed"],
        [true, "completed"]
      ]
    )
    yield* bench.charged(price)
  })

  for (const how of ["silent", "stopped"] as const) {
    videoTest(`is replayed and rendered once after its process was ${how} before it answered`, function* (bench) {
      const { job, lapse, org, process, provider, row, sql } = bench
      const dying = yield* stoppedAfterHold(bench)
      const { id } = yield* row
      const { videos } = yield* process()
      assert.strictEqual((yield* Effect.flip(videos.create(job({ key }))))._tag, "IdempotencyConflict")
      assert.strictEqual((yield* Effect.flip(videos.find(org, id)))._tag, "VideoNotFound")
      const instance = yield* dying.instance.id
      yield* how === "silent"
        ? sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${instance}`
        : dying.stop
      const again = yield* videos.create(job({ key }))
      assert.isTrue(again.replayed)
      assert.deepInclude(again.video, { id, status: "queued" })
      // Whoever has its id can ask for it, before anybody has taken it on.
      assert.deepInclude(yield* videos.find(org, id), { id, status: "queued" })
      yield* lapse
      assert.deepInclude(yield* assertDelivered(bench), { id, uncertainSubmits: 0 })
      assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
    })
  }

  videoTest("is listed as failed when its process died and the job failed later", function* (bench) {
    const { job, lapse, org, process, provider } = bench
    const dying = yield* stoppedAfterHold(bench)
    const { videos } = yield* process()
    for (const route of ["m@a", "m@b", "m@c"]) provider.on(route, { submit: [busy] })
    yield* lapse
    const { id } = yield* assertFailed(bench, "upstream_error")
    assert.deepInclude(yield* videos.find(org, id), { status: "failed" })
    yield* dying.stop
    const again = yield* videos.create(job({ key }))
    assert.deepStrictEqual([again.replayed, again.video.id], [true, id])
  })
})

import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { busy } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { assertDelivered, assertFailed, price, type VideoBench, videoTest } from "../../harness/database/VideoBench.ts"
import { png } from "../../harness/fixtures/TinyPictures.ts"

const key = "k"
const picture = { _tag: "Bytes", bytes: png } as const

/** A process that has written its job, and does nothing more. */
const stoppedAfterHold = ({ job, process }: VideoBench) =>
  Effect.gen(function* () {
    const written = yield* Deferred.make<void>()
    const halted = Effect.zipRight(Deferred.succeed(written, undefined), Effect.never)
    const reach = (name: string) => (name === "after_hold" ? halted : Effect.void)
    const dying = yield* process({ lookEvery: "1 hour", reach })
    yield* Effect.forkScoped(dying.videos.create(job({ key })))
    yield* Deferred.await(written)
    return dying
  })

describe.concurrent("a video asked for with an idempotency key", () => {
  videoTest("is one, however often it is asked for", function* (bench) {
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
    assert.deepStrictEqual([...record.record.notes], ["replayed"])
    assert.isUndefined(record.record.hold)
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
    for (const other of [{ prompt: "a dog" }, { seconds: 8 }, { references: [] }]) {
      const refused = yield* Effect.flip(second.videos.create(job({ key, references: [picture], ...other })))
      assert.deepInclude(refused, { _tag: "InvalidRequest", param: null })
    }
    yield* bench.charged(price)
  })

  videoTest("is in flight until it is answered, and free again where it failed", function* (bench) {
    const { job, process, provider, rows } = bench
    const { videos } = yield* process()
    const gate = yield* Deferred.make<void>()
    const arrived = yield* Deferred.make<void>()
    const slow = Deferred.succeed(arrived, undefined).pipe(Effect.zipRight(Deferred.await(gate)), Effect.zipRight(busy))
    provider.on("m@a", { submit: [slow, Effect.void] })
    provider.on("m@b", { submit: [busy] })
    provider.on("m@c", { submit: [busy] })
    const first = yield* Effect.fork(videos.create(job({ key })))
    yield* Deferred.await(arrived)
    assert.strictEqual((yield* Effect.flip(videos.create(job({ key }))))._tag, "IdempotencyConflict")
    yield* Deferred.succeed(gate, undefined)
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
    videoTest(
      `is found again after its process was ${how} before it answered, and is rendered once`,
      function* (bench) {
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
        assert.deepInclude(yield* assertDelivered(bench), { id, doubts: 0 })
        assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
      }
    )
  }

  videoTest("of a process that died is a job that fails for all to see", function* (bench) {
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

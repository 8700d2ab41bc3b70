import { execFileSync } from "node:child_process"
import { open } from "node:fs/promises"
import path from "node:path"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import { makeStore, rejectAfter } from "../../src/storage/DiskStore.ts"
import { MediaStoreFake } from "../fakes/MediaStoreFake.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const png = { type: "image/png", visibility: "public", body: Uint8Array.of(1) } as const
const away = Effect.fail(MediaStoreFake.away)

/** A store that is trusted for 30 s after a write, and the fake below it. */
const make = Effect.gen(function* () {
  const fake = new MediaStoreFake()
  const below = yield* Effect.provide(MediaStore, fake.layer)
  const probe = Effect.flatMap(below.put(png), below.remove)
  const store = yield* makeStore({ ...below, publicUrl: "", probe, checkValidFor: "30 seconds" })
  return { fake, store }
})

describe("the check of a store", () => {
  it.effect("writes a file and leaves none behind", function* () {
    const { fake, store } = yield* make
    yield* store.check
    assert.strictEqual(fake.files.size, 0)
    fake.before(away)
    yield* TestClock.adjust("31 seconds")
    assert.strictEqual((yield* Effect.flip(store.check)).detail, MediaStoreFake.away.detail)
  })

  it.effect("trusts a file that was written lately, and no longer than it says", function* () {
    const { fake, store } = yield* make
    yield* store.put(png)
    fake.before(away)
    yield* TestClock.adjust("29 seconds")
    yield* store.check
    yield* TestClock.adjust("1 second")
    yield* Effect.flip(store.check)
    yield* TestClock.adjust("1 second")
    yield* store.check
  })

  it.effect("trusts nothing after a file that could not be stored", function* () {
    const { fake, store } = yield* make
    yield* store.check
    fake.before(away, away)
    yield* Effect.flip(store.put(png))
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Effect.flip(store.check)).detail, MediaStoreFake.away.detail)
  })

  it.effect("gives up on a store that never answers", function* () {
    const { fake, store } = yield* make
    fake.before(Effect.never)
    const checking = yield* Effect.fork(Effect.flip(store.check))
    yield* TestClock.adjust("9 seconds")
    assert.isNull(checking.unsafePoll())
    yield* TestClock.adjust("1 second")
    assert.include((yield* Fiber.join(checking)).detail, "a test file was not written within 10 seconds")
  })
})

describe("a disk that does not answer", () => {
  it.live("has what it opens too late closed", function* () {
    const closed = yield* Deferred.make<void>()
    const file = { close: () => Effect.runPromise(Deferred.succeed(closed, undefined)) }
    const opened = Effect.runPromise(Effect.delay(Effect.succeed(file), "100 millis"))
    yield* Effect.flip(Effect.tryPromise(() => rejectAfter(50, () => opened)))
    yield* Deferred.await(closed)
  })

  it.scopedLive("fails calls after their time, and at once after two such calls", function* () {
    const directory = yield* temporaryDirectory
    const fifos = ["a", "b"].map((name) => path.join(directory, name))
    execFileSync("mkfifo", fifos)
    const attempt = (work: () => Promise<unknown>) =>
      Effect.promise(() => rejectAfter(50, work).then(String, (error: Error) => error.message))
    // Opening waits in the system until somebody reads.
    for (const fifo of fifos) {
      assert.strictEqual(yield* attempt(() => open(fifo, "w")), "the disk did not respond within 50 ms")
    }
    let isAsked = false
    const refused = yield* attempt(async () => {
      isAsked = true
    })
    assert.deepStrictEqual([refused, isAsked], ["the disk does not respond", false])
    const readers = yield* Effect.promise(() => Promise.all(fifos.map((fifo) => open(fifo, "r"))))
    yield* Effect.sleep("100 millis")
    assert.strictEqual(yield* attempt(async () => "done"), "done")
    yield* Effect.promise(() => Promise.all(readers.map((reader) => reader.close())))
  })
})

import { execFileSync } from "node:child_process"
import { open } from "node:fs/promises"
import path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import { checked } from "../../src/storage/CheckedMediaStore.ts"
import { within } from "../../src/storage/disk/Io.ts"
import { MediaStoreFake } from "../fakes/MediaStoreFake.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const png = { type: "image/png", visibility: "public", body: Uint8Array.of(1) } as const
const away = Effect.fail(MediaStoreFake.away)

/** A store that is trusted for 30 s after a write, and the fake below it. */
const withStore = <A, E>(test: (store: MediaStore["Type"], fake: MediaStoreFake) => Effect.Effect<A, E>) => {
  const fake = new MediaStoreFake()
  const layer = Layer.effect(
    MediaStore,
    Effect.flatMap(MediaStore, (store) => checked(store, Effect.flatMap(store.put(png), store.remove), "30 seconds"))
  )
  return Effect.flatMap(MediaStore, (store) => test(store, fake)).pipe(Effect.provide(Layer.provide(layer, fake.layer)))
}

describe("the check of a store", () => {
  it.effect("writes a file and leaves none behind", () =>
    withStore((store, fake) =>
      Effect.gen(function* () {
        yield* store.check
        assert.strictEqual(fake.files.size, 0)
        fake.before(away)
        yield* TestClock.adjust("31 seconds")
        assert.strictEqual((yield* Effect.flip(store.check)).detail, MediaStoreFake.away.detail)
      })
    )
  )

  it.effect("trusts a file that was written lately, and no longer than it says", () =>
    withStore((store, fake) =>
      Effect.gen(function* () {
        yield* store.put(png)
        fake.before(away)
        yield* TestClock.adjust("29 seconds")
        yield* store.check
        yield* TestClock.adjust("1 second")
        yield* Effect.flip(store.check)
        yield* TestClock.adjust("1 second")
        yield* store.check
      })
    )
  )

  it.effect("trusts nothing after a file that could not be stored", () =>
    withStore((store, fake) =>
      Effect.gen(function* () {
        yield* store.check
        fake.before(away, away)
        yield* Effect.flip(store.put(png))
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Effect.flip(store.check)).detail, MediaStoreFake.away.detail)
      })
    )
  )

  it.live("gives up on a store that never answers", () =>
    withStore((store, fake) =>
      Effect.gen(function* () {
        fake.before(Effect.never)
        assert.include((yield* Effect.flip(store.check)).detail, "nothing was written in 10 seconds")
      })
    )
  )
})

describe("a disk that does not answer", () => {
  it.scopedLive("fails calls after their time, and at once after two such calls", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fifos = ["a", "b"].map((name) => path.join(directory, name))
      execFileSync("mkfifo", fifos)
      const attempt = (work: () => Promise<unknown>) =>
        Effect.promise(() => within(50, work).then(String, (error: Error) => error.message))
      // Opening waits in the system until somebody reads.
      for (const fifo of fifos) {
        assert.strictEqual(yield* attempt(() => open(fifo, "w")), "the disk did not answer in 50 ms")
      }
      let isAsked = false
      const refused = yield* attempt(async () => {
        isAsked = true
      })
      assert.deepStrictEqual([refused, isAsked], ["the disk does not answer", false])
      const readers = yield* Effect.promise(() => Promise.all(fifos.map((fifo) => open(fifo, "r"))))
      yield* Effect.sleep("100 millis")
      assert.strictEqual(yield* attempt(async () => "done"), "done")
      yield* Effect.promise(() => Promise.all(readers.map((reader) => reader.close())))
    })
  )
})

import { createHash } from "node:crypto"
import { existsSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Deferred, Effect, Exit, Fiber, type Layer, Option, Stream } from "effect"
import { extensionOf, type MediaType } from "../../src/domain/Media.ts"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import { assert, withLayer } from "../harness/It.ts"
import { MediaBench } from "./MediaBench.ts"
import { id, unknownNames } from "./UnknownMediaNames.ts"

const mib = 1024 * 1024
const png = "image/png"
const wellFormed = /^(public|private)\/[A-Za-z0-9_-]{32}\.(png|jpg|webp|gif|mp4)$/

/** Bytes in which every place is different enough that none can be lost or swapped unseen. */
const bytesOf = (length: number) => {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE(at, at)
  return bytes
}
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

const inChunksOf = (bytes: Uint8Array, size: number) =>
  Stream.range(0, Math.max(0, Math.ceil(bytes.length / size) - 1)).pipe(
    Stream.rechunk(1),
    Stream.map((at) => bytes.subarray(at * size, (at + 1) * size))
  )

/** What every store of media must do, wherever it keeps them. */
export const mediaStoreContract = (name: string, layer: Layer.Layer<MediaStore | MediaBench, unknown>) =>
  withLayer(layer)(`${name}: the contract of a media store`, (it) => {
    it.effect.each(Object.keys(extensionOf).filter((type): type is MediaType => type in extensionOf))(
      "%s is kept, linked, given back and removed",
      function* (type) {
        const store = yield* MediaStore
        const body = bytesOf(1000)
        const kept = yield* store.put({ type, visibility: "public", body })
        assert.match(kept, wellFormed)
        assert.isTrue(kept.startsWith("public/") && kept.endsWith(`.${extensionOf[type]}`))
        assert.deepStrictEqual(store.nameOf(store.link(kept)), Option.some(kept))
        assert.isTrue(yield* store.has(kept))
        assert.deepStrictEqual(yield* store.sizeOf(kept), Option.some(1000))
        assert.deepStrictEqual(Option.map(yield* store.read(kept), hashOf), Option.some(hashOf(body)))
        assert.include(yield* (yield* MediaBench).files, kept)
        assert.isTrue(yield* store.remove(kept))
        assert.isFalse(yield* store.has(kept))
        assert.deepStrictEqual(yield* store.sizeOf(kept), Option.none())
        assert.deepStrictEqual(yield* store.read(kept), Option.none())
        assert.notInclude(yield* (yield* MediaBench).files, kept)
        assert.isFalse(yield* store.remove(kept))
      }
    )

    it.effect("the same bytes get a name of their own each time", function* () {
      const store = yield* MediaStore
      const body = bytesOf(10)
      const put = store.put({ type: png, visibility: "public", body })
      const names = yield* Effect.all(
        Array.from({ length: 20 }, () => put),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(names).size, 20)
      const read = yield* Effect.forEach(names, store.read)
      assert.isTrue(read.every((one) => Option.isSome(one) && body.equals(one.value)))
    })

    it.effect("private media are given back, and have no link", function* () {
      const store = yield* MediaStore
      const kept = yield* store.put({ type: png, visibility: "private", body: bytesOf(10) })
      assert.match(kept, wellFormed)
      assert.isTrue(kept.startsWith("private/"))
      assert.throws(() => store.link(kept))
      const open = yield* store.put({ type: png, visibility: "public", body: bytesOf(10) })
      const forged = store.link(open).replace(open, kept)
      assert.deepStrictEqual(store.nameOf(forged), Option.none())
      assert.isTrue(yield* store.has(kept))
      assert.deepStrictEqual(Option.map(yield* store.read(kept), hashOf), Option.some(hashOf(bytesOf(10))))
      assert.isTrue(yield* store.remove(kept))
    })

    it.effect.each([
      [0, mib],
      [1, mib],
      [3 * mib, 3 * mib],
      [8 * mib - 1, 65_521],
      [8 * mib, mib],
      [8 * mib + 1, mib],
      [16 * mib, 5 * mib],
      [20 * mib + 3, 20 * mib + 3],
      [25 * mib + 7, 65_521]
    ] as const)("a stream of %d bytes in chunks of %d arrives as it was", function* ([length, size]) {
      const store = yield* MediaStore
      const whole = bytesOf(length)
      const kept = yield* store.put({ type: "video/mp4", visibility: "public", body: inChunksOf(whole, size) })
      const read = Option.getOrThrow(yield* store.read(kept))
      assert.strictEqual(read.length, length)
      assert.strictEqual(hashOf(read), hashOf(whole))
      yield* store.remove(kept)
      assert.deepStrictEqual(
        (yield* (yield* MediaBench).files).filter((file) => !wellFormed.test(file)),
        []
      )
    })

    it.effect("many bytes in one piece arrive unchanged", function* () {
      const store = yield* MediaStore
      const whole = bytesOf(20 * mib + 5)
      const kept = yield* store.put({ type: "image/webp", visibility: "private", body: whole })
      assert.deepStrictEqual(Option.map(yield* store.read(kept), hashOf), Option.some(hashOf(whole)))
    })

    it.effect("of a long stream little is pulled before it is kept, and nothing shows before the end", function* () {
      const store = yield* MediaStore
      const bench = yield* MediaBench
      const before = { bytes: yield* bench.bytes, files: yield* bench.files }
      const chunk = bytesOf(mib)
      let pulled = 0
      let ahead = 0
      const body = Stream.range(1, 64).pipe(
        Stream.rechunk(1),
        Stream.mapEffect(() =>
          Effect.gen(function* () {
            const kept = (yield* bench.bytes) - before.bytes
            ahead = Math.max(ahead, pulled - kept)
            pulled += chunk.length
            const whole = (yield* bench.files).filter((file) => wellFormed.test(file))
            assert.deepStrictEqual(whole, before.files)
            return chunk
          })
        )
      )
      const kept = yield* store.put({ type: "video/mp4", visibility: "public", body })
      assert.strictEqual(pulled, 64 * mib)
      assert.isAtMost(ahead, 10 * mib)
      assert.isTrue(yield* store.remove(kept))
    })

    it.effect.each([0, 1, 9, 20])(
      "a stream that fails after %d MiB leaves nothing but its own failure",
      function* (length) {
        const store = yield* MediaStore
        const { files } = yield* MediaBench
        const before = yield* files
        const good = Stream.rechunk(Stream.repeatEffect(Effect.succeed(bytesOf(mib))), 1).pipe(Stream.take(length))
        const body = Stream.concat(good, Stream.fail("the provider hung up" as const))
        const failure = yield* Effect.flip(store.put({ type: "video/mp4", visibility: "public", body }))
        assert.strictEqual(failure, "the provider hung up")
        assert.deepStrictEqual(yield* files, before)
      }
    )

    it.effect.each([1, 20])("an interruption after %d MiB leaves nothing", function* (length) {
      const store = yield* MediaStore
      const { files } = yield* MediaBench
      const before = yield* files
      const reached = yield* Deferred.make<void>()
      const good = Stream.rechunk(Stream.repeatEffect(Effect.succeed(bytesOf(mib))), 1).pipe(Stream.take(length))
      const stuck = Stream.fromEffect(Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never))
      const putting = yield* Effect.fork(
        store.put({ type: "video/mp4", visibility: "public", body: Stream.concat(good, stuck) })
      )
      yield* Deferred.await(reached)
      const exit = yield* Fiber.interrupt(putting)
      assert.isTrue(Exit.isInterrupted(exit))
      assert.deepStrictEqual(yield* files, before)
    })

    it.effect.each(unknownNames)("%j is the name of nothing", function* (name) {
      const store = yield* MediaStore
      const { directory } = yield* MediaBench
      const canary = path.join(path.dirname(directory), "canary.png")
      writeFileSync(canary, "alive")
      assert.isFalse(yield* store.has(name))
      assert.deepStrictEqual(yield* store.read(name), Option.none())
      assert.isFalse(yield* store.remove(name))
      assert.throws(() => store.link(name))
      assert.isTrue(existsSync(canary))
      const base = store.link(`public/${id}.png`).replace(`public/${id}.png`, "")
      if (name !== "") assert.deepStrictEqual(store.nameOf(base + name), Option.none())
    })

    it.effect("only links of this store have a name behind them", function* () {
      const { link, nameOf: named } = yield* MediaStore
      const kept = `public/${id}.png`
      const genuine = link(kept)
      const { host, origin, protocol } = new URL(genuine)
      for (const link of [genuine, `${genuine}?download=1`, `${genuine}#t=10`, `${genuine}?a#b`]) {
        assert.deepStrictEqual(named(link), Option.some(kept), link)
      }
      for (const foreign of [
        "",
        kept,
        "not a link",
        origin,
        `${origin}/`,
        genuine.replace(host, "elsewhere.test"),
        genuine.replace(host, `user@${host}`),
        genuine.replace(host, `${host}.elsewhere.test`),
        genuine.replace(protocol, "ftp:"),
        genuine.replace(kept, `x/../${kept}`),
        genuine.replace("public/", "public%2f"),
        genuine.replace("public/", "private/"),
        genuine.replace(/.png$/, "%2epng"),
        `https://elsewhere.test/?${genuine}`,
        ` ${genuine}`,
        `${genuine} `,
        `${genuine}/`
      ]) {
        assert.deepStrictEqual(named(foreign), Option.none(), foreign)
      }
    })
  })

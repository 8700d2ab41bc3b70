import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Layer, Option } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import * as MediaStores from "../../src/storage/MediaStores.ts"
import * as Bench from "../contracts/MediaBench.ts"
import { mediaStoreContract } from "../contracts/MediaStore.ts"
import { bundle } from "../database/EmbeddedDatabase.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const storeIn = (directory: string) =>
  MediaStores.layer({ store: "disk", directory, publicUrl: "http://gateway.test/media" })

const opened = (directory: string) => Effect.map(Layer.build(storeIn(directory)), Context.get(MediaStore))

mediaStoreContract(
  "disk",
  Layer.unwrapScoped(
    Effect.map(temporaryDirectory, (root) => {
      const directory = path.join(root, "media")
      return Layer.merge(
        storeIn(directory),
        Layer.succeed(
          Bench.MediaBench,
          Bench.make(directory, (file) => file)
        )
      )
    })
  )
)

const png = { type: "image/png", visibility: "public", body: Buffer.from("bytes") } as const

describe("media on disk", () => {
  it.scoped("link below the public URL", function* () {
    const store = yield* opened(yield* temporaryDirectory)
    const name = yield* store.put(png)
    assert.strictEqual(store.link(name), `http://gateway.test/media/${name}`)
  })

  it.scoped("need no directory before the first file, and outlive the process", function* () {
    const directory = path.join(yield* temporaryDirectory, "not", "yet", "there")
    const first = yield* opened(directory)
    assert.deepStrictEqual(yield* first.read(`public/${"a".repeat(32)}.png`), Option.none())
    assert.throws(() => readdirSync(directory))
    const name = yield* first.put(png)
    const later = yield* opened(directory)
    assert.deepStrictEqual(Option.map(yield* later.read(name), String), Option.some("bytes"))
  })

  it.scoped("are refused, and do not wait for ever, where no directory can be made", function* () {
    const store = yield* opened("/proc/none/media")
    assert.strictEqual((yield* Effect.flip(store.put(png)))._tag, "MediaStoreFailed")
  })

  it.scoped("are readable by all or by the owner alone, below a directory of the owner's", function* () {
    const directory = path.join(yield* temporaryDirectory, "data", "media")
    const store = yield* opened(directory)
    const before = process.umask(0o022)
    yield* Effect.addFinalizer(() => Effect.sync(() => process.umask(before)))
    // It makes the public folder first, as a start does.
    yield* store.check
    const open = yield* store.put(png)
    const secret = yield* store.put({ ...png, visibility: "private" })
    const mode = (name: string) => (statSync(path.join(directory, name)).mode & 0o777).toString(8)
    assert.deepStrictEqual([".", open, secret, "public", "private", "incoming"].map(mode), [
      "700",
      "644",
      "600",
      "755",
      "700",
      "700"
    ])
  })

  it.scopedLive("left unfinished by a dead process are removed after a day, and no sooner", function* () {
    const directory = yield* temporaryDirectory
    const incoming = path.join(directory, "incoming")
    mkdirSync(incoming)
    const stale = path.join(incoming, `${"a".repeat(32)}.part`)
    const fresh = path.join(incoming, `${"b".repeat(32)}.part`)
    for (const file of [stale, fresh]) writeFileSync(file, "half")
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)
    utimesSync(stale, new Date(), hoursAgo(25))
    utimesSync(fresh, new Date(), hoursAgo(23))
    const store = yield* opened(directory)
    const name = yield* store.put(png)
    assert.deepStrictEqual(readdirSync(incoming), [path.basename(fresh)])
    assert.isTrue(Option.isSome(yield* store.read(name)))
  })

  it.scoped.each(["media", "media/incoming", "media/public"])(
    "say so when %s cannot be written to",
    function* (blocked) {
      const root = yield* temporaryDirectory
      const file = path.join(root, blocked)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, "in the way")
      const directory = path.join(root, "media")
      const store = yield* opened(directory)
      const failure = yield* Effect.flip(store.put(png))
      assert.strictEqual(failure._tag, "MediaStoreFailed")
      assert.match(failure.detail, /EEXIST|ENOTDIR/)
      const left = blocked === "media/public" ? readdirSync(path.join(directory, "incoming")) : []
      assert.deepStrictEqual(left, [])
    }
  )

  it.scoped("leave nothing when there is no room for all of it", function* () {
    const directory = yield* temporaryDirectory
    const program = yield* bundle(path.resolve("test/storage/fixtures/fill.ts"))
    const limited = `trap '' XFSZ; ulimit -f 2048; exec "$@"`
    const { stdout } = spawnSync("sh", ["-c", limited, "sh", process.execPath, program, directory], {
      encoding: "utf8"
    })
    assert.match(stdout, /^MediaStoreFailed: EFBIG: /)
    assert.deepStrictEqual(readdirSync(directory), ["incoming"])
    assert.deepStrictEqual(readdirSync(path.join(directory, "incoming")), [])
  })
})

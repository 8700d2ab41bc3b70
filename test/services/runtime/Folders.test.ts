import { statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { makeFolders } from "../../../src/services/runtime/System.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const make = (folder: string, mode?: number) => Effect.tryPromise(() => makeFolders(folder, mode))

describe("folders", () => {
  it.scoped("are created with their parents, and the topmost is returned", function* () {
    const root = yield* temporaryDirectory
    const folder = path.join(root, "a", "b", "c")
    assert.strictEqual(yield* make(folder, 0o700), path.join(root, "a"))
    const usual = 0o777 & ~process.umask()
    assert.deepStrictEqual(
      ["a", "a/b", "a/b/c"].map((name) => statSync(path.join(root, name)).mode & 0o777),
      [usual, usual, 0o700]
    )
    assert.isUndefined(yield* make(folder))
    assert.strictEqual(yield* make(path.join(root, "a", "d")), path.join(root, "a", "d"))
  })

  it.scoped("are made by all who want them at once", function* () {
    const folder = path.join(yield* temporaryDirectory, "a", "b", "c")
    yield* Effect.all(
      Array.from({ length: 10 }, () => make(folder)),
      { concurrency: "unbounded" }
    )
    assert.isTrue(statSync(folder).isDirectory())
  })

  it.scoped("are refused if none can be created", function* () {
    const file = path.join(yield* temporaryDirectory, "file")
    writeFileSync(file, "")
    for (const folder of ["/proc/none/below/it", path.join(file, "below")]) {
      assert.isTrue(yield* Effect.isFailure(make(folder)), folder)
    }
  })
})

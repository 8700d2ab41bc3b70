import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Effect, Logger } from "effect"
import { removeReplacedFiles } from "../../../src/services/runtime/OwnFiles.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const daysAgo = (days: number) => Date.now() - days * 24 * 3_600_000

/** A directory that a build made, with one current file and files replaced that many days ago. All look a month old. */
const builtDirectory = (replacedDaysAgo: Readonly<Record<string, number>>) =>
  Effect.map(temporaryDirectory, (root) => {
    const dist = path.join(root, "dist")
    const replaced = Object.fromEntries(
      Object.entries(replacedDaysAgo).map(([name, days]) => [`gateway/${name}`, daysAgo(days)])
    )
    mkdirSync(path.join(dist, "gateway"), { recursive: true })
    for (const name of ["gateway/current.js", "gateway/unlisted.js", ...Object.keys(replaced)]) {
      writeFileSync(path.join(dist, name), "")
      utimesSync(path.join(dist, name), daysAgo(30) / 1000, daysAgo(30) / 1000)
    }
    const files = ["gateway/current.js", "gateway/build.json"]
    const record = JSON.stringify({ inputs: "", inode: statSync(dist).ino, files, replaced })
    writeFileSync(path.join(dist, "gateway/build.json"), record)
    return { root, dist, record }
  })

const listFiles = (dist: string) => readdirSync(path.join(dist, "gateway")).toSorted()

/** Removes files and returns the lines of the log. */
const removeAndLog = (dist: string) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
    return removeReplacedFiles(dist).pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Effect.as(lines)
    )
  })

/** Root may write to read-only directories, so this becomes nobody until the scope ends. */
const withoutRoot = Effect.acquireRelease(
  Effect.sync(() => {
    const isRoot = process.geteuid?.() === 0
    if (isRoot) process.seteuid?.("nobody")
    return isRoot
  }),
  (isRoot) => Effect.sync(() => isRoot && process.seteuid?.(0))
)

describe("the start of a gateway", () => {
  it.scopedLive("removes files that the record lists as replaced 7 days ago, and no others", function* () {
    const { dist } = yield* builtDirectory({ "old.js": 8, "recent.js": 6 })
    assert.deepStrictEqual(yield* removeAndLog(dist), [])
    assert.deepStrictEqual(listFiles(dist), ["build.json", "current.js", "recent.js", "unlisted.js"])
  })

  it.scopedLive("keeps a current file that the record also lists as replaced", function* () {
    const { dist } = yield* builtDirectory({ "current.js": 8, "old.js": 8 })
    assert.deepStrictEqual(yield* removeAndLog(dist), [])
    assert.deepStrictEqual(listFiles(dist), ["build.json", "current.js", "unlisted.js"])
  })

  it.scopedLive("removes nothing from a copy, whose record tells when files were replaced elsewhere", function* () {
    const { dist, root } = yield* builtDirectory({ "old.js": 8 })
    const copy = path.join(root, "copy")
    cpSync(dist, copy, { recursive: true, preserveTimestamps: true })
    assert.deepStrictEqual(yield* removeAndLog(copy), [])
    assert.deepStrictEqual(listFiles(copy), listFiles(dist))
    assert.include(listFiles(copy), "old.js")
  })

  it.scopedLive("removes nothing if the record is missing or torn", function* () {
    const { dist, record, root } = yield* builtDirectory({ "old.js": 8 })
    for (const text of ["", record.slice(0, -1), "null", "{}"]) {
      writeFileSync(path.join(dist, "gateway/build.json"), text)
      assert.deepStrictEqual(yield* removeAndLog(dist), [], text)
      assert.include(listFiles(dist), "old.js", text)
    }
    assert.deepStrictEqual(yield* removeAndLog(path.join(root, "missing")), [])
  })

  it.scopedLive("goes on after a file that cannot be removed, and logs one warning", function* () {
    const { dist } = yield* builtDirectory({ "a.js": 8, "d.js": 8 })
    const record = { inode: statSync(dist).ino, files: [], replaced: {} as Record<string, number> }
    for (const name of ["b.js", "c.js"]) mkdirSync(path.join(dist, "gateway", name))
    for (const name of ["a.js", "b.js", "c.js", "d.js"]) record.replaced[`gateway/${name}`] = daysAgo(8)
    writeFileSync(path.join(dist, "gateway/build.json"), JSON.stringify(record))
    const [line = "", ...others] = yield* removeAndLog(dist)
    assert.deepStrictEqual(others, [])
    assert.isTrue(line.startsWith(`WARN Could not remove ${dist}/gateway/b.js and 1 more: `), line)
    assert.deepStrictEqual(listFiles(dist), ["b.js", "build.json", "c.js", "current.js", "unlisted.js"])
  })

  it.scopedLive("logs one warning if the directory is read-only and has expired files, else none", function* () {
    const expired = yield* builtDirectory({ "old.js": 8, "older.js": 20 })
    const recent = yield* builtDirectory({ "recent.js": 6 })
    for (const { dist, root } of [expired, recent]) {
      chmodSync(root, 0o755)
      chmodSync(path.join(dist, "gateway"), 0o555)
    }
    const [lines, none] = yield* Effect.scoped(
      Effect.zipRight(withoutRoot, Effect.all([removeAndLog(expired.dist), removeAndLog(recent.dist)]))
    )
    for (const { dist } of [expired, recent]) chmodSync(path.join(dist, "gateway"), 0o755)
    assert.lengthOf(lines, 1)
    assert.match(lines[0] ?? "", /^WARN Could not remove .*old\.js and 1 more: EACCES/)
    assert.isTrue(existsSync(path.join(expired.dist, "gateway/old.js")))
    assert.deepStrictEqual(none, [])
  })
})

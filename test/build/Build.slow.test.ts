import { execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { appendFile, cp, mkdir, readdir, readFile, rename, stat, symlink, utimes, writeFile } from "node:fs/promises"
import path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { removeReplacedFiles } from "../../src/services/runtime/OwnFiles.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const run = promisify(execFile)

const entry = `
import { createInterface } from "node:readline"
console.log("ready")
createInterface({ input: process.stdin }).once("line", async () => {
  const { text } = await import("./late.ts")
  console.log(text)
  process.exit()
})
`

const daysAgo = (count: number) => new Date(Date.now() - count * 24 * 3_600_000)

/** Kills a build once it has put a file of this name in place. */
const killAfter = (name: string) => `
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
const rename = fs.renameSync
fs.renameSync = (from, to) => {
  rename(from, to)
  if (to.endsWith("/${name}")) process.kill(process.pid, "SIGKILL")
}
syncBuiltinESMExports()
`

/** A checkout with a program that loads a text when it is sent a line. */
const checkout = Effect.gen(function* () {
  const directory = yield* temporaryDirectory
  const file = (name: string) => path.join(directory, name)
  const put = async (name: string, content: string) => {
    await mkdir(path.dirname(file(name)), { recursive: true })
    await writeFile(file(name), content)
  }
  const sayLate = (text: string) => put("src/late.ts", `export const text = ${JSON.stringify(text)}`)
  yield* Effect.promise(async () => {
    for (const name of ["build.mjs", "src/launcher.sh"]) await cp(path.join(root, name), file(name))
    await symlink(path.join(root, "node_modules"), file("node_modules"))
    await put("package.json", `{"type": "module"}`)
    await put("docs/money.md", "# Money")
    await put("src/main.ts", entry)
    await put("src/services/admin/ConsoleInputs.ts", "export const consoleInputs = {}")
    await put("src/console/main.tsx", "document.title = 'console'")
    await put("src/console/style/main.css", "body { margin: 0 }")
    await put("src/console/index.html", "console.css console.js")
    await sayLate("first")
  })
  return {
    file,
    sayLate: (text: string) => Effect.promise(() => sayLate(text)),
    build: Effect.promise(() => run(process.execPath, ["build.mjs"], { cwd: directory })),
    interruptAfter: (name: string) =>
      Effect.promise(async () => {
        const args = ["--import", `data:text/javascript,${encodeURIComponent(killAfter(name))}`, "build.mjs"]
        const child = spawn(process.execPath, args, { cwd: directory, stdio: "inherit" })
        assert.deepStrictEqual(await once(child, "exit"), [null, "SIGKILL"])
      }),
    ageRecord: (days: number) =>
      Effect.promise(async () => {
        const record = file("dist/gateway/build.json")
        const { replaced, ...others } = JSON.parse(await readFile(record, "utf8"))
        for (const name of Object.keys(replaced)) replaced[name] -= days * 24 * 3_600_000
        await writeFile(record, JSON.stringify({ ...others, replaced }))
      }),
    files: Effect.promise(async () => (await readdir(file("dist"), { recursive: true })).toSorted()),
    ageAll: (days: number) =>
      Effect.promise(async () => {
        for (const name of await readdir(file("dist"), { recursive: true })) {
          await utimes(file(`dist/${name}`), daysAgo(days), daysAgo(days))
        }
      }),
    removeReplacedFiles: removeReplacedFiles(file("dist")),
    builtAt: Effect.promise(async () => (await stat(file("dist/gateway.js"))).mtimeMs)
  }
})

/** Runs the built program; the effect sends the line and answers what it prints then. */
const start = (program: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] })
        const lines = createInterface({ input: child.stdout })
        const [line] = await Promise.race([once(lines, "line"), once(child, "exit")])
        assert.strictEqual(line, "ready")
        return { child, lines }
      }),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    ({ child, lines }) =>
      Effect.promise(async () => {
        const next = Promise.race([once(lines, "line"), once(child, "exit")])
        child.stdin.write("\n")
        const [line] = await next
        return String(line)
      })
  )

describe("a build", () => {
  it.scopedLive("leaves a running program the files that it loads late, and a new one gets its own", function* () {
    const { build, file, sayLate } = yield* checkout
    yield* build
    const loadFirst = yield* start(file("dist/gateway.js"))
    for (const text of ["second", "third"]) {
      yield* sayLate(text)
      yield* build
    }
    const loadThird = yield* start(file("dist/gateway.js"))
    assert.strictEqual(yield* loadFirst, "first")
    assert.strictEqual(yield* loadThird, "third")
  })

  it.scopedLive("is skipped if no source has changed and no file is missing", function* () {
    const { build, builtAt, file, files } = yield* checkout
    yield* build
    const [made, at] = [yield* files, yield* builtAt]
    yield* build
    assert.strictEqual(yield* builtAt, at)
    yield* Effect.promise(() => run("rm", ["-r", file("dist/gateway")]))
    yield* build
    assert.deepStrictEqual(yield* files, made)
  })

  it.scopedLive("starts node with the flags of a server for serve only", function* () {
    const { build, file } = yield* checkout
    yield* build
    yield* Effect.promise(() =>
      writeFile(file("node"), `#!/bin/sh\necho "$MALLOC_MMAP_THRESHOLD_ $@"\n`, { mode: 0o755 })
    )
    const program = file("dist/gateway.js")
    const nodeArguments = (args: ReadonlyArray<string>, own = {}) =>
      Effect.promise(async () => (await run(program, args, { env: { PATH: file("."), ...own } })).stdout.trim())
    const serve = yield* nodeArguments(["serve", "--workers", "2"])
    assert.strictEqual(serve, `65536 --expose-gc --max-semi-space-size=64 ${program} serve --workers 2`)
    assert.strictEqual(yield* nodeArguments(["keys", "list"]), `${program} keys list`)
    // An empty variable counts as unset, as for every setting. The C library would read 0.
    for (const [own, given] of [
      ["131072", "131072"],
      ["", "65536"]
    ] as const) {
      const line = yield* nodeArguments(["serve"], { MALLOC_MMAP_THRESHOLD_: own })
      assert.isTrue(line.startsWith(`${given} --expose-gc `), line)
    }
  })

  it.scopedLive("builds again if a source, the lock file or a document changes", function* () {
    const { ageAll, build, builtAt, file } = yield* checkout
    yield* build
    for (const name of ["src/late.ts", "package-lock.json", "docs/money.md", "src/console/style/main.css"]) {
      yield* ageAll(1)
      const before = yield* builtAt
      yield* Effect.promise(() => appendFile(file(name), "\n"))
      yield* build
      assert.isAbove(yield* builtAt, before, name)
    }
  })

  it.scopedLive("refuses a console that takes too long to load", function* () {
    const { build, file } = yield* checkout
    const noise = randomBytes(75_000).toString("base64")
    yield* Effect.promise(() => writeFile(file("src/console/main.tsx"), `document.title = "${noise}"`))
    assert.match(String(yield* Effect.flip(Effect.sandbox(build))), /The console has \d+ bytes gzipped, of 75000/)
    assert.isFalse(existsSync(file("dist/gateway.js")))
  })
})

describe("a build over an unreadable record", () => {
  it.scopedLive("builds, and the next build is skipped", function* () {
    const { build, builtAt, file } = yield* checkout
    yield* build
    const record = file("dist/gateway/build.json")
    const whole = yield* Effect.promise(() => readFile(record, "utf8"))
    for (const text of ["", whole.slice(0, whole.length / 2), "null"]) {
      yield* Effect.promise(() => writeFile(record, text))
      yield* build
      assert.strictEqual(yield* Effect.promise(() => readFile(record, "utf8")), whole, text)
    }
    const at = yield* builtAt
    yield* build
    assert.strictEqual(yield* builtAt, at)
  })
})

describe("an interrupted build", () => {
  // The first program is built again after a week, so the record lists its files as replaced.
  const rebuildFirst = Effect.gen(function* () {
    const made = yield* checkout
    yield* made.build
    yield* made.sayLate("second")
    yield* made.build
    yield* made.ageRecord(8)
    yield* made.sayLate("first")
    return made
  })

  it.scopedLive.each(["build.json", "gateway.js"])("leaves a program that runs after %s", function* (last) {
    const { ageRecord, build, file, files, interruptAfter, removeReplacedFiles, sayLate } = yield* rebuildFirst
    yield* interruptAfter(last)
    const expected = last === "gateway.js" ? "first" : "second"
    yield* removeReplacedFiles
    const before = yield* start(file("dist/gateway.js"))
    yield* ageRecord(8)
    yield* removeReplacedFiles
    const after = yield* start(file("dist/gateway.js"))
    yield* sayLate("third")
    yield* build
    yield* removeReplacedFiles
    assert.strictEqual(yield* before, expected)
    assert.strictEqual(yield* after, expected)
    yield* ageRecord(8)
    yield* removeReplacedFiles
    assert.lengthOf(
      (yield* files).filter((name) => /^gateway\/late-.*\.js$/.test(name)),
      1
    )
  })

  it.scopedLive.each(["build.json", "gateway.js"])("is completed by the next one after %s", function* (last) {
    const { build, file, interruptAfter, sayLate } = yield* rebuildFirst
    yield* interruptAfter(last)
    yield* sayLate("second")
    yield* build
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "second")
  })
})

describe("a start", () => {
  it.scopedLive("removes files a week after a build has replaced them, and no file of the newest build", function* () {
    const { ageAll, ageRecord, build, file, files, removeReplacedFiles, sayLate } = yield* checkout
    yield* build
    const first = yield* files
    // The first build is old, and was in use until the second.
    yield* ageAll(30)
    yield* sayLate("second")
    yield* build
    yield* removeReplacedFiles
    assert.includeMembers(yield* files, first)
    const replaced = first.filter((name) => /^gateway\/(late|main)-/.test(name))
    assert.lengthOf(replaced, 4)
    yield* ageRecord(8)
    yield* sayLate("third")
    yield* build
    assert.includeMembers(yield* files, first)
    const second = yield* files
    yield* removeReplacedFiles
    assert.deepStrictEqual(
      yield* files,
      second.filter((name) => !replaced.includes(name))
    )
    yield* ageRecord(8)
    yield* removeReplacedFiles
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "third")
    assert.lengthOf(
      (yield* files).filter((name) => /^gateway\/(late|main)-.*\.js$/.test(name)),
      2
    )
  })

  it.scopedLive("keeps files that an older build made and the newest build made again", function* () {
    const { ageRecord, build, file, removeReplacedFiles, sayLate } = yield* checkout
    for (const text of ["first", "second", "first"]) {
      yield* sayLate(text)
      yield* build
      yield* ageRecord(8)
    }
    yield* removeReplacedFiles
    const loadFirst = yield* start(file("dist/gateway.js"))
    yield* sayLate("third")
    yield* build
    yield* removeReplacedFiles
    assert.strictEqual(yield* loadFirst, "first")
  })

  it.scopedLive("removes nothing from a copy of a release that was built weeks ago", function* () {
    const { ageAll, ageRecord, build, file, files, removeReplacedFiles, sayLate } = yield* checkout
    const copyTo = (name: string) => Effect.promise(() => run("cp", ["-a", `${file("dist")}/.`, file(name)]))
    yield* build
    yield* Effect.promise(() => mkdir(file("served")))
    yield* copyTo("served")
    const loadFirst = yield* start(file("served/gateway.js"))
    yield* sayLate("second")
    yield* build
    yield* ageAll(20)
    yield* ageRecord(20)
    yield* copyTo("served")
    // From here on, the copy is what the checkout builds into.
    yield* Effect.promise(async () => {
      await rename(file("dist"), file("elsewhere"))
      await rename(file("served"), file("dist"))
    })
    const copied = yield* files
    yield* removeReplacedFiles
    assert.deepStrictEqual(yield* files, copied)
    yield* sayLate("third")
    yield* build
    yield* removeReplacedFiles
    assert.includeMembers(yield* files, copied)
    yield* Effect.promise(() => symlink(file("dist"), file("served")))
    assert.strictEqual(yield* loadFirst, "first")
    yield* ageRecord(8)
    yield* removeReplacedFiles
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "third")
    assert.lengthOf(
      (yield* files).filter((name) => /^gateway\/late-.*\.js$/.test(name)),
      1
    )
  })
})

import { execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { appendFile, cp, mkdir, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises"
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
        await once(lines, "line")
        return { child, lines }
      }),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    ({ child, lines }) =>
      Effect.promise(async () => {
        const next = once(lines, "line")
        child.stdin.write("\n")
        return String(await next)
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

describe("a start", () => {
  it.scopedLive("removes files a week after a build has replaced them, and no file of the newest build", function* () {
    const { ageAll, build, file, files, removeReplacedFiles, sayLate } = yield* checkout
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
    yield* ageAll(8)
    yield* sayLate("third")
    yield* build
    assert.includeMembers(yield* files, first)
    const second = yield* files
    yield* removeReplacedFiles
    assert.deepStrictEqual(
      yield* files,
      second.filter((name) => !replaced.includes(name))
    )
    yield* ageAll(8)
    yield* removeReplacedFiles
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "third")
    assert.lengthOf(
      (yield* files).filter((name) => /^gateway\/(late|main)-.*\.js$/.test(name)),
      2
    )
  })

  it.scopedLive("removes nothing without the record of a build", function* () {
    const { ageAll, build, file, files, removeReplacedFiles } = yield* checkout
    yield* removeReplacedFiles
    yield* build
    yield* Effect.promise(() => rm(file("dist/gateway/build.json")))
    const built = yield* files
    yield* ageAll(8)
    yield* removeReplacedFiles
    assert.deepStrictEqual(yield* files, built)
  })
})

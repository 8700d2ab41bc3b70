import { execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
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
    for (const name of ["build.mjs", "bin"]) await cp(path.join(root, name), file(name), { recursive: true })
    await symlink(path.join(root, "node_modules"), file("node_modules"))
    await put("package.json", `{"type": "module"}`)
    await put("src/main.ts", entry)
    await put("src/services/admin/Organizations.ts", "export const consoleInputs = {}")
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
    files: Effect.promise(async () => (await readdir(file("dist"), { recursive: true })).toSorted())
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

  it.scopedLive("of the same sources makes the same files", function* () {
    const { build, files } = yield* checkout
    yield* build
    const made = yield* files
    yield* build
    assert.deepStrictEqual(yield* files, made)
  })

  it.scopedLive("refuses a console that takes too long to load", function* () {
    const { build, file } = yield* checkout
    const noise = randomBytes(95_000).toString("base64")
    yield* Effect.promise(() => writeFile(file("src/console/main.tsx"), `document.title = "${noise}"`))
    assert.match(String(yield* Effect.flip(Effect.sandbox(build))), /The console has \d+ bytes gzipped, of 95000/)
    assert.isFalse(existsSync(file("dist/gateway.js")))
  })
})

describe("the program", () => {
  /** What node is started with by the program under this path, in another directory. */
  const nodeArguments = (directory: string, program: string, args: ReadonlyArray<string>, own = {}) =>
    Effect.promise(async () => {
      const node = `#!/bin/sh\necho "$MALLOC_MMAP_THRESHOLD_ $@"\n`
      await writeFile(path.join(directory, "node"), node, { mode: 0o755 })
      const env = { PATH: `${directory}:${process.env["PATH"]}`, ...own }
      return (await run(program, args, { env, cwd: "/" })).stdout.trim()
    })

  it.scopedLive("starts node with the flags of a server for serve only", function* () {
    const { file } = yield* checkout
    const start = (args: ReadonlyArray<string>, own = {}) => nodeArguments(file("."), file("bin/gateway"), args, own)
    const program = file("dist/gateway.js")
    const serve = yield* start(["serve", "--workers", "2"])
    assert.strictEqual(serve, `65536 --expose-gc --max-semi-space-size=64 ${program} serve --workers 2`)
    assert.strictEqual(yield* start(["keys", "list"]), `${program} keys list`)
    // An empty variable counts as unset, as for every setting. The C library would read 0.
    for (const [own, given] of [
      ["131072", "131072"],
      ["", "65536"]
    ] as const) {
      const line = yield* start(["serve"], { MALLOC_MMAP_THRESHOLD_: own })
      assert.isTrue(line.startsWith(`${given} --expose-gc `), line)
    }
  })

  it.scopedLive("is found through symbolic links, such as npm's and a release's", function* () {
    const { file } = yield* checkout
    yield* Effect.promise(async () => {
      await mkdir(file("links dir"))
      await symlink(file("."), file("links dir/release"))
      await symlink("release/bin/gateway", file("links dir/gateway"))
    })
    const line = yield* nodeArguments(file("."), file("links dir/gateway"), ["serve"])
    assert.isTrue(line.endsWith(` ${file("dist/gateway.js")} serve`), line)
  })

  it.scopedLive("also starts without its launcher", function* () {
    const { build, file } = yield* checkout
    yield* build
    const child = run(file("dist/gateway.js"))
    child.child.stdin?.end("\n")
    assert.strictEqual((yield* Effect.promise(() => child)).stdout, "ready\nfirst\n")
  })
})

describe("an interrupted build", () => {
  it.scopedLive("leaves the program as it was, and the next one completes it", function* () {
    const { build, file, interruptAfter, sayLate } = yield* checkout
    yield* build
    yield* sayLate("second")
    yield* interruptAfter("index.html")
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "first")
    yield* build
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "second")
  })
})

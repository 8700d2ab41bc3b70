import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { cp, mkdir, readdir, stat, symlink, utimes, writeFile } from "node:fs/promises"
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
    await cp(path.join(root, "build.mjs"), file("build.mjs"))
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

const days = (count: number) => count * 24 * 3_600

describe("a build", () => {
  it.scopedLive("leaves a running program what that loads late, and a new one gets its own", function* () {
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

  it.scopedLive("bundles nothing where nothing has changed, but what is missing", function* () {
    const { build, builtAt, file, files } = yield* checkout
    yield* build
    const [made, at] = [yield* files, yield* builtAt]
    yield* build
    assert.strictEqual(yield* builtAt, at)
    yield* Effect.promise(() => run("rm", ["-r", file("dist/gateway")]))
    yield* build
    assert.deepStrictEqual(yield* files, made)
  })

  it.scopedLive("passes the flags of a server to node for serve alone", function* () {
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
    // An empty one is none, as of every setting: the C library would take it for 0.
    for (const [own, given] of [
      ["131072", "131072"],
      ["", "65536"]
    ] as const) {
      const line = yield* nodeArguments(["serve"], { MALLOC_MMAP_THRESHOLD_: own })
      assert.isTrue(line.startsWith(`${given} --expose-gc `), line)
    }
  })

  it.scopedLive("removes files a week after another build has replaced them", function* () {
    const { build, file, files, sayLate } = yield* checkout
    yield* build
    const first = yield* files
    yield* sayLate("second")
    const old = Date.now() / 1000 - days(30)
    const isOfProgram = (name: string) => /^gateway\/.*\.js$/.test(name)
    // However long ago it was made, it ran until now.
    for (const name of first.filter(isOfProgram)) yield* Effect.promise(() => utimes(file(`dist/${name}`), old, old))
    yield* build
    assert.includeMembers(yield* files, first)
    const replaced = Date.now() / 1000 - days(8)
    const gone = first.filter((name) => /^gateway\/(late|main)-/.test(name))
    assert.lengthOf(gone, 4)
    for (const name of gone) yield* Effect.promise(() => utimes(file(`dist/${name}`), replaced, replaced))
    yield* sayLate("third")
    yield* build
    assert.notIncludeMembers(yield* files, gone)
    assert.strictEqual(yield* yield* start(file("dist/gateway.js")), "third")
  })
})

import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Pool, Schema } from "effect"
import { inject } from "vitest"
import { assert, describe, it } from "../harness/It.ts"
import { prefix } from "../harness/temporary.ts"
import type { Bug } from "./Bug.ts"
import { bugs } from "./Bugs.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const run = promisify(execFile)
const decodeReport = Schema.decodeUnknown(
  Schema.parseJson(
    Schema.Struct({
      numPassedTests: Schema.Number,
      testResults: Schema.Array(
        Schema.Struct({
          assertionResults: Schema.Array(Schema.Struct({ fullName: Schema.String, status: Schema.String }))
        })
      )
    })
  )
)

const plant = (source: string, { file, find, name, replace }: Bug): string => {
  const parts = source.split(find)
  assert.lengthOf(parts, 2, `${name}: what it replaces is not once in ${file}`)
  return parts.join(replace)
}

/** A copy of the project as git knows it, built. */
const scratch = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(prefix)
    const { stdout } = await run("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root })
    for (const file of stdout.trim().split("\n")) {
      await mkdir(path.dirname(path.join(directory, file)), { recursive: true })
      await cp(path.join(root, file), path.join(directory, file))
    }
    await symlink(path.join(root, "node_modules"), path.join(directory, "node_modules"))
    return directory
  }),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

/** Runs test files of a copy; a run that ends in no report has decided nothing, and dies. */
const test = Effect.fnUntraced(function* (directory: string, files: ReadonlyArray<string>, retry: number) {
  const report = path.join(directory, "report.json")
  yield* Effect.promise(() => rm(report, { force: true }))
  yield* Effect.promise(() => run(process.execPath, ["build.mjs"], { cwd: directory }))
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs")
  const { CI: _, VITEST: __, ...env } = process.env
  yield* Effect.promise(() =>
    run(process.execPath, [vitest, "run", `--retry=${retry}`, ...files], {
      cwd: directory,
      env: {
        ...env,
        VITEST_JSON: report,
        MODEL_RUNS: "300",
        PLANTED: "",
        // Making a server costs more than most of these files.
        TEST_DATABASE_URL: inject("databaseServer")
      },
      maxBuffer: 2 ** 28
    }).catch(() => undefined)
  )
  const { numPassedTests, testResults } = yield* Effect.flatMap(
    Effect.promise(() => readFile(report, "utf8")),
    decodeReport
  )
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .flatMap(({ fullName, status }) => (status === "failed" ? [fullName] : []))
  return { passed: numPassedTests, failed }
})

describe("the planted bugs", () => {
  for (const bug of bugs) {
    it.effect(`can be planted: ${bug.name}`, function* () {
      const source = yield* Effect.promise(() => readFile(path.join(root, bug.file), "utf8"))
      assert.notStrictEqual(plant(source, bug), source)
    })
  }
})

/** Half an hour on a quiet machine: only `npm run planted` does it, for all bugs or for those whose names match. */
const wanted = process.env["PLANTED"] ?? ""

/** How many bugs are tried at a time, each in a copy of its own. */
const copies = 2

describe.runIf(wanted !== "")("the suite", () => {
  const chosen = bugs.filter(({ name }) => wanted === "all" || new RegExp(wanted).test(name))

  it.scopedLive(
    "passes without any bug, and fails with each",
    function* () {
      // vitest without a file would run every test.
      assert.isNotEmpty(chosen, `no planted bug is named ${wanted}`)
      const pool = yield* Pool.make({ acquire: scratch, size: copies })
      const tryBug = Effect.fnUntraced(function* (bug: Bug) {
        const directory = yield* pool.get
        const file = path.join(directory, bug.file)
        const source = yield* Effect.promise(() => readFile(file, "utf8"))
        yield* Effect.promise(() => writeFile(file, plant(source, bug)))
        const { failed } = yield* test(directory, bug.caughtBy, 0)
        yield* Effect.promise(() => writeFile(file, source))
        console.log(`${failed.length > 0 ? `caught by ${failed.length} tests` : "MISSED"}: ${bug.name}`)
        return failed.length > 0 ? [] : [bug.name]
      }, Effect.scoped)
      const files = [...new Set(chosen.flatMap(({ caughtBy }) => caughtBy))]
      const sound = yield* Effect.scoped(Effect.flatMap(pool.get, (directory) => test(directory, files, 1)))
      assert.isAbove(sound.passed, 0)
      assert.deepStrictEqual(sound.failed, [])
      const missed = yield* Effect.forEach(chosen, tryBug, { concurrency: copies })
      assert.deepStrictEqual(missed.flat(), [])
    },
    7_200_000
  )
})

import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Schema } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { freshUrl } from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { type Bug, bugs } from "./Bugs.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const run = promisify(execFile)

const decodeReport = Schema.decodeUnknown(
  Schema.parseJson(
    Schema.Struct({
      testResults: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          message: Schema.String,
          assertionResults: Schema.Array(
            Schema.Struct({
              fullName: Schema.String,
              status: Schema.String,
              failureMessages: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
            })
          )
        })
      )
    })
  )
)

const plantInDatabase = (url: string, sql: string) =>
  Effect.promise(async () => {
    const client = new Pg.Client(url)
    await client.connect()
    try {
      await client.query(sql)
    } finally {
      await client.end()
    }
  })

/** Runs test files in a process of their own. Dies if the bug cannot be planted or vitest writes no report. */
const runTests = Effect.fnUntraced(function* (files: ReadonlyArray<string>, bug?: Bug) {
  const report = path.join(yield* temporaryDirectory, "report.json")
  const template = yield* freshUrl
  if (bug?.kind === "database") yield* plantInDatabase(template, bug.sql)
  const { CI: _, VITEST: __, ...env } = process.env
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs")
  const options = ["--config", "test/planted/vitest.config.ts", "--reporter=json", `--outputFile=${report}`]
  const output = yield* Effect.promise((signal) =>
    run(process.execPath, [vitest, "run", ...options, ...files], {
      cwd: root,
      env: {
        ...env,
        TEST_DATABASE_URL: inject("databaseServer"),
        PLANTED_TEMPLATE: new URL(template).pathname.slice(1),
        ...(bug !== undefined && { PLANTED_BUG: bug.name })
      },
      maxBuffer: 2 ** 28,
      signal
    }).catch((error: unknown) => error)
  )
  const { testResults } = yield* Effect.promise(() => readFile(report, "utf8")).pipe(
    Effect.tapErrorCause(() => Effect.logError("vitest wrote no report", output)),
    Effect.flatMap(decodeReport)
  )
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  return {
    passed: tests.filter(({ status }) => status === "passed").length,
    failed: tests.filter(({ status }) => status === "failed"),
    /** Messages of files that could not be imported. */
    broken: testResults.flatMap(({ assertionResults, message }) => (assertionResults.length === 0 ? [message] : []))
  }
}, Effect.scoped)

const chosen = bugs.filter(({ name }) => new RegExp(process.env["PLANTED"] ?? "").test(name))
const permits = Effect.unsafeMakeSemaphore(2)
const timeout = 900_000

describe("planted bugs", () => {
  it("have different names, of which PLANTED matches at least one", () => {
    assert.strictEqual(new Set(bugs.map(({ name }) => name)).size, bugs.length)
    assert.isNotEmpty(chosen)
  })

  it.live(
    "are needed for a failure: without a bug the same test files pass",
    function* () {
      const { broken, failed, passed } = yield* runTests([...new Set(chosen.map(({ caughtBy }) => caughtBy))])
      assert.deepStrictEqual({ broken, failed }, { broken: [], failed: [] })
      assert.isAbove(passed, 0)
    },
    timeout
  )

  for (const bug of chosen) {
    it.live(
      `${bug.name}: ${bug.caughtBy} fails`,
      () =>
        permits.withPermits(1)(
          Effect.map(runTests([bug.caughtBy], bug), ({ broken, failed }) => {
            assert.deepStrictEqual(broken, [], "the bug cannot be planted")
            // Another error may come from the bug's own code.
            const caught = failed.filter(({ failureMessages }) => failureMessages.join().includes("AssertionError"))
            assert.isNotEmpty(caught, `no assertion failed: ${failed.length} tests failed otherwise`)
          })
        ),
      { concurrent: true, timeout }
    )
  }
})

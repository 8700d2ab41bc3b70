import { execFile, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { isDeepStrictEqual, promisify } from "node:util"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import { Database } from "../src/database/Database.ts"
import { codeSpans, page, section, table } from "./docs/Markdown.ts"
import { read } from "./harness/client/AdminClient.ts"
import { callAt } from "./harness/client/HttpCalls.ts"
import { eventually } from "./harness/database/Money.ts"
import * as Postgres from "./harness/database/Postgres.ts"
import * as GatewayProcess from "./harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "./harness/It.ts"
import { temporaryDirectory } from "./harness/temporary.ts"

const tablesOf = (url: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`).pipe(
    Effect.provide(Database.layerUrl(Redacted.make(url), {}))
  )

/** What a start that fails says on its way out. */
const refusal = (env: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(GatewayProcess.start({ env })), ({ message }) => message)

const metricsAt = (url: string) =>
  Effect.map(callAt(`${url}/metrics`), ({ text }) =>
    Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name = ""]) => name)
      .filter((name) => !/^gateway_requests?_/.test(name)) // of the questions themselves
      .toSorted()
  )

/** What the docs say that a gateway's metrics show from the start. */
const documented = (() => {
  const health = section(page("docs/operating/monitoring.md"), "Health and metrics")
  const [, listed = ""] =
    /^Besides the database metrics, these are exported from startup(.*)^All others/ms.exec(health) ?? []
  const ofDatabase = table(health, "Metric from the database").map(([name = ""]) => name)
  return [...ofDatabase, ...codeSpans({ file: "", text: listed })].toSorted()
})()

describe("a gateway with DATABASE_URL", () => {
  it.scopedLive("and no credential stops unless SANDBOX=true, with the database untouched", function* () {
    const url = yield* Postgres.emptyUrl
    assert.match(
      yield* refusal({ DATABASE_URL: url }),
      /ended with 1:\ngateway: No model can be served: .*SANDBOX=true/
    )
    assert.deepStrictEqual(yield* tablesOf(url), [])

    const started = yield* GatewayProcess.start({ env: { DATABASE_URL: url, SANDBOX: "true" } })
    assert.match(started.stdout(), /The sandbox serves/)
    assert.notMatch(started.stdout(), /ggw_/)
    assert.isNotEmpty(yield* tablesOf(url))
    yield* eventually(metricsAt(started.url), (shown) => isDeepStrictEqual(shown, documented))
  })

  it.scopedLive("and a catalog that it cannot serve leaves the database untouched", function* () {
    const url = yield* Postgres.emptyUrl
    const said = yield* refusal({ DATABASE_URL: url, SANDBOX: "true", CATALOG_FILE: "package.json" })
    assert.match(said, /ended with 1:\ngateway: .*package\.json:\d+: /)
    assert.deepStrictEqual(yield* tablesOf(url), [])
  })
})

const withoutDatabase = (directory: string) => ({
  env: { DATABASE_URL: "", DATA_DIR: directory, SANDBOX: "true" }
})

describe("a gateway without DATABASE_URL", () => {
  it.scopedLive.skipIf(process.platform !== "linux")("stops where its directory cannot be made", function* () {
    const { env } = withoutDatabase("/proc/none/below")
    assert.match(yield* refusal(env), /ended with 1:\ngateway: .*DATA_DIR.*ENOENT/)
  })

  it.scopedLive.skipIf(process.platform !== "linux")(
    "gives back the memory of its start before it is announced",
    function* () {
      const cwd = yield* temporaryDirectory
      const line = [GatewayProcess.program, "serve"] as const
      const started = yield* GatewayProcess.start({ ...withoutDatabase(cwd), command: { line, cwd } })
      const status = readFileSync(`/proc/${started.process.pid}/status`, "utf8")
      const kilobytesOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1])
      assert.isBelow(kilobytesOf("VmRSS"), kilobytesOf("VmHWM") - 20_000)
    }
  )

  const noCurl = spawnSync("curl", ["--version"]).status !== 0

  it.scopedLive("prints at its first start what a newcomer needs, and at a later one how to get on", function* () {
    const directory = yield* temporaryDirectory
    yield* Effect.gen(function* () {
      const { ended, signal, stderr, stdout, url } = yield* GatewayProcess.start(withoutDatabase(directory))
      assert.match(stdout(), /"demo" has 100 USD/)
      assert.match(stdout(), /^ {2}ggw_\S+$/m)
      assert.include(stdout(), "sandbox")
      assert.include(stdout(), directory)
      const [, address, link] = /^ {2}(\S+\/console)#link=(\S+)$/m.exec(stdout()) ?? []
      assert.strictEqual(address, `${url}/console`)
      const sent = { body: { link }, headers: { "content-type": "application/json" } }
      const opened = yield* callAt(`${url}/admin/v1/session`, sent)
      assert.deepInclude(read(opened).operator, { name: "admin", role: "owner" })
      assert.strictEqual((yield* callAt(`${url}/admin/v1/session`, sent)).status, 401)
      yield* signal("SIGTERM")
      yield* ended
      const printed = `${stdout()}${stderr()}`
      assert.notMatch(printed, /fiber|#\d/i)
      const own = printed
        .trimEnd()
        .split("\n")
        .filter((line) => !line.includes("/admin/v1/session"))
      assert.isAtMost(own.length, 30)
      assert.lengthOf(stderr().match(/migration/g) ?? [], 1)
    }).pipe(Effect.scoped)

    const { stderr, stdout } = yield* GatewayProcess.start(withoutDatabase(directory))
    assert.notMatch(stdout(), /#link=|ggw_|curl/)
    assert.match(stdout(), /\/console/)
    for (const command of ["keys create --org demo", "operators link admin", "operators create alice --role read"])
      assert.include(stdout(), `gateway ${command}\n`)
    assert.notMatch(stderr(), /migration/)
  })

  it.scopedLive.skipIf(noCurl)("prints first requests that are served as they are", function* () {
    const { stdout } = yield* GatewayProcess.start(withoutDatabase(yield* temporaryDirectory))
    const lines = Array.from(stdout().matchAll(/^ {2}(curl .+)$/gm), ([, line = ""]) => line)
    const answers = yield* Effect.forEach(lines, (line) =>
      Effect.promise(() => promisify(execFile)("sh", ["-c", `${line} -sS --fail`]))
    )
    const expected = [
      '"object":"chat.completion"',
      "data: [DONE]",
      '"url":"http',
      '"object":"video"',
      '"object":"list"',
      '"object":"list"',
      '"balance_usd":'
    ]
    assert.lengthOf(answers, expected.length)
    for (const [index, text] of expected.entries()) assert.include(answers[index]?.stdout, text)
  })
})

import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import path from "node:path"
import { Effect, Schema } from "effect"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { Cli, json } from "./Cli.ts"

const Link = Schema.parseJson(Schema.Struct({ link: Schema.String }))
const Report = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(Schema.Struct({ check: Schema.String, state: Schema.String, detail: Schema.String }))
  })
)

type Environment = Readonly<Record<string, string>>

const serve = Effect.fnUntraced(function* (environment: Environment) {
  const { url } = yield* Cli
  return yield* start({ env: { DATABASE_URL: url, SANDBOX: "true", ...environment } })
})

/** The origin and path of a new link, by a command that knows the data directory alone. */
const linkAddress = Effect.fnUntraced(function* (environment: Environment) {
  const { run } = yield* Cli
  const { code, stderr, stdout } = yield* run(["operators", "link", "root", "--json"], environment)
  assert.deepStrictEqual([code, stderr], [0, ""])
  const { link } = Schema.decodeSync(Link)(stdout)
  const address = link.replace(/#link=[\w-]+$/, "")
  assert.notStrictEqual(address, link)
  return address
})

const examine = Effect.fnUntraced(function* (environment: Environment) {
  const { run } = yield* Cli
  const { stdout } = yield* run(["doctor", "--json"], { SANDBOX: "true", ...environment })
  const { data } = Schema.decodeSync(Report)(stdout)
  return new Map(data.map(({ check, detail, state }) => [check, { state, detail }]))
})

withLayer(Cli.layer)("commands beside a running gateway", (it) => {
  it.scoped("use its address, however its port was chosen", function* () {
    const { directory } = yield* Cli
    const DATA_DIR = path.join(directory, "running")
    yield* json("operators", "create", "root", "--role", "owner")
    for (const WORKERS of ["1", "2"]) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const gateway = yield* serve({ DATA_DIR, WORKERS })
          assert.strictEqual(yield* linkAddress({ DATA_DIR }), `${gateway.url}/console`)
          const page = yield* Effect.promise(() => fetch(`${gateway.url}/console`))
          assert.strictEqual(page.status, 200)
          const findings = yield* examine({ DATA_DIR })
          assert.strictEqual(findings.get("port")?.state, "ok")
          assert.include(findings.get("port")?.detail, `${new URL(gateway.url).host}: gateway `)
          assert.deepStrictEqual(findings.get("media links"), {
            state: "ok",
            detail: `${gateway.url} serves stored files`
          })
          yield* gateway.signal("SIGKILL")
          yield* gateway.ended
        })
      )
    }
    assert.strictEqual(yield* linkAddress({ DATA_DIR, PORT: "8788" }), "http://127.0.0.1:8788/console")
    const { run } = yield* Cli
    const { stdout } = yield* run(["operators", "link", "root"], { DATA_DIR, PORT: "8788" })
    assert.include(stdout, "No running gateway was found on this machine. The link uses the address in the settings")
  })

  it.scoped("prefer PUBLIC_URL of their own settings, then that of the gateway", function* () {
    const { directory } = yield* Cli
    const DATA_DIR = path.join(directory, "public")
    yield* serve({ DATA_DIR, PUBLIC_URL: "https://gateway.example" })
    assert.strictEqual(yield* linkAddress({ DATA_DIR }), "https://gateway.example/console")
    const PUBLIC_URL = "https://other.example"
    assert.strictEqual(yield* linkAddress({ DATA_DIR, PUBLIC_URL }), "https://other.example/console")
  })

  it.scoped("ignore a record if its process is another program or ran on another machine", function* () {
    const { directory } = yield* Cli
    const DATA_DIR = path.join(directory, "stale")
    const folder = path.join(DATA_DIR, "instances")
    mkdirSync(folder, { recursive: true })
    const url = `http://127.0.0.1:${yield* freePort}`
    const gateway = yield* serve({ DATA_DIR: path.join(directory, "elsewhere") })
    const record = { host: hostname(), pid: process.pid, startedAt: Date.now(), url, publicUrl: url }
    writeFileSync(path.join(folder, "1.json"), JSON.stringify(record))
    const { publicUrl: _, ...partial } = record
    writeFileSync(path.join(folder, "2.json"), JSON.stringify(partial))
    const moved = { ...record, host: "another", url: gateway.url, publicUrl: gateway.url }
    writeFileSync(path.join(folder, "3.json"), JSON.stringify(moved))
    writeFileSync(path.join(folder, "4.json"), JSON.stringify({ ...record, pid: 2 ** 30 }))
    assert.strictEqual(yield* linkAddress({ DATA_DIR, PORT: "8788" }), "http://127.0.0.1:8788/console")
    const own = yield* serve({ DATA_DIR })
    assert.strictEqual(yield* linkAddress({ DATA_DIR }), `${own.url}/console`)
    assert.notInclude(readdirSync(folder), "4.json")
  })

  it.scoped("do not stop a start whose data directory cannot be written", function* () {
    const { directory } = yield* Cli
    const DATA_DIR = path.join(directory, "no-folder")
    mkdirSync(DATA_DIR)
    writeFileSync(path.join(DATA_DIR, "instances"), "a file")
    const gateway = yield* serve({ DATA_DIR })
    const answer = yield* Effect.promise(() => fetch(`${gateway.url}/readyz`))
    assert.strictEqual(answer.status, 200)
  })
})

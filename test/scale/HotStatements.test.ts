import { HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Logger, Redacted, Schedule } from "effect"
import { Database } from "../../src/database/Database.ts"
import * as Gateway from "../../src/Gateway.ts"
import { readSettings } from "../../src/Settings.ts"
import { readCatalogFile } from "../../src/services/catalog/Catalog.ts"
import { ownFile } from "../../src/services/runtime/OwnFiles.ts"
import { openAccount, operator, type Account } from "../harness/client/Account.ts"
import { freshUrl } from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { makeRecorder, reached, recordWrites } from "./Recording.ts"

const bench = Effect.gen(function* () {
  const url = yield* freshUrl
  const environment = { DATA_DIR: yield* temporaryDirectory, DATABASE_URL: url, PORT: "0", SANDBOX: "true" }
  const settings = yield* readSettings(environment)
  const readCatalog = Effect.map(readCatalogFile(ownFile("catalog.yaml")), (source) => ({ source, environment }))
  const node = yield* Layer.build(NodeContext.layer)
  const plain = yield* Layer.build(operator.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url), { maxConnections: 2 }))))
  yield* Effect.provide(recordWrites, plain)
  const { layer, runs } = makeRecorder()
  const context = yield* Layer.build(
    Gateway.layer({ settings, readCatalog: Effect.provide(readCatalog, node) }).pipe(
      Layer.provideMerge(layer),
      Layer.provideMerge(Database.layerUrl(Redacted.make(url))),
      Layer.provide(NodeContext.layer),
      Layer.provide(Logger.remove(Logger.defaultLogger))
    )
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const base = `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}/v1`
  return { base, plain, runs }
})

const post = (base: string, { secret }: Account, path: string, body: object) =>
  Effect.promise(async () => {
    const answered = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" , "idempotency-key": crypto.randomUUID() },
      body: JSON.stringify(body)
    })
    const text = await answered.text()
    return { status: answered.status, text }
  })

describe("the statements of requests", () => {
  it.scopedLive("x", function* () {
    const { base, plain, runs } = yield* bench
    const accounts = yield* Effect.provide(Effect.all([openAccount({}), openAccount({})]), plain)
    const messages = [{ role: "user", content: "hello" }]
    const model = "gpt-5.2"
    const requests = [
      ["/chat/completions", { model, messages }],
      ["/chat/completions", { model, messages, stream: true }],
      ["/chat/completions", { model, messages: [{ role: "user", content: "[sandbox status=400]" }] }],
      ["/images/generations", { model: "flux-2-pro", prompt: "a cat" }],
      ["/videos", { model: "veo-3.1-fast-generate-001", prompt: "waves", seconds: 4 }]
    ] as const
    const before = Date.now()
    for (let n = 0; n < 3; n++) {
      const answers = yield* Effect.forEach(requests, ([path, body]) =>
        Effect.forEach([0, 0, 0, 0], () => Effect.forEach(accounts, (a) => post(base, a, path, body), { concurrency: "unbounded" }), { concurrency: "unbounded" }), { concurrency: "unbounded" })
      console.log(JSON.stringify(answers).slice(0, 100), Date.now() - before)
    }
    yield* Effect.provide(Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`SELECT FROM videos WHERE step <> 'over'`.pipe(Effect.repeat({ until: (rows) => rows.length === 0, schedule: Schedule.spaced("100 millis") }), Effect.timeout("20 seconds"))
    console.log(Date.now() - before)
    const all = yield* reached(runs)
    console.log(Date.now() - before, all.length, runs.length)
    for (const { text, least, most } of all) console.log(least, most, runs.filter((r) => r.text === text).length, text.slice(0, 260))
    }), plain)
  })
})

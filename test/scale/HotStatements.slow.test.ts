import { randomUUID } from "node:crypto"
import { HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Statement } from "@effect/sql"
import { Context, Effect, Layer, Logger, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import * as Gateway from "../../src/Gateway.ts"
import { readSettings } from "../../src/Settings.ts"
import { readCatalogFile } from "../../src/services/catalog/Catalog.ts"
import { ownFile } from "../../src/services/runtime/System.ts"
import { openAccount, operator } from "../harness/client/Account.ts"
import { see, untilOver, videoOf } from "../harness/client/MediaClient.ts"
import { freshUrl } from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { type HotStatement, hotStatements } from "./HotStatements.ts"
import { extents, makeRecorder, recordWrites } from "./Recording.ts"

/** A gateway whose statements are recorded. */
const bench = Effect.gen(function* () {
  const url = yield* freshUrl
  const database = (maxConnections: number) => Database.layerUrl(Redacted.make(url), { maxConnections })
  const own = yield* Layer.build(operator.pipe(Layer.provideMerge(database(2))))
  yield* Effect.provide(recordWrites, own)
  const environment = { DATA_DIR: yield* temporaryDirectory, DATABASE_URL: url, PORT: "0", SANDBOX: "true" }
  const settings = yield* readSettings(environment)
  const readCatalog = Effect.map(readCatalogFile(ownFile("catalog.yaml")), (source) => ({ source, environment }))
  const { layer, runs } = makeRecorder()
  const gateway = yield* Layer.build(
    Layer.unwrapEffect(
      Effect.map(Effect.context<NodeContext.NodeContext>(), (node) =>
        Gateway.layer({ settings, readCatalog: Effect.provide(readCatalog, node) })
      )
    ).pipe(
      Layer.provide(layer.pipe(Layer.provideMerge(database(10)))),
      Layer.provide(NodeContext.layer),
      Layer.provide(Logger.remove(Logger.defaultLogger))
    )
  )
  const { address } = Context.get(gateway, HttpServer.HttpServer)
  // The layer's transformer sees the statements of this fiber too.
  const unrecorded = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Statement.withTransformerDisabled(Effect.provide(effect, own))
  return {
    url: `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}`,
    /** New ones, whose keys nothing remembers. */
    customers: unrecorded(Effect.replicateEffect(openAccount({}), 4)),
    observed: unrecorded(Effect.suspend(() => extents(runs)))
  }
})

const together = { concurrency: "unbounded" } as const

const ask = (url: string, secret: string, path: string, body: object) =>
  Effect.promise(async () => {
    const answered = await fetch(`${url}/v1${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        "idempotency-key": randomUUID()
      },
      body: JSON.stringify(body)
    })
    return { status: answered.status, text: await answered.text() }
  })

const chat = { model: "gpt-5.2", messages: [{ role: "user", content: "hello" }] }
const image = { model: "flux-2-pro", prompt: "a cat" }
const video = { model: "veo-3.1-fast-generate-001", prompt: "waves", seconds: 4 }
const refused = { ...chat, messages: [{ role: "user", content: "[sandbox status=400]" }] }

const requests = [
  ["/chat/completions", chat, 200],
  ["/chat/completions", { ...chat, stream: true }, 200],
  ["/chat/completions", refused, 400],
  ["/images/generations", image, 200]
] as const

/** On a crowded machine requests of several organizations share a batch in one round of many. */
const maxRounds = 40

const matching = (text: string) => hotStatements.filter(({ texts }) => texts.some((one) => one.test(text)))

describe("the statements of requests", () => {
  it.scopedLive(
    "touch rows of as many organizations as is said of each, and none is left out",
    function* () {
      const { customers, observed, url } = yield* bench
      const askAll = Effect.flatMap(customers, (accounts) =>
        Effect.forEach(
          requests.flatMap((request) => accounts.map((account) => ({ account, request }))),
          ({ account, request: [path, body, status] }) =>
            Effect.map(ask(url, account.secret, path, body), (answer) =>
              assert.strictEqual(answer.status, status, answer.text)
            ),
          together
        )
      )
      const render = Effect.forEach(
        (yield* customers).slice(0, 2),
        ({ secret }) =>
          Effect.gen(function* () {
            const { id } = videoOf(yield* ask(url, secret, "/videos", video), 202)
            yield* untilOver(Effect.map(see({ url, secret }, `/${id}`), (answer) => videoOf(answer)))
          }),
        together
      )
      yield* Effect.all([askAll, render], together)

      const differing = Effect.map(observed, (extentsByText) =>
        [...extentsByText].flatMap(([text, extent]) => {
          const [said, ...others] = matching(text)
          const isSaid = said?.extent === extent || (said?.isRare === true && extent !== "several")
          return isSaid && others.length === 0 ? [] : [{ text, extent, said: said?.name }]
        })
      )
      // Which requests share a batch is the gateway's to decide; that some do is certain in the long run.
      let wrong = yield* differing
      for (let round = 0; round < maxRounds && wrong.length > 0; round++) {
        yield* askAll
        wrong = yield* differing
      }
      assert.deepStrictEqual(wrong, [])

      const texts = [...(yield* observed).keys()]
      const isUnused = ({ isRare, texts: patterns }: HotStatement) =>
        isRare !== true && patterns.some((pattern) => !texts.some((text) => pattern.test(text)))
      assert.deepStrictEqual(
        hotStatements.filter(isUnused).map(({ name }) => name),
        []
      )
    },
    180_000
  )
})

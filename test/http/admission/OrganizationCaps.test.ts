import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { type Account, openAccount, operator } from "../../harness/client/Account.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import { assertRefused, chat, chatPath, post, postTo, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import { isReplay } from "../../harness/client/MediaClient.ts"
import { freshUrl } from "../../harness/database/Postgres.ts"
import { ServedGateway, serveHere } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { directoryWith } from "../../harness/temporary.ts"

/** The addresses of two gateways over one database. */
class Gateways extends Context.Tag("test/Gateways")<Gateways, ReadonlyArray<string>>() {}

const gateways = Layer.unwrapScoped(
  Effect.gen(function* () {
    const database = yield* freshUrl
    const directory = yield* directoryWith({})
    const serve = serveHere({ DATABASE_URL: database, DATA_DIR: directory, SANDBOX: "true" })
    const both = Effect.map(Effect.all([serve, serve]), ([first, second]) =>
      Context.make(ServedGateway, first).pipe(Context.add(Gateways, [first.url, second.url]))
    )
    return Layer.scopedContext(both).pipe(
      Layer.merge(operator),
      Layer.provideMerge(Database.layerUrl(Redacted.make(database), { maxConnections: 2 }))
    )
  })
)

const hello = talk("gpt-5.2")
const large = { padding: "x".repeat(2 * 1024 * 1024) }
const picture = { model: "gpt-image-2", prompt: "a cat" }
const draw = post("/v1/images/generations")
const film = post("/v1/videos")
const reached = refusals.orgCapped("month")

const setCap = ({ org }: Account, amount: bigint) =>
  Effect.flatMap(Organizations, ({ update }) => update(org, { cap_usd: NanoUsd(amount), cap_period: "month" }))

/** A chat at each of the gateways. */
const chats = (account: Account) =>
  Effect.flatMap(Gateways, (urls) => Effect.forEach(urls, (url) => postTo(`${url}${chatPath}`, account, hello)))

const isRefused = (account: Account) =>
  soon(Effect.map(chats(account), (answers) => answers.forEach((answer) => assertRefused(answer, reached))))

const isServed = (account: Account) =>
  Effect.map(chats(account), (answers) => answers.forEach(({ status, text }) => assert.strictEqual(status, 200, text)))

withLayer(gateways)("an organization's cap", (it) => {
  it.effect("that is reached refuses every way of asking, on every surface", function* () {
    const account = yield* openAccount({})
    const keyed = { headers: { "idempotency-key": "kept" } }
    assert.strictEqual((yield* draw(account, picture, keyed)).status, 200)
    yield* setCap(account, 1n)
    yield* isRefused(account)
    for (const way of chatApis) {
      for (const stream of [false, true]) way.assertRefused(yield* way.send(account, { ...hello, stream }), reached)
    }
    assertRefused(yield* draw(account, picture), reached)
    assertRefused(yield* film(account, { model: "veo-3.1-fast-generate-001", prompt: "a cat" }), reached)
    // What is wrong with a large body is not seen: it is not received.
    for (const model of [hello.model, 5]) assertRefused(yield* chat(account, { ...hello, ...large, model }), reached)
    for (const prompt of ["a cat", 5]) assertRefused(yield* draw(account, { ...picture, ...large, prompt }), reached)
    for (const repeated of [picture, { ...picture, ...large }]) {
      assert.isTrue(isReplay(yield* draw(account, repeated, keyed)))
    }
    yield* isServed(yield* openAccount({}))
  })

  it.effect("is in force on every gateway within a second, and raised with the next request", function* () {
    const account = yield* openAccount({})
    yield* isServed(account)
    yield* setCap(account, 0n)
    yield* isRefused(account)
    for (const amount of [60_000_000_000n, 1n, 70_000_000_000n]) {
      yield* setCap(account, amount)
      if (amount > 1n) yield* isServed(account)
      else for (const answer of yield* chats(account)) assertRefused(answer, reached)
    }
    const { suspend, update } = yield* Organizations
    yield* setCap(account, 0n)
    yield* update(account.org, { cap_usd: null, cap_period: null })
    yield* soon(isServed(account))
    yield* setCap(account, 0n)
    yield* suspend(account.org)
    yield* soon(
      Effect.map(chats(account), (answers) => answers.forEach((answer) => assertRefused(answer, refusals.suspended)))
    )
  })
})

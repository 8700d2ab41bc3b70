import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { post, rateOf, talk } from "../../harness/client/HttpCalls.ts"
import { customer } from "../../harness/client/MessagesClient.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { DialectHosts, dialects, gateway as hostedGateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { json, type Reply } from "../../harness/upstream/FakeUpstream.ts"
import { gateway } from "../../harness/upstream/Upstreams.ts"
import { open } from "../connections/RawSocket.ts"

const served = gateway({ talk: {} })
const anthropic = dialects.find(({ name }) => name === "anthropic") ?? assert.fail("no such dialect")
const hosted = hostedGateway({ own: [routeTo(anthropic)] })
const count = post("/v1/messages/count_tokens")

withLayer(served)("the count of a prompt's tokens", (it) => {
  it.effect("costs nothing, and leaves no row", function* () {
    const account = yield* customer({ nanoUsd: 1n })
    const { data, request_id } = yield* calling(() =>
      account.anthropic.messages
        .countTokens({ model: "talk", messages: [{ role: "user", content: "six seven eight" }] })
        .withResponse()
    )
    assert.deepStrictEqual(data.input_tokens, 7)
    assert.match(request_id ?? "", /^req_/)
    assert.strictEqual(yield* account.spent, 0n)
    const sql = yield* SqlClient.SqlClient
    assert.lengthOf(yield* sql`SELECT 1 FROM request_log WHERE org_id = ${account.org}`, 0)
  })

  it.scoped("is refused without anything available, a large body before it is received", function* () {
    const account = yield* customer({ nanoUsd: 0n })
    const typeOf = (text: string) => JSON.parse(text).error.type
    const small = yield* count(account, talk("talk"))
    assert.deepStrictEqual([small.status, typeOf(small.text)], [402, "billing_error"])
    assert.strictEqual((yield* count(account, talk("nobody"))).status, 404)
    const connection = yield* open
    const head = ["POST /v1/messages/count_tokens HTTP/1.1", "Host: x", `x-api-key: ${account.secret}`]
    yield* connection.write([...head, "Content-Length: 20000000", "", ""].join("\r\n"))
    const large = yield* connection.answer(1)
    assert.deepStrictEqual([large.status, typeOf(large.text)], [402, "billing_error"])
  })

  it.effect("is the model's context where it has a document that only a host could count", function* () {
    const account = yield* customer()
    const source = { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQK" }
    const counted = (content: ReadonlyArray<object>) =>
      Effect.map(count(account, { model: "talk", messages: [{ role: "user", content }] }), ({ text }) =>
        JSON.parse(text)
      )
    const text = { type: "text", text: "six seven eight" }
    assert.deepStrictEqual(yield* counted([text, { type: "document", source }]), { input_tokens: 100_000 })
    assert.deepStrictEqual(yield* counted([text]), { input_tokens: 7 })
  })

  it.effect("takes a rate unit, and needs the scope, a model and a body", function* () {
    const limited = yield* customer({ rpm: 1 })
    const counted = yield* count(limited, talk("talk"))
    assert.deepStrictEqual([counted.status, rateOf(counted)], [200, { limit: 1, remaining: 0 }])
    const typeOf = ({ status, text }: { readonly status: number; readonly text: string }) => [
      status,
      JSON.parse(text).error.type
    ]
    assert.deepStrictEqual(typeOf(yield* count(limited, talk("talk"))), [429, "rate_limit_error"])
    const account = yield* customer()
    assert.deepStrictEqual(typeOf(yield* count(account, talk("nobody"))), [404, "not_found_error"])
    assert.deepStrictEqual(typeOf(yield* count(account, { model: "talk" })), [400, "invalid_request_error"])
    const scoped = yield* customer({ scopes: ["videos"] })
    assert.deepStrictEqual(typeOf(yield* count(scoped, talk("talk"))), [403, "permission_error"])
  })
})

withLayer(hosted)("counts of a host", (it) => {
  it.effect("are asked for two at a time for an organization, until too many wait", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    const counts = { now: 0, most: 0 }
    const atHost = yield* Effect.makeLatch()
    const refused = yield* Effect.makeLatch()
    const reply: Reply = async (response, received) => {
      counts.now += 1
      counts.most = Math.max(counts.most, counts.now)
      if (counts.now === 2) atHost.unsafeOpen()
      await Effect.runPromise(Effect.zipRight(atHost.await, refused.await))
      counts.now -= 1
      await json(200, { input_tokens: 5 })(response, received)
    }
    yield* host.script(...Array.from({ length: 66 }, () => reply))
    const account = yield* customer()
    const ask = Effect.tap(
      Effect.map(count(account, talk("own")), ({ status }) => status),
      (status) => Effect.when(refused.open, () => status === 503)
    )
    const statuses = yield* Effect.all(
      Array.from({ length: 80 }, () => ask),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual([counts.most, new Set(statuses)], [2, new Set([200, 503])])
    assert.isAtLeast(statuses.filter((status) => status === 200).length, 66)
  })
})

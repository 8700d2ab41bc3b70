import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { post, rateOf, talk } from "../../harness/client/HttpCalls.ts"
import { customer } from "../../harness/client/MessagesClient.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway } from "../../harness/upstream/Upstreams.ts"

const served = gateway({ talk: {} })
const count = post("/v1/messages/count_tokens")

withLayer(served)("the count of a prompt's tokens", (it) => {
  it.effect("costs nothing, needs no balance, and leaves no row", function* () {
    const account = yield* customer({ nanoUsd: 0n })
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

import { Effect } from "effect"
import { assertRefused, post, refusals } from "../../harness/client/HttpCalls.ts"
import { talkCatalog } from "../../harness/fixtures/ChatCatalog.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const catalog = talkCatalog(["acme"], "{provider: acme, model: m}")
  .replace("context_length: 1000000", "context_length: 1000")
  .replace("max_output: 64000", "max_output: 100")
const sandbox = Served.layer(Effect.succeed({ catalog, env: { SANDBOX: "true" } }))

const fitting = "word ".repeat(900)
const long = "word ".repeat(1_100)
const bodyWith = (content: string, stream = false) => ({
  model: "talk",
  max_tokens: 50,
  stream,
  messages: [{ role: "user", content }]
})
const errorOf = ({ status, text }: { readonly status: number; readonly text: string }) => {
  assert.strictEqual(status, 400, text)
  return JSON.parse(text).error
}

withLayer(sandbox)("a prompt above the model's context length is refused by the sandbox", (it) => {
  it.effect.each([false, true])("as a provider does, streamed: %s", function* (stream) {
    const { spent, ...customer } = yield* Served.customer()
    assertRefused(yield* post("/v1/chat/completions")(customer, bodyWith(long, stream)), refusals.rejected)

    const responses = post("/v1/responses")
    const input = errorOf(yield* responses(customer, { model: "talk", input: long, stream }))
    assert.strictEqual(input.code, "context_length_exceeded")
    assert.match(input.message, /^This model's maximum context length is 1000 tokens\. However, .* 11\d\d tokens\./)

    const message = errorOf(yield* post("/v1/messages")(customer, bodyWith(long, stream)))
    assert.strictEqual(message.type, "invalid_request_error")
    assert.match(message.message, /^prompt is too long: 11\d\d tokens > 1000 maximum$/)
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("and one within it is answered", function* () {
    const customer = yield* Served.customer()
    for (const path of ["/v1/chat/completions", "/v1/messages"]) {
      assert.strictEqual((yield* post(path)(customer, bodyWith(fitting))).status, 200)
    }
  })
})

import { Schema } from "effect"
import { assertRefused, badRequest, call, post, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"

const isPicture = "`picture` is an image model: use /v1/images/generations."

const served = gateway(
  {
    talk: {},
    plain: { capabilities: [] },
    pair: { routes: [onFirst, onSecond] },
    thinking: { family: "C" }
  },
  { MAX_BODY_BYTES: "100000" }
)
const path = "/v1/responses"
const ask = post(path)
const say = (model: string, more: object = {}) => ({ model, input: "hi", ...more })
const schema = { type: "json_schema", name: "n", schema: { type: "object" } }
const image = { type: "input_image", image_url: "https://x.example/a.png" }
const tool = { type: "function", name: "f" }

const Envelope = Schema.parseJson(
  Schema.Struct({
    error: Schema.Struct({
      message: Schema.String,
      type: Schema.String,
      param: Schema.NullOr(Schema.String),
      code: Schema.NullOr(Schema.String)
    })
  })
)
const errorIn = ({ text }: { readonly text: string }) => Schema.decodeUnknownSync(Envelope)(text).error

withLayer(served)("a response that is refused", (it) => {
  it.effect("has the envelope of a chat, with the status of a chat", function* () {
    const customer = yield* Served.customer()
    const stranger = yield* call(path, { body: say("talk"), headers: { "content-type": "application/json" } })
    assertRefused(stranger, refusals.missingKey)
    const imager = yield* Served.customer({ scopes: ["images"] })
    assertRefused(yield* ask(imager, say("talk")), refusals.scope)
    const poor = yield* Served.customer({ nanoUsd: 0n })
    for (const stream of [false, true]) assertRefused(yield* ask(poor, say("talk", { stream })), refusals.insufficient)
    const slow = yield* Served.customer({ rpm: 1 })
    yield* (yield* Upstreams).first.script(answers())
    assert.strictEqual((yield* ask(slow, say("talk"))).status, 200)
    assertRefused(yield* ask(slow, say("talk")), { ...refusals.limited, retryAfter: "60" })
    assertRefused(yield* ask(customer, say("nobody")), refusals.noModel("nobody"))
    assertRefused(yield* ask(customer, say("picture")), refusals.noModel("picture", "a chat", isPicture))
    assertRefused(yield* ask(customer, say("talk", { input: "x".repeat(100_000) })), refusals.tooLarge(100_000))
    assertRefused(yield* ask(customer, "{"), badRequest("The body is not valid JSON."))
    assertRefused(yield* ask(customer, {}), badRequest("`model` is required.", "model"))
  })

  it.effect.each<readonly [string, object, string, string]>([
    ["plain", { tools: [tool] }, "tools", "`tools` is not available for `plain`."],
    ["plain", { text: { format: schema } }, "text.format", "`text.format` is not available for `plain`."],
    ["plain", { input: [{ role: "user", content: [image] }] }, "input", "Image input is not available for `plain`."]
  ])("names the field of this convention that %s cannot do: %j", function* ([model, more, param, message]) {
    assertRefused(yield* ask(yield* Served.customer(), say(model, more)), badRequest(message, param))
  })

  it.effect("is not refused for what agents always send: an effort, a search, a cap", function* () {
    const { first } = yield* Upstreams
    yield* first.script(answers(), answers())
    const wishes = {
      reasoning: { effort: "xhigh" },
      tools: [{ type: "web_search" }, { type: "image_generation" }],
      max_output_tokens: 1_000_000,
      service_tier: "priority"
    }
    const customer = yield* Served.customer()
    assert.strictEqual((yield* ask(customer, say("plain", wishes))).status, 200)
    assert.deepInclude(first.calls.at(-1)?.body, { max_tokens: 8_192, reasoning_effort: "high" })
    for (const field of ["tools", "service_tier"]) assert.notProperty(first.calls.at(-1)?.body, field)
    assert.strictEqual((yield* ask(customer, say("thinking", wishes))).status, 200)
  })

  it.effect.each([false, true])("by a provider says why, streamed: %s", function* (stream) {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    const error = { message: "Invalid schema for f: see https://hush.example (req_hush1234567890)", code: "invalid" }
    yield* first.script(json(400, { error: { ...error, type: "invalid_request_error", param: "tools" } }))
    const answer = yield* ask(customer, say("pair", { stream }))
    assert.strictEqual(answer.status, 400)
    const { message, type } = errorIn(answer)
    assert.include(message, "Invalid schema for f")
    assert.notInclude(message, "hush")
    assert.strictEqual(type, "invalid_request_error")
    const long = "This model's maximum context length is 1000 tokens."
    yield* first.script(json(400, { error: { message: long, code: "context_length_exceeded", param: "messages" } }))
    const tooLong = errorIn(yield* ask(customer, say("pair", { stream })))
    assert.deepInclude(tooLong, { message: long, code: "context_length_exceeded" })
    assert.strictEqual(yield* customer.spent, 0n)
  })

  it.effect("is not one that was kept", function* () {
    const { secret } = yield* Served.customer()
    for (const [method, at] of [
      ["GET", "resp_1"],
      ["DELETE", "resp_1"],
      ["GET", "resp_1/input_items"],
      ["POST", "resp_1/cancel"]
    ] as const) {
      const headers = { authorization: `Bearer ${secret}` }
      assertRefused(yield* call(`${path}/${at}`, { method, headers }), refusals.noEndpoint)
    }
    assertRefused(
      yield* call(path, { headers: { authorization: `Bearer ${secret}` } }),
      refusals.wrongMethod(path, "POST")
    )
  })
})

import { APIError } from "@anthropic-ai/sdk"
import { Effect } from "effect"
import { call, completeRefusal, post, rateOf, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import { assertThrown, customer } from "../../harness/client/MessagesClient.ts"
import { calling, drained, thrownBy } from "../../harness/client/OfficialClients.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { cut, event, sse } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  chunk,
  ending,
  gateway,
  maxOutput,
  onFirst,
  onSecond,
  Upstreams
} from "../../harness/upstream/Upstreams.ts"
import { error, failing } from "../errors/ProviderFailures.ts"

const served = gateway(
  {
    talk: {},
    alone: {},
    strict: { family: "C" },
    pair: { routes: [onFirst, onSecond] },
    moving: { routes: [onFirst, onSecond] }
  },
  { MAX_BODY_BYTES: "100000" }
)

const send = post("/v1/messages")
const count = post("/v1/messages/count_tokens")
const body = { max_tokens: 10, ...talk("talk") }
const sdkBody = { model: "talk", max_tokens: 10, messages: [{ role: "user" as const, content: "hi" }] }

withLayer(served)("the Messages API", (it) => {
  it.effect("answers with the id of the request in both headers, under a query and a slash too", function* () {
    yield* (yield* Upstreams).first.script(answers(), answers())
    const account = yield* customer()
    for (const path of ["/v1/messages?beta=true", "/v1/messages/"]) {
      const answer = yield* post(path)(account, body, { headers: { "x-request-id": "mine" } })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.strictEqual(answer.headers.get("request-id"), "mine")
      assert.strictEqual(answer.headers.get("x-request-id"), "mine")
      assert.isDefined(rateOf(answer))
    }
  })

  it.effect("takes the key in either header", function* () {
    yield* (yield* Upstreams).first.script(answers(), answers())
    const { secret } = yield* customer()
    for (const headers of [{ "x-api-key": secret }, { authorization: `Bearer ${secret}` }]) {
      assert.strictEqual((yield* call("/v1/messages", { body, headers })).status, 200)
    }
  })

  it.effect("asks for the model's own cap where none or a higher one is given, and refuses none", function* () {
    const { first } = yield* Upstreams
    const account = yield* customer()
    for (const max_tokens of [undefined, 1_000_000]) {
      yield* first.script(answers())
      assert.strictEqual((yield* send(account, { ...talk("strict"), max_tokens })).status, 200)
      assert.strictEqual(Object(first.calls.at(-1)?.body).max_tokens, maxOutput)
    }
  })

  it.effect("has each refusal in its own envelope, of the class that its client knows", function* () {
    const account = yield* customer()
    const thrownWith = (options: Parameters<typeof customer>[0], more: object = {}) =>
      Effect.flatMap(customer(options), ({ anthropic }) =>
        thrownBy(() => anthropic.messages.create({ ...sdkBody, ...more }))
      )
    const invalidClient = account.anthropic.withOptions({ apiKey: "ggw_wrong" })
    const unknown = yield* thrownBy(() => invalidClient.messages.create(sdkBody))
    assertThrown(unknown, 401, "authentication_error", "Invalid API key provided.")
    const poor = yield* thrownWith({ nanoUsd: 0n })
    const told = Object(Object(Object(poor).error).error).hint
    const { hint, message } = completeRefusal(refusals.insufficient, told)
    assertThrown(poor, 402, "billing_error", message, hint)
    const scoped = yield* thrownWith({ scopes: ["images"] })
    assertThrown(scoped, 403, "permission_error", "API key lacks scope: chat")
    const missing = yield* thrownWith({}, { model: "nobody" })
    const noModel = "The model `nobody` does not exist or is not a chat model."
    assertThrown(missing, 404, "not_found_error", noModel)
    const empty = yield* thrownWith({}, { messages: [] })
    const noMessages = "`messages` is required and must be a non-empty array."
    assertThrown(empty, 400, "invalid_request_error", noMessages)
    const limited = yield* customer({ rpm: 1 }).pipe(
      Effect.tap((other) => count(other, talk("talk"))),
      Effect.flatMap(({ anthropic }) => thrownBy(() => anthropic.messages.create(sdkBody)))
    )
    const rate = "The limit of this key is 1 request per minute."
    assertThrown(limited, 429, "rate_limit_error", "Rate limit exceeded.", rate)
  })

  it.effect.each([
    [
      "a body that is too large",
      { ...body, messages: [{ role: "user", content: "x".repeat(100_001) }] },
      413,
      "request_too_large"
    ],
    ["a body that is no JSON", "{", 400, "invalid_request_error"]
  ] as const)("refuses %s", function* ([, sent, status, type]) {
    const answer = yield* send(yield* customer(), sent)
    assert.strictEqual(answer.status, status)
    assert.strictEqual(JSON.parse(answer.text).error.type, type)
    assert.strictEqual(JSON.parse(answer.text).request_id, answer.headers.get("request-id"))
  })

  it.effect.each([
    ["GET", "/v1/messages", 404, "not_found_error", { hint: "/v1/messages accepts POST." }],
    ["DELETE", "/v1/messages/msg_1", 404, "not_found_error", {}],
    ["POST", "/v1/messages/batches", 404, "not_found_error", {}]
  ] as const)("has its envelope for %s %s too", function* ([method, path, status, type, hint]) {
    const answer = yield* call(path, { method })
    assert.strictEqual(answer.status, status)
    assert.deepStrictEqual(JSON.parse(answer.text), {
      type: "error",
      error: { type, message: "Unknown endpoint.", ...hint },
      request_id: answer.headers.get("request-id")
    })
  })

  it.effect.each([
    ["refuses the request", failing(400), 400, "invalid_request_error"],
    ["answers 500", failing(500), 502, "api_error"],
    ["answers 429", failing(429), 503, "overloaded_error"]
  ] as const)("says what happened where the provider %s, and charges nothing", function* ([, reply, status, type]) {
    const { first } = yield* Upstreams
    const account = yield* customer()
    for (const stream of [false, true]) {
      yield* first.script(reply)
      const answer = yield* send(account, { ...body, ...talk("alone"), stream })
      assert.strictEqual(answer.status, status, answer.text)
      assert.strictEqual(JSON.parse(answer.text).error.type, type)
    }
    assert.strictEqual(yield* account.spent, 0n)
  })

  it.effect.each([false, true])("moves to the next route when the first fails, streamed: %s", function* (stream) {
    const { first, second } = yield* Upstreams
    yield* first.script(failing(500))
    yield* second.script(stream ? sse(chunk({ content: "fine" }), ending) : answers())
    const account = yield* customer()
    const answer = yield* send(account, { ...body, ...talk("moving"), stream })
    assert.strictEqual(answer.status, 200)
    assert.include(answer.text, "fine")
    assert.strictEqual(yield* account.spent, 20_000n)
  })

  it.effect.each([
    ["an error", event(error())],
    ["garbage", "data: {hush\n\n"],
    ["the connection's end", cut],
    ["its own end, without a finish", ""]
  ] as const)("ends a stream that broke by %s with an error, and charges nothing", function* ([, rest]) {
    yield* (yield* Upstreams).first.script(sse(chunk({ content: "Servus" }), rest))
    const account = yield* customer()
    const stream = yield* calling(() => account.anthropic.messages.create({ ...sdkBody, model: "pair", stream: true }))
    const { error: broke, items } = yield* drained(stream)
    assert.include(JSON.stringify(items), "Servus")
    assert.notInclude(JSON.stringify(items), "message_stop")
    assert.instanceOf(broke, APIError)
    const told = { type: "api_error", message: "The upstream provider returned an error." }
    assert.deepStrictEqual<unknown>(broke.error, { type: "error", error: told })
    assert.strictEqual(yield* account.spentInTheEnd, 0n)
  })

  it.effect("charges the output so far to a client that leaves a stream", function* () {
    yield* (yield* Upstreams).first.script(sse(chunk({ content: "one two three" }), Effect.never))
    const account = yield* customer()
    const stream = yield* calling(() => account.anthropic.messages.create({ ...sdkBody, stream: true }).withResponse())
    yield* Effect.promise(async () => {
      for await (const sent of stream.data) if (sent.type === "content_block_delta") break
    })
    const row = yield* soon(Served.logged(stream.request_id))
    assert.deepInclude(row, { status: 499, code: "client_closed", notes: ["usage_estimated"] })
    assert.strictEqual(yield* account.spentInTheEnd, row.charge)
    assert.isAbove(Number(row.charge), 0)
  })
})

import { Effect, Layer, Schedule } from "effect"
import OpenAI from "openai"
import { BlockList, parseRange } from "../../src/services/access/BlockList.ts"
import { badRequest, refusals } from "../harness/client/HttpCalls.ts"
import { assertClientError, calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { chatCatalog } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answer, cost, FakeUpstream, layer as upstream } from "../harness/upstream/ChatUpstream.ts"
import { rateHeaders, refusedAs } from "./Refusal.ts"

const gateway = Served.layer(
  Effect.map(FakeUpstream, ({ url }) => ({
    catalog: chatCatalog(
      { fake: { adapter: "openai-chat", base_url: url, credential: "FAKE_KEY" } },
      { talk: [{ provider: "fake", model: "talk" }] }
    ),
    env: { FAKE_KEY: "secret", TRUST_PROXY: "1", MAX_BODY_BYTES: "65536" }
  }))
).pipe(Layer.provideMerge(upstream))

const messages = [{ role: "user" as const, content: "hi" }]
const talk = { model: "talk", messages }

withLayer(gateway)("the official client", (it) => {
  it.effect("gets a 401 without a key and with an unknown one", function* () {
    const { baseUrl } = yield* Served.customer()
    const options = { baseURL: baseUrl, maxRetries: 0 }
    const missing = new OpenAI({ ...options, apiKey: "none", defaultHeaders: { authorization: null } })
    const unknown = new OpenAI({ ...options, apiKey: `ggw_${"x".repeat(43)}` })
    const foreign = new OpenAI({ ...options, apiKey: "sk-something-else" })
    for (const call of [
      (client: OpenAI) => client.chat.completions.create(talk),
      (client: OpenAI) => client.models.list()
    ]) {
      assertClientError(yield* thrownBy(() => call(missing)), refusals.missingKey)
      for (const client of [unknown, foreign]) {
        const error = assertClientError(yield* thrownBy(() => call(client)), refusals.invalidKey)
        for (const name of rateHeaders) assert.isNull(error.headers?.get(name) ?? null)
      }
    }
  })

  it.effect("may send its key in x-api-key instead of a bearer token", function* () {
    const { baseUrl, secret, spent } = yield* Served.customer()
    const { script } = yield* FakeUpstream
    yield* script(answer("served"))
    const openai = new OpenAI({
      baseURL: baseUrl,
      maxRetries: 0,
      apiKey: "none",
      defaultHeaders: { authorization: null, "x-api-key": secret }
    })
    const { choices } = yield* calling(() => openai.chat.completions.create(talk))
    assert.strictEqual(choices[0]?.message.content, "served")
    assert.strictEqual(yield* spent, cost)
  })

  it.effect("gets a 403 for a scope that the key lacks", function* () {
    const one = yield* Served.customer({ scopes: ["images", "videos"] })
    yield* refusedAs(one, talk, refusals.scope)
    yield* calling(() => one.openai.models.list())
  })

  it.scoped("gets a 403 from a blocked address for every endpoint and key", function* () {
    const { baseUrl, secret } = yield* Served.customer()
    const blockList = yield* BlockList
    const range = parseRange("203.0.113.0/24")
    assert.isDefined(range)
    const from = (address: string, apiKey: string) =>
      new OpenAI({ baseURL: baseUrl, maxRetries: 0, apiKey, defaultHeaders: { "x-forwarded-for": address } })
    yield* Effect.acquireRelease(blockList.add(range), () => Effect.orDie(blockList.remove(range)))
    const blocked = yield* Effect.flip(calling(() => from("203.0.113.9", secret).models.list())).pipe(
      Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(60)))
    )
    const told = refusals.denied
    assertClientError(blocked.cause, told)
    const nobody = from("203.0.113.200", "none")
    assertClientError(yield* thrownBy(() => nobody.chat.completions.create(talk)), told)
    assertClientError(yield* thrownBy(() => nobody.get("/nowhere")), told)
    yield* calling(() => from("203.0.114.1", secret).models.list())
  })

  it.effect("gets a 404 for a model that does not exist", function* () {
    yield* refusedAs(yield* Served.customer(), { model: "tälk", messages }, refusals.noModel("tälk"))
  })

  it.effect("gets a 404 for an unknown endpoint, even without a key", function* () {
    const { baseUrl, openai } = yield* Served.customer()
    const nobody = new OpenAI({ baseURL: baseUrl, apiKey: "none", maxRetries: 0 })
    for (const [call, told] of [
      [() => openai.embeddings.create({ model: "talk", input: "hi" }), refusals.noEndpoint],
      [() => nobody.models.delete("talk"), refusals.wrongMethod("/v1/models/{id}", "GET")],
      [() => nobody.get("/chat/completions"), refusals.wrongMethod("/v1/chat/completions", "POST")],
      [() => nobody.completions.create({ model: "talk", prompt: "hi" }), refusals.meantPath("/v1/chat/completions")]
    ] as const) {
      assertClientError(yield* thrownBy(call), told)
    }
  })

  it.effect("gets a 400 with the field at fault, the model before the messages", function* () {
    const one = yield* Served.customer()
    const missing = badRequest("`messages` is required and must be a non-empty array.", "messages")
    const reasoning = "`reasoning_effort` must be one of low, medium, high for `talk`."
    for (const [body, told] of [
      [{}, badRequest("`model` is required.", "model")],
      [{ model: "talk" }, missing],
      [{ model: "talk", messages: [] }, missing],
      [{ model: "nope", messages: [] }, missing],
      [{ ...talk, temperature: 2.1 }, badRequest("`temperature` must be a number from 0 to 2.", "temperature")],
      [{ ...talk, n: 2 }, badRequest("`n` must be 1.", "n")],
      [{ ...talk, reasoning_effort: "xhigh" }, badRequest(reasoning, "reasoning_effort")],
      [{ ...talk, web_search: true }, badRequest("`web_search` is not available for `talk`.", "web_search")]
    ] as const) {
      yield* refusedAs(one, body, told)
    }
  })

  it.effect("gets a 400 for a body that is not JSON", function* () {
    const { openai, spent } = yield* Served.customer()
    const error = yield* thrownBy(() =>
      openai.post("/chat/completions", { body: new TextEncoder().encode('{"model":') })
    )
    assertClientError(error, badRequest("The body is not valid JSON."))
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("gets a 402 when its credits do not cover the hold", function* () {
    const told = refusals.insufficient
    yield* refusedAs(yield* Served.customer({ nanoUsd: 0n }), talk, told)
    const cents = yield* Served.customer({ nanoUsd: 10_000_000n })
    yield* refusedAs(cents, talk, told)
    const { script } = yield* FakeUpstream
    yield* script(answer("short"))
    yield* calling(() => cents.openai.chat.completions.create({ ...talk, max_tokens: 20 }))
    assert.strictEqual(yield* cents.spent, cost)
  })

  it.effect("gets a 402 for a key that has spent its cap", function* () {
    const one = yield* Served.customer({ cap: { amount: 1n, period: "month" } })
    const { script } = yield* FakeUpstream
    yield* script(answer("the last one"))
    yield* calling(() => one.openai.chat.completions.create(talk))
    yield* refusedAs(one, talk, refusals.capped("month"))
  })

  it.effect("gets a 413 for a body over the limit", function* () {
    const one = yield* Served.customer()
    const body = { model: "talk", messages: [{ role: "user", content: "x".repeat(65_536) }] }
    yield* refusedAs(one, body, refusals.tooLarge(65_536))
  })

  it.effect("gets a 429 with the time to wait over the key's own rate", function* () {
    const one = yield* Served.customer({ rpm: 1 })
    const { script } = yield* FakeUpstream
    yield* script(answer("the only one"))
    const { response } = yield* calling(() => one.openai.chat.completions.create(talk).withResponse())
    assert.deepStrictEqual(
      rateHeaders.map((name) => response.headers.get(name)),
      ["1", "0"]
    )
    assert.isNull(response.headers.get("retry-after"))
    const { error } = yield* refusedAs(one, talk, refusals.limited)
    assert.strictEqual(error.headers?.get("retry-after"), "60")
    assert.deepStrictEqual(
      rateHeaders.map((name) => error.headers?.get(name)),
      ["1", "0"]
    )
    yield* calling(() => one.openai.models.list())
  })
})

import { Effect, Layer } from "effect"
import type { ChatCompletionMessage, ChatCompletionMessageParam } from "openai/resources/chat/completions"
import { list, record } from "../../contracts/ChatHosts.ts"
import { assertRefused, badRequest, chat, talk } from "../../harness/client/HttpCalls.ts"
import { calling, drained } from "../../harness/client/OfficialClients.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { weatherTool } from "../../harness/upstream/Aimock.ts"
import { event, json, sse } from "../../harness/upstream/FakeUpstream.ts"
import { answers, hidden, Upstreams, layer as upstreams } from "../../harness/upstream/Upstreams.ts"
import { chunk } from "../../providers/gemini/Wire.ts"

const google = { provider: "google", model: "gemini-3-test" }
const before = { ...google, options: { thinking: "budget" } }
const plain = { provider: "plain", model: hidden.model, preference: 2 }

const model = (id: string, ...routes: ReadonlyArray<object>) => ({
  id,
  surface: "chat",
  family: "A",
  context_length: 100_000,
  max_output: 8_192,
  pricing: { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 },
  created: "2026-01-01",
  routes
})

const catalog = (first: string, second: string) =>
  JSON.stringify({
    providers: {
      google: { adapter: "gemini", base_url: first, credential: "FIRST_KEY" },
      plain: {
        adapter: "openai-chat",
        base_url: `${second}/v1`,
        credential: "SECOND_KEY",
        options: { web_search: { plugins: [] } }
      }
    },
    families: {
      A: { sampling: true, reasoning: ["low"], capabilities: ["tools", "vision", "response_format", "web_search"] }
    },
    models: [model("thinking", google, plain), model("before", before), model("before-and-plain", before, plain)]
  })

const served = Served.layer(
  Effect.map(Upstreams, ({ first, second }) => ({
    catalog: catalog(first.url, second.url),
    env: { FIRST_KEY: hidden.firstKey, SECOND_KEY: hidden.secondKey }
  }))
).pipe(Layer.provideMerge(upstreams))

const signature = "c2lnbmF0dXJlCg=="
const usage = { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 2, totalTokenCount: 17 }
const calls = [
  { functionCall: { name: "weather", args: { city: "Bern" }, id: "g1" }, thoughtSignature: signature },
  { functionCall: { name: "weather", args: { city: "Oslo" }, id: "g2" } }
]
const question: ChatCompletionMessageParam = { role: "user", content: "Weather in Bern and Oslo?" }
const baseRequest = { model: "thinking", tools: [weatherTool] }

/** The next turn, as clients make it of an answer. */
const nextTurn = (message: ChatCompletionMessage): Array<ChatCompletionMessageParam> => [
  question,
  message,
  ...(message.tool_calls ?? []).map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" }))
]

const partsIn = (body: unknown) => list(record(body).contents).flatMap((content) => list(record(content).parts))

withLayer(served)("Gemini behind the chat-completions wire", (it) => {
  it.scoped("gets its thought signatures back over two turns of tools, and shows them to no other host", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    const create = (messages: Array<ChatCompletionMessageParam>) =>
      calling(() => customer.openai.chat.completions.create({ ...baseRequest, messages }))

    yield* first.script(json(200, chunk(calls, "STOP", usage)))
    const { choices, usage: told } = yield* create([question])
    const message = choices[0]?.message ?? assert.fail("no choice")
    assert.strictEqual(choices[0]?.finish_reason, "tool_calls")
    assert.deepInclude(told, { prompt_tokens: 10, completion_tokens: 7 })
    const messages = nextTurn(message)

    yield* first.script(json(200, chunk([{ text: "Sunny." }], "STOP", usage)))
    yield* create(messages)
    const parts = partsIn(first.calls.at(-1)?.body)
    assert.deepStrictEqual(parts.slice(1), [
      calls[0],
      calls[1],
      { functionResponse: { id: "g1", name: "weather", response: { output: "sunny" } } },
      { functionResponse: { id: "g2", name: "weather", response: { output: "sunny" } } }
    ])

    yield* first.script(json(503, { error: { code: 503, status: "UNAVAILABLE", message: "busy" } }))
    yield* second.script(answers("Sunny."))
    assert.strictEqual((yield* create(messages)).choices[0]?.message.content, "Sunny.")
    const elsewhere = list(record(second.calls.at(-1)?.body).messages).map(record)
    assert.deepStrictEqual(
      elsewhere.flatMap(({ tool_call_id: id, tool_calls: made }) => [id, ...list(made).map((one) => record(one).id)]),
      [undefined, undefined, "g1", "g2", "g1", "g2"]
    )
    assert.notInclude(JSON.stringify(elsewhere), signature)
  })

  it.scoped("streams its calls with their signatures, too", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(sse(...calls.map((call) => event(chunk([call]))), event(chunk([], "STOP", usage))))
    const stream = customer.openai.chat.completions.stream({ ...baseRequest, messages: [question] })
    assert.isUndefined((yield* drained(stream)).error)
    const message = (yield* calling(() => stream.finalChatCompletion())).choices[0]?.message
    if (message === undefined) return assert.fail("no choice")
    yield* first.script(json(200, chunk([{ text: "Sunny." }], "STOP", usage)))
    yield* calling(() => customer.openai.chat.completions.create({ ...baseRequest, messages: nextTurn(message) }))
    assert.deepStrictEqual(partsIn(first.calls.at(-1)?.body).slice(1, 3), calls)
  })

  it.scoped("is not used for a search beside tools before Gemini 3: another route is, or it is a 400", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    const both = { tools: [weatherTool], web_search: true }
    const calls = first.calls.length
    for (const stream of [false, true]) {
      assertRefused(
        yield* chat(customer, { ...talk("before"), ...both, stream }),
        badRequest("No provider of `before` supports all features of the request together.", "web_search")
      )
    }
    yield* second.script(answers("found"))
    const answer = yield* chat(customer, { ...talk("before-and-plain"), ...both })
    assert.strictEqual(answer.status, 200)
    assert.include(answer.text, "found")
    assert.strictEqual(first.calls.length, calls)
  })
})

import { Effect, Layer } from "effect"
import { APIError } from "openai"
import { PublishedHealth } from "../../src/services/routing/PublishedHealth.ts"
import type { Answer } from "../contracts/ChatHarness.ts"
import { soon } from "../harness/client/HttpCalls.ts"
import { assertClientError, calling, contentOf, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import {
  answers,
  breaking,
  breaks,
  type Dialect,
  DialectHosts,
  dialects,
  gateway,
  routeTo,
  theirs
} from "../harness/upstream/Dialects.ts"
import { event, json, type Reply, sse } from "../harness/upstream/FakeUpstream.ts"

const said: Answer = { content: "Servus, world.", finish: "stop" }
const cost = { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 }

const dialect = (name: string): Dialect => dialects.find((one) => one.name === name) ?? assert.fail(name)
/** Any other than this one. */
const next = (first: Dialect): Dialect => dialects[(dialects.indexOf(first) + 1) % dialects.length] ?? first

interface Wait {
  readonly what: string
  readonly first: Dialect
  readonly reply: Reply
  readonly stream?: boolean
  /** What a request may have caused opens a route for its organization alone. */
  readonly isOwn?: boolean
}

const seconds = 600
const delay = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${seconds}s` }
const exhausted = { error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "hush", details: [delay] } }

/** Each vendor's way to say for how long to stay away. */
const waits: ReadonlyArray<Wait> = [
  ...dialects.flatMap((first) =>
    [429, 529].map((status) => {
      const reply = json(status, first.error(status), { "retry-after": String(seconds) })
      return { what: `${first.name}'s header beside ${status}`, first, reply, isOwn: status !== 429 }
    })
  ),
  ...["openai-chat", "openai-responses"].map((name) => {
    const first = dialect(name)
    const reply = json(429, first.error(429), { "retry-after-ms": String(seconds * 1_000) })
    return { what: `${name}'s milliseconds`, first, reply }
  }),
  { what: "gemini's RetryInfo", first: dialect("gemini"), reply: json(429, exhausted) },
  { what: "gemini's RetryInfo in a stream", first: dialect("gemini"), reply: sse(event(exhausted)), stream: true }
]

/** A model of two dialects, so that the first of its routes is not the last one open. */
const routes = (first: Dialect) => [{ ...routeTo(first), cost }, routeTo(next(first), { preference: 2 })]

const models = Object.fromEntries([
  ...waits.map(({ first }, index) => [`waiting-${index}`, routes(first)] as const),
  ...dialects.flatMap((first) => [
    [`closed-${first.name}`, routes(first)] as const,
    [`breaking-${first.name}`, routes(first)] as const
  ])
])

const healthOf = Effect.fnUntraced(function* (model: string, first: Dialect) {
  const { list } = yield* PublishedHealth
  const found = (yield* list).find(({ route }) => route === `${model}@${routeTo(first).provider}`)
  return found ?? assert.fail(`nothing is known of ${model}`)
})

const failedTimes = (times: number, model: string, first: Dialect) =>
  soon(Effect.filterOrDieMessage(healthOf(model, first), ({ failures }) => failures === times, "not published yet"))

const closedFor = ({ lastErrorAt, openUntil }: Effect.Effect.Success<ReturnType<typeof healthOf>>) =>
  (openUntil?.getTime() ?? 0) - (lastErrorAt?.getTime() ?? 0)

const asked = (model: string) => ({ model, messages: [{ role: "user" as const, content: "hi" }] })

withLayer(Layer.provideMerge(PublishedHealth.layer, gateway(models)))("routes of every dialect", (it) => {
  /** The first host fails once, the next answers. */
  const moves = Effect.fnUntraced(function* (model: string, { first, reply, stream = false }: Omit<Wait, "what">) {
    const hosts = yield* DialectHosts
    const { openai } = yield* Served.customer()
    yield* hosts.of(first).script(reply)
    yield* hosts.of(next(first)).script(answers(next(first), said))
    if (!stream) return void (yield* calling(() => openai.chat.completions.create(asked(model))))
    const { error } = yield* drained(yield* calling(() => openai.chat.completions.create({ ...asked(model), stream })))
    assert.isUndefined(error)
  })

  it.effect("are skipped for as long as their vendor demands in its own format", function* () {
    for (const [index, wait] of waits.entries()) yield* moves(`waiting-${index}`, wait)
    for (const [index, { first, isOwn = false, what }] of waits.entries()) {
      const health = yield* failedTimes(1, `waiting-${index}`, first)
      assert.deepInclude(health, { circuit: isOwn ? "closed" : "open", requests: 1, failures: 1 }, what)
      assert.strictEqual(health.openForOrganizations, isOwn ? 1 : 0, what)
      if (!isOwn) assert.strictEqual(closedFor(health), seconds * 1_000, what)
    }
  })

  it.effect("are skipped for longer, and listed with the reason, when the credential is bad", function* () {
    for (const first of dialects) yield* moves(`closed-${first.name}`, { first, reply: json(401, first.error(401)) })
    for (const first of dialects) {
      const health = yield* failedTimes(1, `closed-${first.name}`, first)
      assert.strictEqual(health.circuit, "open", first.name)
      assert.match(health.lastError ?? "", /^account 401: .*theirs/, first.name)
      assert.strictEqual(closedFor(health), 300_000, first.name)
    }
  })

  it.effect.each(dialects)("never fail over in a stream that began, and count by its end: $name", function* (first) {
    const model = `breaking-${first.name}`
    const hosts = yield* DialectHosts
    const { openai, spent } = yield* Served.customer()
    for (const { rest, what } of [...breaks, ...breaks.slice(0, 1)]) {
      yield* hosts.of(first).script(breaking(first, said, rest(first)))
      const stream = openai.chat.completions.create({ ...asked(model), stream: true }).withResponse()
      const { data, response } = yield* calling(() => stream)
      const { error, items } = yield* drained(data)
      assert.strictEqual(contentOf(items), "Servus, world.", what)
      const message = "The upstream provider returned an error."
      assertClientError(error, { status: undefined, type: "api_error", code: "upstream_error", message })
      for (const word of theirs) assert.notInclude(JSON.stringify(items), word, what)
      assert.strictEqual(yield* spent, 0n, what)
      const row = yield* Served.logged(response.headers.get("x-request-id"))
      assert.deepStrictEqual([row.status, row.code, row.charge, row.cost], [200, "stream_error", 0n, null], what)
      assert.lengthOf(row.attempts, 1, what)
      assert.include(["network", "retry"], row.attempts[0]?.outcome, what)
      // What was sent is paid to the provider all the same.
      assert.isAbove(Number(row.attempts[0]?.cost ?? 0n), 3 * 2_000, what)
    }
    const health = yield* failedTimes(5, model, first)
    assert.deepInclude(health, { requests: 5, circuit: "closed", openForOrganizations: 1 })
  })

  it.effect("are reported to a client as failed without their own messages", function* () {
    const hosts = yield* DialectHosts
    const { openai } = yield* Served.customer()
    for (const first of dialects) {
      const model = `breaking-${first.name}`
      const last = next(first)
      yield* hosts.of(first).script(json(503, first.error(503)))
      yield* hosts.of(last).script(json(503, last.error(503)))
      const error = yield* thrownBy(() => openai.chat.completions.create(asked(model)))
      const told = error instanceof APIError ? `${error.message} ${JSON.stringify([...(error.headers ?? [])])}` : ""
      assert.include(told, `All providers failed (last: ${routeTo(last).provider} 503).`)
      assert.notInclude(told.replaceAll(routeTo(last).provider, ""), "hush")
    }
  })
})

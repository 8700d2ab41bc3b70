import { Effect, Predicate } from "effect"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import { type Answer, chat, chatPath, post, type Sent, talk } from "../../harness/client/HttpCalls.ts"
import * as Metrics from "../../harness/client/Metrics.ts"
import { logged } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, onFirst, onSecond, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const equals = [
  { ...onFirst, preference: 1, weight: 3 },
  { ...onSecond, preference: 1, weight: 1 }
]

const served = gateway({ spread: { routes: equals }, fallback: { routes: [onFirst, onSecond] } })

/** In the form that was asked for. */
const replies: Reply = (response, received) => {
  const isStream = Predicate.isRecord(received.body) && received.body["stream"] === true
  return (isStream ? streams("fine") : answers())(response, received)
}

const script = Effect.fnUntraced(function* (times: number) {
  const { first, second } = yield* Upstreams
  const all = Array.from({ length: times }, () => replies)
  yield* first.script(...all)
  yield* second.script(...all)
})

const counts = Effect.map(Metrics.scrape, (samples) => {
  const of = (outcome: string) => Metrics.sumOf(samples, "gateway_affinity_total", { outcome })
  return { kept: of("kept"), moved: of("moved"), new: of("new") }
})

const prompt = "Some words that a provider would cache. ".repeat(150)

const rowOf = (answer: Answer) => {
  assert.strictEqual(answer.status, 200, answer.text)
  return logged(answer.headers.get("x-request-id"))
}

/** A turn with all before it, as agents send them; returns its row. */
const turn = (account: Account, model: string, nth: number, begins = prompt) => {
  const later = Array.from({ length: nth }, (_, n) => [
    { role: "assistant", content: `answer ${n}` },
    { role: "user", content: `question ${n}` }
  ])
  const body = { model, stream: nth % 2 === 1, messages: [{ role: "user", content: begins }, ...later.flat()] }
  return Effect.flatMap(chat(account, body), rowOf)
}

interface Name {
  readonly by: string
  readonly path?: string
  readonly asked?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly named?: object
}

const responses = { path: "/v1/responses", asked: { model: "fallback", input: "hi" } }
const messages = { path: "/v1/messages", asked: { ...talk("fallback"), max_tokens: 100 } }
const user = JSON.stringify({ device_id: "d", session_id: "6f1c2b1e-8a35-4a0e-9a53-0d5c1f2b3a4d" })

const names: ReadonlyArray<Name> = [
  { by: "a header", headers: { "x-session-affinity": "s" } },
  { by: "its body's key", named: { prompt_cache_key: "s" } },
  { by: "Codex's header", ...responses, headers: { "session-id": "s" } },
  { by: "Codex's key", ...responses, named: { prompt_cache_key: "s" } },
  { by: "Claude Code's header", ...messages, headers: { "x-claude-code-session-id": "s" } },
  { by: "the session in Claude Code's user id", ...messages, named: { metadata: { user_id: user } } }
]

withLayer(served)("a conversation over several providers", (it) => {
  for (const { asked = talk("fallback"), by, headers = {}, named, path = chatPath } of names) {
    it.effect(`is named by ${by}, however short it is, and stays where a failure brought it`, function* () {
      const { first, second } = yield* Upstreams
      const account = yield* openAccount({})
      const ask = (more?: object, sent?: Sent) =>
        Effect.flatMap(post(path)(account, { ...asked, ...more }, sent), rowOf)
      yield* first.script(json(503, {}), replies)
      yield* second.script(replies, replies)
      const before = yield* counts
      const route = "fallback@second"
      assert.deepInclude(yield* ask(named, { headers }), { route, preferredRoute: null })
      assert.deepInclude(yield* ask(named, { headers }), { route, preferredRoute: route })
      assert.deepInclude(yield* ask(), { route: "fallback@first", preferredRoute: null })
      assert.deepStrictEqual(yield* counts, { ...before, kept: before.kept + 1, new: before.new + 1 })
    })
  }

  it.effect("stays for thirty turns at one of two equals, and its rows name that route", function* () {
    const account = yield* openAccount({})
    yield* script(30)
    const before = yield* counts
    const first = yield* turn(account, "spread", 0)
    assert.isNull(first.preferredRoute)
    for (let nth = 1; nth < 30; nth++) {
      const { attempts, preferredRoute, route } = yield* turn(account, "spread", nth)
      assert.deepStrictEqual([route, preferredRoute, attempts.length], [first.route, first.route, 1])
    }
    assert.deepStrictEqual(yield* counts, { ...before, kept: before.kept + 29, new: before.new + 1 })
  })

  it.effect("begins where the weights send it", function* () {
    const { first } = yield* Upstreams
    const account = yield* openAccount({})
    yield* script(200)
    const before = first.calls.length
    const begin = (n: number) => turn(account, "spread", 0, `${n} ${prompt}`)
    yield* Effect.forEach(Array.from(Array(200).keys()), begin, { concurrency: 8, discard: true })
    assert.closeTo((first.calls.length - before) / 200, 0.75, 0.17)
  })
})

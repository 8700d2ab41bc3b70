import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Usage } from "../../../src/domain/Chat.ts"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import type { Answer } from "../../contracts/ChatHarness.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import { call, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { event, json, sse } from "../../harness/upstream/FakeUpstream.ts"
import { chunk } from "../../providers/openai-chat/Wire.ts"

const cost = { prompt_per_1m_usd: 0.5, completion_per_1m_usd: 1 }
const named = (name: string): Dialect => dialects.find((dialect) => dialect.name === name) ?? assert.fail(name)
const chat = named("openai-chat")
const claude = named("anthropic")
/** Gemini's hosts refuse without an answer, which is no success. */
const hosts = dialects.filter(({ name }) => name !== "gemini")

const counts = (given: Partial<Usage>): Usage => {
  return { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0, ...given }
}
const refused: Answer = { finish: "content_filter", usage: counts({ prompt: 30 }) }

const models = {
  ...Object.fromEntries(dialects.map((dialect) => [dialect.name, [{ ...routeTo(dialect), cost }]])),
  billed: [{ ...routeTo(claude), cost, options: { billed_refusals: ["none"] } }],
  alone: [routeTo(chat)]
}

const cases = [false, true].flatMap((stream) =>
  chatApis.flatMap(({ path, send }) => hosts.map((host) => ({ host, wire: host.name, path, send, stream })))
)

withLayer(gateway(models))("an answer that is refused before any output", (it) => {
  it.effect.each(cases)("is free: $wire, $path, stream: $stream", function* ({ host, send, stream, wire }) {
    yield* (yield* DialectHosts).of(host).script(answers(host, refused))
    const customer = yield* Served.customer()
    const answer = yield* send(customer, { ...talk(wire), stream })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(yield* customer.spent, 0n)
    const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
    assert.deepInclude(row, { charge: zero, notes: ["charge_waived"], promptTokens: 30, completionTokens: 0 })
    assert.strictEqual(row.cost, wire === "anthropic" ? 0n : 30n * 500n)
    if (!stream) assert.strictEqual(answer.headers.get("x-gateway-charge-usd"), "0")
  })

  it.effect.each(cases)("is free where its host counts nothing: $wire, $path, stream: $stream", function* (one) {
    const { host, send, stream, wire } = one
    yield* (yield* DialectHosts).of(host).script(answers(host, { finish: "content_filter" }))
    const customer = yield* Served.customer()
    const answer = yield* send(customer, { ...talk(wire), stream })
    assert.strictEqual(yield* customer.spent, 0n)
    const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
    assert.sameMembers([...row.notes], ["charge_waived", "usage_estimated"])
    assert.isAbove(row.promptTokens ?? 0, 0)
  })

  it.effect.each(cases)("is charged with one token of output: $wire, $path, stream: $stream", function* (one) {
    const { host, send, stream, wire } = one
    const customer = yield* Served.customer()
    for (const answered of [
      { finish: "content_filter", usage: counts({ prompt: 30, completion: 1 }) },
      { finish: "content_filter", content: "I", usage: counts({ prompt: 30, completion: 1 }) },
      { finish: "stop", content: "I", usage: counts({ prompt: 30, completion: 1 }) }
    ] as const) {
      yield* (yield* DialectHosts).of(host).script(answers(host, answered))
      const answer = yield* send(customer, { ...talk(wire), stream })
      const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
      assert.deepInclude(row, { charge: NanoUsd(30n * 1_500n + 7_500n), notes: [], cost: NanoUsd(30n * 500n + 1_000n) })
    }
  })

  it.effect("costs the operator what the vendor bills by the route's own word", function* () {
    for (const stream of [false, true]) {
      yield* (yield* DialectHosts).of(claude).script(answers(claude, refused))
      const customer = yield* Served.customer()
      const answer = yield* (chatApis[0] ?? assert.fail()).send(customer, { ...talk("billed"), stream })
      const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
      assert.deepInclude(row, { charge: zero, cost: NanoUsd(30n * 500n), notes: ["charge_waived"] })
    }
  })

  it.effect("is refused by Gemini's hosts with a 400, free", function* () {
    const gemini = named("gemini")
    for (const { send } of chatApis) {
      yield* (yield* DialectHosts).of(gemini).script(answers(gemini, refused))
      const customer = yield* Served.customer()
      assert.strictEqual((yield* send(customer, talk("gemini"))).status, 400)
      assert.strictEqual(yield* customer.spent, 0n)
    }
  })

  it.effect("leaves a ledger that verifies, and that finds a waiver without its cause", function* () {
    const sql = yield* SqlClient.SqlClient
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
    const { check } =
      invariants(sql).find(({ name }) => name.startsWith("a chat's charge")) ?? assert.fail("no invariant")
    const broken = Effect.map(check, ({ length }) => length)
    const [{ waived } = assert.fail("no row")] = yield* sql<{ waived: number }>`
      SELECT count(*)::int AS waived FROM request_log WHERE 'charge_waived' = ANY (notes)`
    assert.isAbove(waived, 0)
    yield* sql`UPDATE request_log SET notes = array_remove(notes, 'charge_waived')`
    assert.strictEqual(yield* broken, waived, "a charge of nothing without the note")
    yield* sql`UPDATE request_log SET notes = ARRAY['charge_waived'] WHERE charge = 0`
    assert.strictEqual(yield* broken, 0)
    yield* sql`UPDATE request_log SET completion_tokens = 1 WHERE charge = 0`
    assert.strictEqual(yield* broken, waived, "a waiver of output")
    yield* sql`UPDATE request_log SET completion_tokens = 0 WHERE charge = 0`
    yield* sql`UPDATE request_log SET charge = 1 WHERE charge = 0`
    assert.strictEqual(yield* broken, waived, "a waiver that charges")
  })
})

const half = (reason: string) => [chunk({ content: "Half a" }), chunk({}, reason), "data: [DONE]\n\n"]
const silent = (reason: string) => [chunk({ role: "assistant" }), chunk({}, reason), "data: [DONE]\n\n"]
const broken = (reason: string) => ({
  choices: [{ index: 0, message: { role: "assistant", content: "Half a" }, finish_reason: reason }],
  usage: { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 }
})
const reasons = ["network_error", "abort", "engine_overloaded", "function_call_filter: MALFORMED_FUNCTION_CALL"]
/** Each with models of its own: a route that breaks is not asked again at once. */
const breaks = reasons.flatMap((reason, at) =>
  chatApis.flatMap((way) =>
    [false, true].map((stream) => {
      const { path } = way
      const name = [at, path.split("/").at(-1), stream].join("-")
      return { way, path, reason, stream, spare: `spare-${name}`, alone: `alone-${name}` }
    })
  )
)
const breaking = Object.fromEntries(
  breaks.flatMap(({ alone, spare }) => [
    [alone, [routeTo(chat)]],
    [spare, [routeTo(chat), { ...routeTo(claude), preference: 2 }]]
  ])
)

withLayer(gateway({ ...models, ...breaking }))("an answer that its host breaks off by a reason of its own", (it) => {
  it.effect.each(breaks)(
    "is asked of another route before any output: $reason, $path, stream: $stream",
    function* (one) {
      const { reason, spare, stream, way } = one
      const upstreams = yield* DialectHosts
      yield* upstreams.of(chat).script(stream ? sse(...silent(reason)) : json(200, broken(reason)))
      yield* upstreams.of(claude).script(answers(claude, { content: "Whole.", finish: "stop" }))
      const customer = yield* Served.customer()
      const answer = yield* way.send(customer, { ...talk(spare), stream })
      assert.strictEqual(answer.status, 200, answer.text)
      const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
      assert.deepStrictEqual(
        row.attempts.map(({ outcome }) => outcome),
        ["retry", "ok"]
      )
    }
  )

  it.effect.each(breaks)("is a failure without a charge: $reason, $path, stream: $stream", function* (one) {
    const { alone, reason, stream, way } = one
    const host = (yield* DialectHosts).of(chat)
    const customer = yield* Served.customer()
    yield* host.script(stream ? sse(...half(reason)) : json(200, broken(reason)))
    const answer = yield* way.send(customer, { ...talk(alone), stream })
    if (stream) {
      assert.include(answer.text, "Half a")
      way.assertBroken(answer, refusals.upstream)
    } else way.assertRefused(answer, refusals.upstream)
    assert.strictEqual(yield* customer.spent, 0n)
  })

  it.effect("is noted where nobody knows the reason, and charged", function* () {
    const upstreams = yield* DialectHosts
    for (const { send } of chatApis) {
      for (const stream of [false, true]) {
        yield* upstreams.of(chat).script(stream ? sse(...half("of_tomorrow")) : json(200, broken("of_tomorrow")))
        const customer = yield* Served.customer()
        const answer = yield* send(customer, { ...talk("alone"), stream })
        assert.match(answer.text, /"(finish_reason":"length|status":"incomplete|stop_reason":"max_tokens)"/)
        const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
        assert.include(row.notes, "stop_reason_unknown")
        assert.isTrue((yield* customer.spent) > 0n)
      }
    }
  })

  it.effect("passes as it is to a client of the same API, and is noted", function* () {
    const upstreams = yield* DialectHosts
    const paused: Answer = { content: "Half a", finish: "stop", usage: counts({ prompt: 30, completion: 2 }) }
    const { body, end, opening, output } = claude.wire(paused)
    const pause = (text: string) => text.replace(/"stop_reason":"end_turn"/, '"stop_reason":"pause_turn"')
    const way = chatApis.find(({ path }) => path === "/v1/messages") ?? assert.fail("no Messages")
    for (const stream of [false, true]) {
      const answerBody = JSON.parse(pause(JSON.stringify(body)))
      yield* upstreams
        .of(claude)
        .script(stream ? sse(...[...opening, ...output, ...end].map(pause)) : json(200, answerBody))
      const customer = yield* Served.customer()
      const answer = yield* way.send(customer, { ...talk("anthropic"), stream })
      assert.include(answer.text, '"stop_reason":"pause_turn"')
      const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
      assert.deepInclude(row, { notes: ["stop_reason_unknown"], charge: NanoUsd(30n * 1_500n + 2n * 7_500n) })
    }
  })

  it.effect("is counted for the operator", function* () {
    const { text } = yield* call("/metrics")
    assert.match(text, /gateway_unread_total\{part="stop_reason",route="alone@hush-openai-chat"\} 6\b/)
  })

  it.effect("counts what it cannot explain, and charges no more for it", function* () {
    const upstreams = yield* DialectHosts
    const usage = { prompt_tokens: 9, completion_tokens: 6, total_tokens: 109 }
    yield* upstreams.of(chat).script(json(200, { ...broken("stop"), usage }))
    yield* upstreams
      .of(chat)
      .script(sse(chunk({ content: "a" }), chunk({}, "stop"), event({ choices: [], usage }), "data: [DONE]\n\n"))
    for (const stream of [false, true]) {
      const customer = yield* Served.customer()
      const answer = yield* (chatApis[0] ?? assert.fail()).send(customer, { ...talk("alone"), stream })
      const row = yield* soon(Served.logged(answer.headers.get("x-request-id")))
      assert.deepInclude(row, { notes: ["usage_unexplained"], charge: NanoUsd(9n * 1_500n + 6n * 7_500n) })
    }
  })
})

import { assert, describe, layer as withLayer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { call, post, soon } from "../../harness/client/HttpCalls.ts"
import { open } from "../../harness/client/RawSocket.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { cut, done, event, json, type Reply, silent, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  chunk,
  completion,
  ending,
  gateway,
  maxOutput,
  nanoPerToken,
  onFirst,
  onSecond,
  prices,
  Upstreams,
  usual,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"

const tiered = { ...prices, cached_prompt_per_1m_usd: 0.1, cache_write_per_1m_usd: 1.25 }
const served = gateway({ talk: {}, tiered: { pricing: tiered }, leaving: { routes: [onFirst, onSecond] } })
const path = "/v1/responses"
const ask = post(path)
const { completion: out, prompt: into } = nanoPerToken

const replying = (stream: boolean, content: string, usage: object | undefined): Reply =>
  stream
    ? sse(
        chunk({ content }),
        chunk({}, "stop"),
        ...(usage === undefined ? [] : [event({ ...completion(""), choices: [], usage })]),
        done
      )
    : json(200, { ...completion(content), ...(usage === undefined ? {} : { usage }) })

const gated = (gate: Deferred.Deferred<void>, stream: boolean): Reply =>
  stream
    ? sse(Deferred.await(gate), chunk({ content: "fine" }), ending)
    : steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(completion("fine", usual)))

/** What the gateway adds to the bytes of one message. */
const bare = 48
const encrypted = "x".repeat(500)

const bounds: ReadonlyArray<readonly [what: string, body: object, prompt: number, completion: number]> = [
  ["a word, at the model's own cap", { input: "hi" }, bare + 2, maxOutput],
  ["a cap", { input: "hi", max_output_tokens: 10 }, bare + 2, 10],
  ["a cap above what the model can", { input: "hi", max_output_tokens: 1_000_000 }, bare + 2, maxOutput],
  ["instructions", { input: "hi", instructions: "abc", max_output_tokens: 1 }, bare + 16 + 5, 1],
  [
    "what only a host can read",
    {
      input: [
        { role: "user", content: "hi" },
        { type: "reasoning", summary: [], encrypted_content: encrypted }
      ],
      max_output_tokens: 1
    },
    bare + 2 + encrypted.length + 2,
    1
  ]
]

withLayer(served, { excludeTestServices: true })("the money of a response", (it) => {
  for (const stream of [false, true]) {
    describe(stream ? "stream" : "json", () => {
      it.effect.each(bounds)("is held for the most that %s can cost", ([, body, prompt, output]) =>
        Effect.gen(function* () {
          const { first } = yield* Upstreams
          const { funds, ...customer } = yield* Served.customer()
          const { balance } = yield* funds
          const gate = yield* Deferred.make<void>()
          const calls = first.calls.length
          yield* first.script(gated(gate, stream))
          const look = soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1))).pipe(
            Effect.zipRight(funds),
            Effect.zipLeft(Deferred.succeed(gate, undefined))
          )
          const asking = ask(customer, { model: "talk", stream, ...body })
          const [answer, { held }] = yield* Effect.all([asking, look], { concurrency: "unbounded" })
          assert.strictEqual(answer.status, 200, answer.text)
          assert.strictEqual(held, BigInt(prompt) * into + BigInt(output) * out)
          assert.deepInclude(first.calls.at(-1)?.body, { max_tokens: output })
          const charge = 10n * into + BigInt(Math.min(5, output)) * out
          assert.deepStrictEqual(yield* funds, { balance: balance - charge, held: 0n, available: balance - charge })
        })
      )

      it.effect("is charged by the provider's usage, which the answer shows", () =>
        Effect.gen(function* () {
          const usage = {
            ...usual,
            prompt_tokens: 60,
            prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 15 }
          }
          yield* (yield* Upstreams).first.script(replying(stream, "fine", usage))
          const { spent, ...customer } = yield* Served.customer()
          const answer = yield* ask(customer, { model: "tiered", input: "hi", stream })
          const row = yield* Served.logged(answer.headers.get("x-request-id"))
          const charge = 40n * 100n + 15n * 1_250n + 5n * into + 5n * out
          assert.deepInclude(row, { charge: NanoUsd(charge), notes: [] })
          assert.strictEqual(yield* spent, charge)
          assert.include(
            answer.text,
            '"usage":{"input_tokens":60,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":15},"output_tokens":5'
          )
        })
      )

      it.effect("is charged by the gateway's count where the provider reports nothing", () =>
        Effect.gen(function* () {
          yield* (yield* Upstreams).first.script(replying(stream, "one two three four five", undefined))
          const { spent, ...customer } = yield* Served.customer()
          const answer = yield* ask(customer, { model: "talk", input: "six seven eight", stream })
          const row = yield* Served.logged(answer.headers.get("x-request-id"))
          assert.deepInclude(row, { notes: ["usage_estimated"], promptTokens: 7, completionTokens: 5 })
          assert.strictEqual(yield* spent, 7n * into + 5n * out)
          assert.include(answer.text, '"total_tokens":12')
        })
      )

      it.effect("is never more than the hold", () =>
        Effect.gen(function* () {
          const usage = { prompt_tokens: 1e9, completion_tokens: 1e9 }
          yield* (yield* Upstreams).first.script(replying(stream, "fine", usage))
          const { spent, ...customer } = yield* Served.customer()
          const answer = yield* ask(customer, { model: "talk", input: "hi", max_output_tokens: 3, stream })
          const row = yield* Served.logged(answer.headers.get("x-request-id"))
          assert.deepInclude(row, { notes: ["hold_exceeded"] })
          assert.strictEqual(yield* spent, BigInt(bare + 2) * into + 3n * out)
        })
      )
    })
  }

  it.effect("is not asked for where a stream breaks", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      const { spent, ...customer } = yield* Served.customer()
      yield* first.script(sse(chunk({ content: "Servus" }), cut))
      const answer = yield* ask(customer, { model: "leaving", input: "hi", stream: true })
      assert.strictEqual(answer.status, 200)
      assert.match(answer.text, /"delta":"Servus"[^]*event: response\.failed\ndata: .*"code":"server_error".*\n\n$/)
      assert.notInclude(answer.text, "response.completed")
      assert.strictEqual(yield* spent, 0n)
      const row = yield* Served.logged(answer.headers.get("x-request-id"))
      assert.deepInclude(row, { status: 200, code: "stream_error", charge: zero })
    })
  )

  const departures: ReadonlyArray<readonly [what: string, stream: boolean, charge: "usual" | "counted" | "none"]> = [
    ["before a JSON answer", false, "usual"],
    ["in the middle of a stream", true, "counted"],
    ["before a stream's first output", true, "none"]
  ]
  it.effect.each(departures)("of a client that leaves %s", ([what, stream, charged]) =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      const { secret, spentInTheEnd } = yield* Served.customer()
      const gate = yield* Deferred.make<void>()
      const calls = first.calls.length
      const streamed = charged === "none" ? silent : sse(chunk({ content: "one two three" }), Effect.never, ending)
      yield* first.script(stream ? streamed : gated(gate, false))
      const requestId = `left-${what.replaceAll(/\W/g, "-")}`
      const body = JSON.stringify({ model: "leaving", input: "hi", stream })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const connection = yield* open
          yield* connection.write(
            `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\nx-request-id: ${requestId}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
          )
          yield* soon(
            Effect.sync(() => {
              assert.lengthOf(first.calls, calls + 1)
              if (charged === "counted") assert.include(connection.received(), "one two three")
            })
          )
        })
      )
      for (let turn = 0; turn < 3; turn++) yield* call("/healthz")
      yield* Deferred.succeed(gate, undefined)
      yield* soon(Effect.map(call("/metrics"), ({ text }) => assert.match(text, /^gateway_in_flight(\{\})? 0$/m)))
      const { charge, code, completionTokens, promptTokens, status } = yield* Served.logged(requestId)
      assert.deepStrictEqual([status, code], [499, "client_closed"])
      const counted = BigInt(promptTokens ?? 0) * into + BigInt(completionTokens ?? 0) * out
      assert.strictEqual(charge, NanoUsd(charged === "usual" ? usualCharge : counted))
      assert.strictEqual(counted > 0n, charged !== "none")
      assert.strictEqual(yield* spentInTheEnd, charge)
    })
  )

  it.effect("leaves a ledger that verifies", () =>
    Effect.gen(function* () {
      const { violations } = yield* (yield* LedgerAdmin).verify
      assert.deepStrictEqual([...violations], [])
    })
  )
})

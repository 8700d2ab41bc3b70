import { Deferred, Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { post, soon } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { done, event, json, type Reply, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  chunk,
  completion,
  ending,
  gateway,
  nanoPerToken,
  prices,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const tiered = { ...prices, cached_prompt_per_1m_usd: 0.1, cache_write_per_1m_usd: 1.25 }
const served = gateway({ talk: {}, tiered: { pricing: tiered } })
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

withLayer(served)("the money of a response", (it) => {
  for (const stream of [false, true]) {
    describe(stream ? "stream" : "json", () => {
      it.effect.each(bounds)("is held for the most that %s can cost", function* ([, body, prompt, output]) {
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

      it.effect("is charged by the provider's usage, which the answer shows", function* () {
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
    })
  }

  it.effect("leaves a ledger that verifies", function* () {
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
  })
})

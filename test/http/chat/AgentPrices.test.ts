import { Deferred, Effect, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { CompletionUsage } from "../../../src/http/chat/ChatSchema.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { bearer, call, chat, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { done, event, json, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import { chunk, completion, gateway, onFirst, prices, Upstreams } from "../../harness/upstream/Upstreams.ts"

const pricing = {
  ...prices,
  cached_prompt_per_1m_usd: 0.1,
  cache_write_per_1m_usd: 1.25,
  cache_write_1h_per_1m_usd: 2,
  web_search_per_1k_usd: 10
}
const cost = { ...pricing, web_search_per_1k_usd: 8 }
const options = { web_search: { search: true } }
const capabilities = ["web_search"]
const served = gateway({
  agent: { pricing, capabilities, routes: [{ ...onFirst, options, cost }], max_web_searches: 3 },
  plugin: { pricing, capabilities, routes: [{ ...onFirst, options: { ...options, search_fee: "request" } }] }
})

/** Nano-USD of a token, and of a search. */
const [prompt, cached, written, hour, output, search] = [1_000n, 100n, 1_250n, 2_000n, 2_000n, 10_000_000n]

const usage = (searches: number) => ({
  prompt_tokens: 60,
  completion_tokens: 5,
  total_tokens: 65,
  prompt_tokens_details: {
    cached_tokens: 30,
    cache_write_tokens: 20,
    cache_creation_token_details: { ephemeral_5m_input_tokens: 8, ephemeral_1h_input_tokens: 12 }
  },
  server_tool_use: { web_search_requests: searches }
})
const tokens = 10n * prompt + 30n * cached + 8n * written + 12n * hour + 5n * output

const replying = (stream: boolean, searches: number) =>
  stream
    ? sse(
        chunk({ content: "fine" }),
        chunk({}, "stop"),
        event({ ...completion(""), choices: [], usage: usage(searches) }),
        done
      )
    : json(200, completion("fine", usage(searches)))

const searching = (model: string, more: object = {}) => ({ ...talk(model), web_search: true, ...more })
const told = { stream_options: { include_usage: true } }
const decodeUsage = Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ usage: CompletionUsage })))

withLayer(served)("the price of cache writes and searches", (it) => {
  for (const stream of [false, true]) {
    describe(stream ? "stream" : "json", () => {
      it.effect("is exact, and the answer, the log and the customer's record show what was charged", function* () {
        yield* (yield* Upstreams).first.script(replying(stream, 2))
        const { funds, ...customer } = yield* Served.customer()
        const { balance } = yield* funds
        const answer = yield* chat(customer, searching("agent", { stream, ...(stream && told) }))
        assert.strictEqual(answer.status, 200, answer.text)
        const charge = tokens + 2n * search
        assert.strictEqual(balance - (yield* funds).balance, charge)
        const said = stream ? (answer.text.match(/data: (\{.*"prompt_tokens".*\})/)?.[1] ?? "") : answer.text
        assert.deepStrictEqual((yield* decodeUsage(said)).usage, {
          prompt_tokens: 60,
          completion_tokens: 5,
          total_tokens: 65,
          prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 20, cache_write_1h_tokens: 12 },
          completion_tokens_details: { reasoning_tokens: 0 },
          server_tool_use: { web_search_requests: 2 }
        })
        const id = answer.headers.get("x-request-id") ?? ""
        const row = yield* Served.logged(id)
        assert.deepInclude(row, {
          charge: NanoUsd(charge),
          cost: NanoUsd(tokens + 2n * 8_000_000n),
          notes: [],
          cachedTokens: 30,
          cacheWriteTokens: 20,
          cacheWriteHourTokens: 12,
          webSearches: 2
        })
        const record = yield* call(`/v1/usage/requests/${id}`, { headers: bearer(customer.secret) })
        assert.include(record.text, '"cache_write_tokens":20,"cache_write_1h_tokens":12')
        assert.include(record.text, '"web_searches":2')
        const sums = yield* call("/v1/usage", { headers: bearer(customer.secret) })
        assert.include(sums.text, '"cache_write_tokens":20,"web_searches":2')
      })

      it.effect("leaves out searches above the most that the hold covers, which are the operator's", function* () {
        yield* (yield* Upstreams).first.script(replying(stream, 7))
        const { spent, ...customer } = yield* Served.customer()
        const answer = yield* chat(customer, searching("agent", { stream }))
        assert.strictEqual(yield* spent, tokens + 3n * search)
        const row = yield* Served.logged(answer.headers.get("x-request-id"))
        assert.deepInclude(row, { notes: [], webSearches: 3, cost: NanoUsd(tokens + 7n * 8_000_000n) })
      })

      it.effect("has no searches that were not asked for", function* () {
        yield* (yield* Upstreams).first.script(replying(stream, 2))
        const { spent, ...customer } = yield* Served.customer()
        yield* chat(customer, { ...talk("agent"), stream })
        assert.strictEqual(yield* spent, tokens)
      })

      it.effect("is one search where the host has one fee for a request, whatever it reports", function* () {
        const { first } = yield* Upstreams
        const { spent, ...customer } = yield* Served.customer()
        for (const reported of [0, 5]) {
          yield* first.script(replying(stream, reported))
          yield* chat(customer, searching("plugin", { stream }))
        }
        yield* first.script(replying(stream, 5))
        yield* chat(customer, { ...talk("plugin"), stream })
        assert.strictEqual(yield* spent, 3n * tokens + 2n * search)
      })
    })
  }

  it.effect("is held at its dearest: all of the prompt kept for an hour, and every search", function* () {
    const gate = yield* Deferred.make<void>()
    const { funds, ...customer } = yield* Served.customer()
    const reply = JSON.stringify(completion("fine", usage(1)))
    yield* (yield* Upstreams).first.script(steps({ type: "application/json" }, Deferred.await(gate), reply))
    const look = Effect.zipLeft(
      soon(Effect.filterOrFail(funds, ({ held }) => held > 0n)),
      Deferred.succeed(gate, undefined)
    )
    const asked = searching("agent", { max_tokens: 9 })
    const [, { held }] = yield* Effect.all([chat(customer, asked), look], { concurrency: "unbounded" })
    assert.strictEqual(held, BigInt(32 + 16 + 2 + 25_000) * hour + 9n * output + 3n * search)
  })

  it.effect("leaves a ledger that verifies", function* () {
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
  })
})

import { NanoUsd } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import { talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { done, event, json, type Reply, sse } from "../../harness/upstream/FakeUpstream.ts"
import {
  chunk,
  completion,
  gateway,
  nanoPerToken,
  onFirst,
  prices,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const tiered = {
  ...prices,
  cached_prompt_per_1m_usd: 0.1,
  cache_write_per_1m_usd: 1.25,
  long_context: { above: 300, prompt_per_1m_usd: 3, completion_per_1m_usd: 4 }
}
const served = gateway({
  talk: {},
  tiered: { pricing: tiered },
  hourly: { pricing: { ...tiered, cache_write_1h_per_1m_usd: 2 } },
  hidden: { routes: [{ ...onFirst, options: { hidden_reasoning: true } }] },
  crumbs: { pricing: { prompt_per_1m_usd: 0.000001, completion_per_1m_usd: 0.000003 } },
  free: { pricing: { prompt_per_1m_usd: 0, completion_per_1m_usd: 0 } }
})

const { completion: out, prompt: into } = nanoPerToken
const replyEvents = (content: string, usage: unknown) => [
  chunk({ content }),
  chunk({}, "stop"),
  ...(usage === undefined ? [] : [event({ ...completion(""), choices: [], usage })]),
  done
]

const replying = (stream: boolean, content: string, usage: unknown): Reply =>
  stream
    ? sse(...replyEvents(content, usage))
    : json(200, { ...completion(content), ...(usage === undefined ? {} : { usage }) })

interface Settled {
  readonly what: string
  readonly model?: string
  readonly prompt?: string
  readonly usage: unknown
  readonly charge: bigint
}

/** Usage that a provider reports, and what it costs: to the nano-dollar, rounded up once. */
const settled: ReadonlyArray<Settled> = [
  { what: "usual usage", usage: usual, charge: 10n * into + 5n * out },
  { what: "no total", usage: { prompt_tokens: 10, completion_tokens: 5 }, charge: 10n * into + 5n * out },
  {
    what: "reasoning inside",
    usage: { ...usual, completion_tokens_details: { reasoning_tokens: 4 } },
    charge: 10n * into + 5n * out
  },
  {
    what: "cached tokens without a price of their own",
    usage: { ...usual, prompt_tokens_details: { cached_tokens: 8 } },
    charge: 10n * into + 5n * out
  },
  {
    what: "cached and cache-written tokens",
    model: "tiered",
    usage: { ...usual, prompt_tokens: 60, prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 15 } },
    charge: 40n * 100n + 15n * 1_250n + 5n * into + 5n * out
  },
  {
    what: "more cached than there are, which is beside the prompt",
    model: "tiered",
    usage: { ...usual, prompt_tokens_details: { cached_tokens: 19 } },
    charge: 10n * into + 19n * 100n + 5n * out
  },
  {
    what: "cache writes by another name",
    model: "tiered",
    usage: { ...usual, prompt_tokens: 60, cache_creation_input_tokens: 15 },
    charge: 45n * into + 15n * 1_250n + 5n * out
  },
  {
    what: "cache writes that are divided, an hour at its own price",
    model: "hourly",
    usage: {
      ...usual,
      prompt_tokens: 60,
      prompt_tokens_details: {
        cache_creation_token_details: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 5 }
      }
    },
    charge: 45n * into + 10n * 1_250n + 5n * 2_000n + 5n * out
  },
  {
    what: "hidden reasoning, within the hold",
    model: "hidden",
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 55 },
    charge: 10n * into + 45n * out
  },
  {
    what: "hidden reasoning without any completion",
    model: "hidden",
    usage: { prompt_tokens: 10, total_tokens: 55 },
    charge: 10n * into + 45n * out
  },
  {
    what: "a prompt at the long-context limit",
    model: "tiered",
    prompt: "x".repeat(400),
    usage: { ...usual, prompt_tokens: 300 },
    charge: 300n * into + 5n * out
  },
  {
    what: "a prompt over the long-context limit",
    model: "tiered",
    prompt: "x".repeat(400),
    usage: { ...usual, prompt_tokens: 301, prompt_tokens_details: { cached_tokens: 1 } },
    charge: 300n * 3_000n + 100n + 5n * 4_000n
  },
  { what: "a price below a nano-dollar", model: "crumbs", usage: usual, charge: 1n },
  { what: "a free model", model: "free", usage: usual, charge: 0n }
]

/** Usage that cannot be true beside a text. */
const untrue: ReadonlyArray<readonly [what: string, usage: unknown]> = [
  ["none", undefined],
  ["null", null],
  ["zeros", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ["negative", { prompt_tokens: -10, completion_tokens: -5 }],
  ["words", { prompt_tokens: "ten", completion_tokens: "five" }],
  ["a list", [10, 5]],
  ["another protocol's", { input_tokens: 10, output_tokens: 5 }]
]

const excesses = [
  { what: "more than was expected", tokens: 90_000, logged: 90_000, notes: ["hold_exceeded"] },
  // The context of 100,000, and the cap of 3.
  { what: "more than can be", tokens: 1e300, logged: 100_003, notes: ["usage_bounded", "hold_exceeded"] }
]

/** How each way tells of seven tokens in and five out. */
const counts: Readonly<Record<string, string>> = {
  "/v1/chat/completions": '"prompt_tokens":7,"completion_tokens":5,"total_tokens":12',
  "/v1/responses": '"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12',
  "/v1/messages": '"input_tokens":7,'
}
const cases = chatApis.flatMap(({ path, send }) =>
  [false, true].map((stream) => ({ path, stream, ask: send, told: counts[path] ?? "uncounted" }))
)

withLayer(served)("the charge of a chat", (it) => {
  for (const { ask, path, stream, told } of cases) {
    describe(`${path}, ${stream ? "stream" : "json"}`, () => {
      it.effect.each(settled)("is exact for $what", function* ({ charge, model = "talk", prompt = "hi", usage }) {
        yield* (yield* Upstreams).first.script(replying(stream, "fine", usage))
        const { funds, ...customer } = yield* Served.customer()
        const { balance } = yield* funds
        const answer = yield* ask(customer, { ...talk(model, prompt), stream })
        assert.strictEqual(answer.status, 200, answer.text)
        assert.strictEqual(balance - (yield* funds).balance, charge)
        const row = yield* Served.logged(answer.headers.get("x-request-id"))
        assert.deepInclude(row, { charge: NanoUsd(charge), notes: [] })
      })

      it.effect.each(untrue)("is by the gateway's count where the usage is %s", function* ([, usage]) {
        yield* (yield* Upstreams).first.script(replying(stream, "one two three four five", usage))
        const { spent, ...customer } = yield* Served.customer()
        // Which only the host of a body in the client's own words would read, beside chat.
        const counting = { stream_options: { include_usage: true } }
        const answer = yield* ask(customer, { ...talk("talk", "six seven eight"), stream, ...counting })
        assert.strictEqual(answer.status, 200, answer.text)
        const row = yield* Served.logged(answer.headers.get("x-request-id"))
        assert.deepInclude(row, { notes: ["usage_estimated"], promptTokens: 7, completionTokens: 5 })
        assert.strictEqual(yield* spent, 7n * into + 5n * out)
        assert.include(answer.text, told)
      })

      it.effect.each(excesses)("is never above the hold for $what, and the excess is logged", function* (excess) {
        const { logged, notes, tokens } = excess
        const usage = { prompt_tokens: tokens, completion_tokens: tokens }
        yield* (yield* Upstreams).first.script(replying(stream, "fine", usage))
        const { spent, ...customer } = yield* Served.customer()
        const answer = yield* ask(customer, { ...talk("talk"), max_tokens: 3, stream })
        const hold = BigInt(32 + 16 + 2) * into + 3n * out
        const row = yield* Served.logged(answer.headers.get("x-request-id"))
        assert.deepInclude(row, { notes, charge: NanoUsd(hold), promptTokens: logged, completionTokens: 3 })
        assert.strictEqual(yield* spent, hold)
        const told = answer.text.slice(answer.text.lastIndexOf('"usage"'))
        if (told.includes("input_tokens") || !stream) assert.include(told, String(logged))
      })
    })
  }

  it.effect("of hidden reasoning is told as such, and is never above the cap", function* () {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 55 }
    const told: Readonly<Record<string, RegExp>> = {
      "/v1/chat/completions": /"completion_tokens":45,"total_tokens":55,.*"reasoning_tokens":40/,
      "/v1/responses": /"output_tokens":45,"output_tokens_details":\{"reasoning_tokens":40\},"total_tokens":55/,
      "/v1/messages": /"output_tokens":45/
    }
    for (const { ask, path, stream } of cases) {
      const { first } = yield* Upstreams
      const { spent, ...customer } = yield* Served.customer()
      const counting = stream && path.endsWith("completions") ? { stream_options: { include_usage: true } } : {}
      yield* first.script(replying(stream, "fine", usage))
      const answer = yield* ask(customer, { ...talk("hidden"), stream, ...counting })
      assert.match(answer.text, told[path] ?? assert.fail(path))
      yield* first.script(replying(stream, "fine", usage))
      yield* ask(customer, { ...talk("hidden"), max_tokens: 20, stream })
      assert.strictEqual(yield* spent, 2n * 10n * into + (45n + 20n) * out)
    }
  })

  it.effect("leaves a ledger that verifies", function* () {
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
  })
})

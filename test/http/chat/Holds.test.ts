import { Deferred, Effect } from "effect"
import { chatApis } from "../../harness/client/ChatApis.ts"
import { assertRefused, chat, chatPath, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { json, type Reply, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import { painting } from "../../harness/upstream/Replies.ts"
import {
  answers,
  chunk,
  completion,
  ending,
  gateway,
  maxOutput,
  nanoPerToken,
  prices,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const dear = {
  ...prices,
  cache_write_per_1m_usd: 1.25,
  long_context: { above: 300, prompt_per_1m_usd: 3, completion_per_1m_usd: 4 }
}
const served = gateway({
  talk: { capabilities: ["tools", "vision", "response_format"] },
  dear: { pricing: dear },
  free: { pricing: { prompt_per_1m_usd: 0, completion_per_1m_usd: 0 } }
})

const { completion: out, prompt: into } = nanoPerToken
/** Prompt tokens reserved for a request and for each of its messages, beside one for every byte. */
const perRequest = 32
const perMessage = 16
const bare = perRequest + perMessage
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } }
const format = { type: "json_object" }
/** Of many more bytes than its allowance has tokens. */
const drawn = Buffer.concat([painting, Buffer.alloc(4_500)]).toString("base64")
const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${drawn}` } }
const bodyWith = (...contents: ReadonlyArray<unknown>) => ({
  model: "talk",
  messages: contents.map((content) => ({ role: "user", content }))
})

type Rates = readonly [prompt: bigint, completion: bigint]

/** The prompt and completion tokens that a request can come to, at most; undefined: the cap where none is asked for. */
const bounds: ReadonlyArray<
  readonly [what: string, body: object, prompt: number, completion: number | undefined, rates?: Rates]
> = [
  ["a word", talk("talk"), bare + 2, undefined],
  ["a cap", { ...talk("talk"), max_tokens: 10 }, bare + 2, 10],
  ["a cap above what the model can", { ...talk("talk"), max_tokens: 1_000_000 }, bare + 2, maxOutput],
  ["bytes, not letters", { ...bodyWith("Grüß 👋"), max_tokens: 1 }, bare + 11, 1],
  ["three messages", { ...bodyWith("a", "b", "c"), max_tokens: 1 }, perRequest + 3 * perMessage + 3, 1],
  ["parts", { ...bodyWith([{ type: "text", text: "abc" }]), max_tokens: 1 }, bare + 3, 1],
  ["an image by its allowance", { ...bodyWith([picture]), max_tokens: 1 }, bare + 1_000, 1],
  ["a dear cache write", { ...talk("dear"), max_tokens: 9 }, bare + 2, 9, [1_250n, out]],
  ["a prompt of just the mark", { ...talk("dear", "x".repeat(300 - bare)), max_tokens: 9 }, 300, 9, [1_250n, out]],
  ["a long prompt", { ...talk("dear", "x".repeat(301 - bare)), max_tokens: 9 }, 301, 9, [3_000n, 4_000n]],
  ["all of the context at most", { ...bodyWith("x".repeat(150_000)), max_tokens: 1 }, 100_000, 1]
]

const otherCap = ["the other cap", { ...talk("talk"), max_tokens: 10, max_completion_tokens: 7 }, bare + 2, 7] as const

/** What only has to be no less than its bytes. */
const floors: ReadonlyArray<readonly [what: string, more: object]> = [
  ["tools", { tools: [tool] }],
  ["a format", { response_format: format }]
]

/** An answer that waits for the gate. */
const gated = (gate: Deferred.Deferred<void>, stream: boolean): Reply =>
  stream
    ? sse(Deferred.await(gate), chunk({ content: "fine" }), ending)
    : steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(completion("fine", usual)))

withLayer(served)("the hold of a chat", (it) => {
  for (const { defaultCap, path, send, stream } of chatApis.flatMap((way) =>
    [false, true].map((stream) => ({ ...way, stream }))
  )) {
    describe(`${path}, ${stream ? "stream" : "json"}`, () => {
      it.effect.each(path === chatPath ? [...bounds, otherCap] : bounds)(
        "covers the most that %s can cost, and the rest is released",
        function* ([, body, prompt, output = defaultCap, rates = [into, out]]) {
          const { first } = yield* Upstreams
          const { funds, ...customer } = yield* Served.customer()
          const { balance } = yield* funds
          const gate = yield* Deferred.make<void>()
          const calls = first.calls.length
          yield* first.script(gated(gate, stream))
          const hold = BigInt(prompt) * rates[0] + BigInt(output) * rates[1]
          const look = soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1))).pipe(
            Effect.zipRight(funds),
            Effect.zipLeft(Deferred.succeed(gate, undefined))
          )
          const [answer, meanwhile] = yield* Effect.all([send(customer, { ...body, stream }), look], {
            concurrency: "unbounded"
          })
          assert.strictEqual(answer.status, 200, answer.text)
          assert.deepStrictEqual(meanwhile, { balance, held: hold, available: balance - hold })
          assert.deepInclude(first.calls.at(-1)?.body, { max_tokens: output })
          // No polling: the charge was there before the answer's last byte.
          const charge = [10n * into + BigInt(Math.min(5, output)) * out, hold].reduce((a, b) => (a < b ? a : b))
          assert.deepStrictEqual(yield* funds, { balance: balance - charge, held: 0n, available: balance - charge })
        }
      )
    })
  }

  it.effect.each(floors)("covers at least the bytes of %s", function* ([, more]) {
    const gate = yield* Deferred.make<void>()
    const { funds, ...customer } = yield* Served.customer()
    yield* (yield* Upstreams).first.script(gated(gate, false))
    const look = Effect.zipLeft(
      soon(Effect.filterOrFail(funds, ({ held }) => held > 0n)),
      Deferred.succeed(gate, undefined)
    )
    const body = { ...talk("talk"), max_tokens: 1, ...more }
    const [, { held }] = yield* Effect.all([chat(customer, body), look], { concurrency: "unbounded" })
    const bytes = JSON.stringify(Object.values(more)[0]).length
    assert.isAtLeast(Number(held), Number(BigInt(bare + 2 + bytes) * into + out))
  })

  it.effect("keeps many requests at once from taking a balance below zero", function* () {
    const { first } = yield* Upstreams
    const hold = BigInt(bare + 2) * into + 100n * out
    const opening = 3n * hold + hold / 2n
    const { funds, ...customer } = yield* Served.customer({ nanoUsd: opening })
    const greedy = json(200, completion("fine", { prompt_tokens: 1e9, completion_tokens: 1e9 }))
    yield* first.script(greedy, greedy, greedy)
    const answers = yield* Effect.all(
      Array.from({ length: 20 }, () => chat(customer, { ...talk("talk"), max_tokens: 100 })),
      { concurrency: "unbounded" }
    )
    for (const answer of answers) if (answer.status !== 200) assertRefused(answer, refusals.insufficient)
    assert.lengthOf(
      answers.filter(({ status }) => status === 200),
      3
    )
    assert.deepStrictEqual(yield* funds, { balance: hold / 2n, held: 0n, available: hold / 2n })
  })

  it.effect("is refused on an empty balance even for a free model", function* () {
    yield* (yield* Upstreams).first.script(answers())
    assertRefused(yield* chat(yield* Served.customer({ nanoUsd: 0n }), talk("free")), refusals.shortOf(0n, 0n))
    assert.strictEqual((yield* chat(yield* Served.customer({ nanoUsd: 1n }), talk("free"))).status, 200)
  })

  it.effect.each(["day", "week", "month", "total"] as const)(
    "is refused over a key's cap for a %s, even on a full balance",
    function* (period) {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer({ cap: { amount: 30_000n, period } })
      for (const status of [200, 200]) {
        yield* first.script(answers())
        assert.strictEqual((yield* chat(customer, talk("talk"))).status, status)
      }
      const refused = yield* chat(customer, talk("talk"))
      assertRefused(refused, refusals.capped(period))
      const reset = period === "total" ? "" : " The limit resets at \\d{4}-\\d\\d-\\d\\dT00:00:00Z\\."
      assert.match(refused.text, new RegExp(`"hint":"0\\.00004 of 0\\.00003 USD is spent\\.${reset}"`))
      assert.strictEqual(yield* customer.spent, 40_000n)
    }
  )
})

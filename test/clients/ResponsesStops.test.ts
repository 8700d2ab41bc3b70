import { Context, Effect, Layer } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { calling, contentOf, drained } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { inOnePiece, wire } from "../providers/openai-responses/Wire.ts"

class Host extends Context.Tag("test/Host")<Host, Fake.FakeUpstream>() {}

const catalog = (url: string) =>
  JSON.stringify({
    providers: { thinker: { adapter: "openai-responses", base_url: `${url}/v1`, credential: "THINKER_KEY" } },
    families: { B: { sampling: false, max_output_policy: "clamp" } },
    models: [
      {
        id: "think",
        surface: "chat",
        family: "B",
        context_length: 100_000,
        max_output: 8_000,
        pricing: { prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5 },
        reasoning: ["low", "high"],
        capabilities: ["tools"],
        routes: [
          {
            provider: "thinker",
            model: "thinker-5",
            cost: { prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5 }
          }
        ]
      }
    ]
  })

const gateway = Served.layer(
  Effect.map(Host, ({ url }) => ({ catalog: catalog(url), env: { THINKER_KEY: "k" } }))
).pipe(Layer.provideMerge(Layer.scoped(Host, Fake.make)))

const usage = { prompt: 40, completion: 500, cached: 0, cacheWrite: 0, reasoning: 450 }
const reported = NanoUsd(40n * price.prompt + 500n * price.completion)
const answer = { content: "One. END Two.", finish: "stop", usage } as const
const asked = { model: "think", messages: [{ role: "user" as const, content: "Count." }], stop: "END" }

withLayer(gateway)("an answer over the Responses API", (it) => {
  it.scoped("in one piece with a stop sequence is charged by the host's whole usage", function* () {
    yield* (yield* Host).script(inOnePiece(answer))
    const { openai, spent } = yield* Served.customer()
    const { choices } = yield* calling(() => openai.chat.completions.create(asked))
    assert.deepStrictEqual([choices[0]?.message.content, choices[0]?.finish_reason], ["One. ", "stop"])
    assert.strictEqual(yield* spent, reported)
    assert.notProperty((yield* (yield* Host).received).body, "stop")
  })

  it.scoped(
    "streamed with reasoning and a stop sequence is charged by the final usage, which the client does not see",
    function* () {
      const { end, opening, output } = wire({ ...answer, reasoning: "Hm." })
      yield* (yield* Host).script(Fake.sse(...opening, ...output, ...end))
      const { openai, spent } = yield* Served.customer()
      const { data, response } = yield* calling(() =>
        openai.chat.completions.create({ ...asked, stream: true }).withResponse()
      )
      const { error, items } = yield* drained(data)
      assert.isUndefined(error)
      assert.strictEqual(contentOf(items), "One. ")
      assert.deepStrictEqual(
        items.flatMap(({ choices }) => choices[0]?.finish_reason ?? []),
        ["stop"]
      )
      assert.strictEqual(yield* spent, reported)
      const row = yield* Served.logged(response.headers.get("x-request-id"))
      assert.deepInclude(row, { status: 200, code: null, charge: reported, reasoningTokens: 450 })
      assert.notProperty((yield* (yield* Host).received).body, "stop")
    }
  )

  it.scoped("streamed with a stop sequence ends the host's work and is charged by the gateway's count", function* () {
    const host = yield* Host
    const { opening, output } = wire(answer)
    yield* host.script(Fake.sse(...opening, ...output, Effect.never))
    const { openai, spent } = yield* Served.customer()
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...asked, stream: true }).withResponse()
    )
    const { error, items } = yield* drained(data)
    assert.deepStrictEqual([error, contentOf(items)], [undefined, "One. "])
    const charged = yield* spent
    assert.isTrue(charged > 0n && charged < 100n * price.completion, String(charged))
    const row = yield* Served.logged(response.headers.get("x-request-id"))
    assert.deepInclude(row, { status: 200, code: null, charge: NanoUsd(charged), notes: ["usage_estimated"] })
    yield* (yield* host.received).closed
  })

  it.scoped(
    "with a cap below the host's minimum is charged by that cap and costs the operator its usage",
    function* () {
      const host = yield* Host
      const floor = { prompt: 40, completion: 16, cached: 0, cacheWrite: 0, reasoning: 12 }
      const short = { content: "One two three four five.", finish: "stop", usage: floor } as const
      const paid = NanoUsd(40n * price.prompt + 3n * price.completion)
      const cost = NanoUsd(40n * price.prompt + 16n * price.completion)
      const told = { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 }
      const { openai, spent } = yield* Served.customer()
      const capped = { ...asked, max_tokens: 3 }

      yield* host.script(inOnePiece(short))
      const { data, response } = yield* calling(() => openai.chat.completions.create(capped).withResponse())
      assert.deepInclude(data.usage, { ...told, completion_tokens_details: { reasoning_tokens: 3 } })
      assert.deepStrictEqual(
        data.choices.map(({ finish_reason, message }) => [message.content, finish_reason]),
        [["One two three", "length"]]
      )
      assert.strictEqual(yield* spent, paid)
      const row = yield* Served.logged(response.headers.get("x-request-id"))
      assert.deepInclude(row, { charge: paid, cost, completionTokens: 3, notes: [] })
      assert.propertyVal((yield* host.received).body, "max_output_tokens", 16)

      const { end, opening, output } = wire(short)
      yield* host.script(Fake.sse(...opening, ...output, ...end))
      const stream = yield* calling(() =>
        openai.chat.completions.create({ ...capped, stream: true, stream_options: { include_usage: true } })
      )
      const { items } = yield* drained(stream)
      assert.deepInclude(items.at(-1)?.usage, told)
      assert.strictEqual(yield* spent, paid * 2n)
    }
  )
})

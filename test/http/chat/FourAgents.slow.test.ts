import { Effect, Schema } from "effect"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { post, talk } from "../../harness/client/HttpCalls.ts"
import { builtIn } from "../../harness/fixtures/Catalogs.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const Listed = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      pricing: Schema.Struct({ completion_per_1m_usd: Schema.optional(Schema.Number) })
    })
  )
})
const dearest = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { secret } = yield* Served.customer()
  const listed = yield* Effect.promise(async () => {
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
    return Schema.decodeUnknownSync(Listed)(await response.json())
  })
  const priced = listed.data.map(({ id, pricing }) => ({ id, price: pricing.completion_per_1m_usd ?? 0 }))
  return priced.reduce((best, one) => (one.price > best.price ? one : best)).id
})

const agents = [0, 1, 2, 3]
const turns = [0, 1, 2]
const five = 5_000_000_000n

/** The built-in catalog, in which no cap is refused. */
const catalog = builtIn
  .replace("max_output_policy: reject", "max_output_policy: clamp")
  .replace("max_output: 8192", "max_output: 128000")

withLayer(Served.layer(Effect.succeed({ catalog, env: { SANDBOX: "true" } })))("four agents on five dollars", (it) => {
  it.effect.each([
    ["/chat/completions", false, 0],
    ["/chat/completions", true, 40],
    ["/responses", false, 0],
    ["/responses", true, 0],
    ["/messages", false, 0],
    ["/messages", true, 40]
  ] as const)(
    "run at once on the dearest model without one refusal (%s, stream: %s, %s ms between them)",
    function* ([path, stream, apart]) {
      const model = yield* dearest
      const customer = yield* Served.customer({ nanoUsd: five, canReduceHold: path === "/chat/completions" })
      const ask = (turn: number) => {
        const text = `[sandbox delay=${turn === 0 ? 2_000 : 1_000}] ${"word ".repeat(10_000)}`
        return path === "/responses"
          ? post("/v1/responses")(customer, { model, input: text, max_output_tokens: 64_000, stream })
          : post(`/v1${path}`)(customer, { ...talk(model, text), max_tokens: 64_000, stream })
      }
      const agent = (number: number) => Effect.delay(Effect.forEach(turns, ask), number * apart)
      const answers = (yield* Effect.forEach(agents, agent, { concurrency: "unbounded" })).flat()
      assert.deepStrictEqual(
        answers.flatMap(({ status, text }) => (status === 200 && !/insufficient|failed/.test(text) ? [] : [text])),
        []
      )
      const caps = answers.map(({ headers }) => headers.get("x-gateway-max-output-tokens"))
      for (const cap of caps) if (cap !== null) assert.isAtLeast(Number(cap), 1_024)
      assert.isTrue(
        caps.some((cap) => cap !== null),
        "all had their full cap"
      )
      assert.isAbove(Number(yield* customer.spentInTheEnd), 0)
      assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
    },
    { timeout: 60_000, concurrent: true }
  )
})

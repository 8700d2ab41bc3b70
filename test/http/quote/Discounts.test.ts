import { SqlClient } from "@effect/sql"
import { Effect, Option, Schema } from "effect"
import { parse } from "yaml"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { call, post } from "../../harness/client/HttpCalls.ts"
import { assertRatesStored, eventually } from "../../harness/database/Money.ts"
import { builtIn } from "../../harness/fixtures/Catalogs.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const markups = { default: 20, models: { "gpt*": 35.25 } }
const gateway = Served.layer(
  Effect.succeed({ env: { SANDBOX: "true" }, catalog: `markup: ${JSON.stringify(markups)}\n${builtIn}` })
)

/** USD as nano-USD, from the digits. */
const nano = (usd: number | string): bigint => {
  const [whole = "", decimals = ""] = (typeof usd === "number" ? usd.toFixed(9) : usd).split(".")
  return BigInt(whole + decimals.slice(0, 9).padEnd(9, "0"))
}

/** Arithmetic of this test's own: `percent` has two decimals; halves are rounded up. */
const plus = (price: bigint, percent: number): bigint =>
  (price * BigInt(Math.round(10_000 + percent * 100)) + 5_000n) / 10_000n

const markupOf = (id: string): number => (id.startsWith("gpt") ? markups.models["gpt*"] : markups.default)

const Price = Schema.Record({ key: Schema.String, value: Schema.Unknown })
const Listed = Schema.Struct({
  id: Schema.String,
  surface: Schema.Literal("chat", "image", "video"),
  pricing: Price
})
const decodeList = Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ data: Schema.Array(Listed) })))
const Entry = Schema.Struct({ id: Schema.String, pricing: Schema.optional(Price) })
const written = Schema.decodeUnknownSync(Schema.Struct({ models: Schema.Array(Entry) }))(parse(builtIn)).models

const amountIn = (pricing: typeof Price.Type | undefined, name: string): bigint | undefined => {
  const usd = pricing?.[name]
  return typeof usd === "number" ? nano(usd) : undefined
}

const names = [
  "prompt_per_1m_usd",
  "completion_per_1m_usd",
  "cached_prompt_per_1m_usd",
  "per_image_usd",
  "per_second_usd"
]

const Quote = Schema.parseJson(Schema.Struct({ hold_usd: Schema.Number, max_charge_usd: Schema.Number }))

const talk = (model: string) => ({ model, max_tokens: 60, messages: [{ role: "user", content: "Tell me a story." }] })
const dialects = [
  ["/v1/chat/completions", talk],
  ["/v1/messages", talk],
  ["/v1/responses", (model: string) => ({ model, max_output_tokens: 60, input: "Tell me a story." })]
] as const

withLayer(gateway)("an organization's discount", (it) => {
  const discounted = Effect.fnUntraced(function* (percent: number) {
    const customer = yield* Served.customer({ nanoUsd: 10_000_000_000_000n, rpm: 100_000 })
    const { update } = yield* Organizations
    yield* update(customer.org, { discount_percent: percent })
    const { text } = yield* call("/v1/models", { headers: { authorization: `Bearer ${customer.secret}` } })
    const { data } = yield* decodeList(text)
    return { customer, models: data }
  })

  /** Calls, and returns what the header, the quote and the ledger say in nano-USD, with the row of the log. */
  const paid = Effect.fnUntraced(function* (customer: Served.Customer, path: string, body: unknown) {
    const told = yield* post("/v1/quote")(customer, { endpoint: path, body })
    const quote = yield* Schema.decodeUnknown(Quote)(told.text)
    const { headers, status, text } = yield* post(path)(customer, body)
    assert.oneOf(status, [200, 202], text)
    const row = yield* Served.logged(headers.get("x-request-id"))
    const sql = yield* SqlClient.SqlClient
    const entries = yield* sql<{ readonly amount: string; readonly held: string | null }>`
      SELECT amount::text, held::text FROM ledger_entries WHERE hold_id = ${row.holdId ?? ""} AND kind = 'charge'`
    return {
      row,
      header: Option.map(Option.fromNullable(headers.get("x-gateway-charge-usd")), nano),
      quoted: nano(quote.hold_usd),
      entry: entries.map(({ amount }) => -BigInt(amount)),
      held: entries.map(({ held }) => held && BigInt(held))
    }
  })

  for (const percent of [10, 12.34, -7.5, 0, 100]) {
    it.effect(
      `of ${percent} % is in list, quote, hold, header, ledger and statement, to the nano-dollar`,
      function* () {
        const { customer, models } = yield* discounted(percent)
        const byId = new Map(written.map((entry) => [entry.id, entry.pricing]))
        let compared = 0
        for (const { id, pricing } of models) {
          for (const name of names) {
            const base = amountIn(byId.get(id), name)
            if (base === undefined) continue
            compared += 1
            assert.strictEqual(amountIn(pricing, name), plus(plus(base, markupOf(id)), -percent), `${id} ${name}`)
          }
        }
        assert.isAbove(compared, 40)

        let total = 0n
        const chats = models.filter(({ surface }) => surface === "chat").slice(0, 6)
        for (const { id, pricing } of chats) {
          for (const [path, bodyFor] of dialects) {
            const { entry, header, held, quoted, row } = yield* paid(customer, path, bodyFor(id))
            const [prompt, completion, cached] = ["prompt", "completion", "cached_prompt"].map(
              (kind) => amountIn(pricing, `${kind}_per_1m_usd`) ?? 0n
            )
            const { cachedTokens, completionTokens, promptTokens } = row
            const sum =
              BigInt((promptTokens ?? 0) - (cachedTokens ?? 0)) * (prompt ?? 0n) +
              BigInt(cachedTokens ?? 0) * (cached ?? 0n) +
              BigInt(completionTokens ?? 0) * (completion ?? 0n)
            const charge = (sum + 999_999n) / 1_000_000n
            assert.deepStrictEqual(header, Option.some(charge), `${path} ${id}`)
            assert.deepStrictEqual(entry, [charge])
            assert.deepStrictEqual(held, [quoted])
            total += charge
          }
        }

        const [image] = models.filter(({ surface }) => surface === "image")
        const drawn = yield* paid(customer, "/v1/images/generations", { model: image?.id, prompt: "A boat" })
        const imagePrice = amountIn(image?.pricing, "per_image_usd")
        assert.deepStrictEqual(drawn.entry, [imagePrice])
        assert.deepStrictEqual(drawn.held, [drawn.quoted])
        assert.strictEqual(drawn.quoted, imagePrice)
        total += imagePrice ?? 0n

        const month = new Date().toISOString().slice(0, 7)
        const statement = yield* call(`/v1/statement?month=${month}`, {
          headers: { authorization: `Bearer ${customer.secret}` }
        })
        assert.strictEqual(nano(JSON.parse(statement.text).total_charge_usd), total)
        assert.strictEqual(yield* customer.spentInTheEnd, total)
      },
      120_000
    )
  }

  it.effect("that changes later leaves a video that was admitted before at its price", function* () {
    const { customer, models } = yield* discounted(50)
    const [video] = models.filter(({ surface }) => surface === "video")
    const created = yield* post("/v1/videos")(customer, { model: video?.id, prompt: "A boat at sea" })
    assert.strictEqual(created.status, 202, created.text)
    const { update } = yield* Organizations
    yield* update(customer.org, { discount_percent: 0 })
    const { seconds, charge_usd: _ } = JSON.parse(created.text)
    const perSecond = amountIn(video?.pricing, "per_second_usd")
    const perVideo = amountIn(video?.pricing, "per_video_usd")
    const price = perVideo ?? (perSecond ?? 0n) * BigInt(seconds)
    const sql = yield* SqlClient.SqlClient
    const charges = yield* eventually(
      sql<{ readonly amount: string }>`
        SELECT amount::text FROM ledger_entries WHERE org_id = ${customer.org} AND kind = 'charge'`,
      ({ length }) => length > 0
    )
    assert.deepStrictEqual(
      charges.map(({ amount }) => -BigInt(amount)),
      [price]
    )
  })

  it.effect("leaves rates that `ledger verify` checks, and nothing to complain about", function* () {
    yield* assertRatesStored
  })
})

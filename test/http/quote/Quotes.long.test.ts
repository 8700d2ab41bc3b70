import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { fromUsd } from "../../../src/domain/Money.ts"
import { hasAllCases } from "../../harness/Cases.ts"
import { call, post } from "../../harness/client/HttpCalls.ts"
import * as Random from "../../harness/fixtures/Random.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { type Asked, type Listed, randomRequest } from "./RandomBodies.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const Models = Schema.Struct({
  data: Schema.NonEmptyArray(
    Schema.Struct({
      id: Schema.String,
      surface: Schema.String,
      capabilities: Schema.Array(Schema.String),
      params: Schema.Array(Schema.Struct({ key: Schema.String, options: Schema.optional(Schema.Array(Schema.String)) }))
    })
  )
})
const Quote = Schema.parseJson(
  Schema.Struct({
    object: Schema.Literal("quote"),
    model: Schema.String,
    hold_usd: Schema.Number,
    max_charge_usd: Schema.Number,
    prompt_tokens_bound: Schema.NullOr(Schema.Int),
    max_output_tokens: Schema.NullOr(Schema.Int),
    unit_prices: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
    affordable: Schema.Boolean
  })
)
const decodeQuote = Schema.decodeUnknown(Quote, { onExcessProperty: "error" })

const quotePath = "/v1/quote"
const quote = post(quotePath)
const count = hasAllCases ? 2_000 : 100
const nano = (usd: number) => fromUsd(usd.toFixed(9))

const listed = Effect.fnUntraced(function* (secret: string) {
  const { text } = yield* call("/v1/models", { headers: { authorization: `Bearer ${secret}` } })
  return (yield* Schema.decodeUnknown(Schema.parseJson(Models))(text)).data
})

/** What the ledger was asked to hold, by request. */
const holdsOf = Effect.fnUntraced(function* (org: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly requestId: string; readonly amount: string }>`
    SELECT request_id, held::text AS amount FROM request_log JOIN ledger_entries USING (hold_id)
    WHERE request_log.org_id = ${org} AND held IS NOT NULL
    UNION ALL
    SELECT request_id, amount::text FROM videos JOIN holds ON holds.id = videos.hold_id WHERE videos.org_id = ${org}`
  return new Map(rows.map(({ amount, requestId }) => [requestId, BigInt(amount)]))
})

withLayer(gateway)("POST /quote", (it) => {
  it.effect(
    "quotes what random requests are held, and the errors of those that are refused",
    function* () {
      const customer = yield* Served.customer({ rpm: 100_000, nanoUsd: 10_000_000_000_000n })
      const models = yield* listed(customer.secret)
      const random = Random.make("quotes")
      const chats = models.filter(({ surface }) => surface === "chat")
      const some = (index: number): Listed => {
        const from = index % 10 < 8 ? chats : models
        return from[random.integer(0, from.length - 1)] ?? models[0]
      }
      const asked = Array.from({ length: count }, (_, index): Asked => randomRequest(random, some(index)))
      const quoted = new Map<string, bigint | undefined>()
      yield* Effect.forEach(
        asked,
        ({ body, endpoint }, index) =>
          Effect.gen(function* () {
            const id = `q-${index}`
            const told = yield* quote(customer, { endpoint, body })
            const answer = yield* post(endpoint)(customer, body, { headers: { "x-request-id": id } })
            const { text } = answer
            if (told.status !== 200) {
              assert.strictEqual(answer.status, told.status, `${endpoint} ${told.text} ${text}`)
              if (endpoint === "/v1/messages") return
              assert.deepStrictEqual(JSON.parse(told.text), JSON.parse(text))
              return
            }
            const { affordable, hold_usd, max_charge_usd } = yield* decodeQuote(told.text)
            assert.oneOf(answer.status, [200, 202], `${endpoint} ${text}`)
            assert.isTrue(affordable)
            assert.isAtMost(Number(answer.headers.get("x-gateway-charge-usd") ?? 0), max_charge_usd)
            quoted.set(id, nano(hold_usd))
          }),
        { concurrency: 16, discard: true }
      )
      assert.isAbove(quoted.size, count * 0.9)
      assert.deepStrictEqual(yield* holdsOf(customer.org), new Map(quoted))
    },
    300_000
  )

  it.effect("holds nothing, logs nothing, and takes one request of the key's rate", function* () {
    const customer = yield* Served.customer({ rpm: 10 })
    const [model] = yield* listed(customer.secret)
    const body = { model: model.id, messages: [{ role: "user", content: "hi" }] }
    const { headers, status, text } = yield* quote(customer, { endpoint: "/v1/chat/completions", body })
    assert.strictEqual(status, 200, text)
    assert.strictEqual(headers.get("x-ratelimit-remaining"), "9")
    assert.isNull(headers.get("x-gateway-charge-usd"))
    const sql = yield* SqlClient.SqlClient
    assert.lengthOf(yield* sql`SELECT FROM request_log WHERE org_id = ${customer.org}`, 0)
    assert.strictEqual(yield* customer.spent, 0n)
  })

  it.effect("says whether the hold would be placed now", function* () {
    const poor = yield* Served.customer({ nanoUsd: 1n })
    const capped = yield* Served.customer({ cap: { amount: 1n, period: "day" } })
    const [model] = yield* listed(poor.secret)
    const body = { model: model.id, messages: [{ role: "user", content: "hi" }], max_tokens: 5 }
    const request = { endpoint: "/v1/chat/completions", body }
    const isAffordable = (customer: Served.Customer) =>
      Effect.flatMap(quote(customer, request), ({ text }) => Effect.map(decodeQuote(text), (one) => one.affordable))
    assert.isFalse(yield* isAffordable(poor))
    assert.isTrue(yield* isAffordable(capped))
    const { status } = yield* post(request.endpoint)(capped, body)
    assert.strictEqual(status, 200)
    assert.isFalse(yield* isAffordable(capped))
  })

  it.effect("refuses other endpoints, bodies that are none, and what the key may not use", function* () {
    const customer = yield* Served.customer({ scopes: ["images"] })
    const paths =
      "/v1/chat/completions, /v1/messages, /v1/responses, /v1/images/generations, /v1/images/edits, /v1/videos"
    const refusals: ReadonlyArray<readonly [request: unknown, status: number, message: string]> = [
      [[], 400, "The body must be a JSON object."],
      [{ body: {} }, 400, `\`endpoint\` must be one of ${paths}.`],
      [{ endpoint: "/v1/credits", body: {} }, 400, `\`endpoint\` must be one of ${paths}.`],
      [{ endpoint: "/v1/videos", body: "x" }, 400, "`body` must be an object: the JSON body of the request."],
      [{ endpoint: "/v1/videos", body: {} }, 403, "API key lacks scope: videos"],
      [{ endpoint: "/v1/images/edits", body: {} }, 400, "`model` is required."]
    ]
    for (const [request, status, message] of refusals) {
      const answer = yield* quote(customer, request)
      const { error } = JSON.parse(answer.text)
      assert.deepStrictEqual([answer.status, error.message], [status, message])
    }
  })
})

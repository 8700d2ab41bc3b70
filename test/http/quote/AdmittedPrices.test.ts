/** A request keeps the prices of its arrival, whatever an operator changes while it runs. */

import { writeFile } from "node:fs/promises"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { Instances } from "../../../src/services/instance/RunningGateway.ts"
import { operator } from "../../harness/client/Account.ts"
import { chat, post, postTo, soon, talk } from "../../harness/client/HttpCalls.ts"
import { assertRatesStored, eventually } from "../../harness/database/Money.ts"
import { freshUrl } from "../../harness/database/Postgres.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { earlyTakeover } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { directoryWith } from "../../harness/temporary.ts"
import { type HeldCall, hold, json, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  catalogOver,
  chunk,
  completion,
  credentials,
  ending,
  onFirst,
  onSecond,
  prices,
  Upstreams,
  layer as upstreams,
  usual,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"

const models = [
  {
    id: "talk",
    surface: "chat",
    family: "A",
    context_length: 100_000,
    max_output: 8_000,
    pricing: prices,
    routes: [onFirst, onSecond]
  },
  {
    id: "picture",
    surface: "image",
    pricing: { per_image_usd: 0.04 },
    routes: [{ provider: "drawer", model: "vendor/picture" }]
  },
  {
    id: "film",
    surface: "video",
    pricing: { per_second_usd: 0.1 },
    seconds: { allowed: [4], default: 4 },
    routes: [{ provider: "drawer", model: "vendor/film" }]
  }
]

/** Starts gateways over one database, and changes the markup of the catalog that they share. */
class Deployment extends Context.Tag("test/PricedDeployment")<
  Deployment,
  {
    readonly start: Effect.Effect<{ readonly url: string; readonly stop: Effect.Effect<void> }>
    /** Without a reload. */
    readonly writeMarkup: (markup: unknown) => Effect.Effect<void>
  }
>() {}

const timings = { ...earlyTakeover, readControlsEvery: Duration.millis(200) }

const deployment = Layer.unwrapScoped(
  Effect.gen(function* () {
    const { first, second } = yield* Upstreams
    const database = yield* freshUrl
    const directory = yield* directoryWith({})
    const file = path.join(directory, "catalog.yaml")
    const drawer = { drawer: { adapter: "sandbox" } }
    const catalog = JSON.parse(catalogOver("openai-chat", { first, second }, drawer, models))
    const writeMarkup = (markup: unknown) =>
      Effect.promise(() => writeFile(file, JSON.stringify({ ...catalog, markup })))
    yield* writeMarkup(0)
    const env = { DATABASE_URL: database, DATA_DIR: directory, CATALOG_FILE: file, ...credentials }
    const start = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { url } = yield* Effect.orDie(Scope.extend(Served.serveHere(env, { timings }), scope))
      return { url, stop: Scope.close(scope, Exit.void) }
    })
    const running = yield* Effect.acquireRelease(start, ({ stop }) => stop)
    return Layer.mergeAll(
      Layer.succeed(Deployment, { start, writeMarkup }),
      Layer.succeed(Served.ServedGateway, { url: running.url }),
      operator
    ).pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(database), { maxConnections: 2 })))
  })
).pipe(Layer.provideMerge(upstreams))

const discountOf = Effect.fnUntraced(function* (org: string, percent: number) {
  const { update } = yield* Organizations
  yield* update(org, { discount_percent: percent })
})

/** Reloads on all instances and waits for them. */
const setMarkup = Effect.fnUntraced(function* (markup: unknown) {
  const { list, requestReload } = yield* Instances
  yield* (yield* Deployment).writeMarkup(markup)
  const generation = yield* requestReload
  const all = yield* eventually(list, (all) =>
    all.every((one) => one.state !== "running" || one.generation === generation)
  )
  assert.deepStrictEqual(
    all.filter(({ state }) => state === "running").map(({ problem }) => problem),
    all.filter(({ state }) => state === "running").map(() => null)
  )
})

const charges = Effect.fnUntraced(function* (org: string, count: number) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* eventually(
    sql<{ readonly amount: string }>`
      SELECT (-amount)::text AS amount FROM ledger_entries WHERE org_id = ${org} AND kind = 'charge' ORDER BY amount`,
    ({ length }) => length === count
  )
  return rows.map(({ amount }) => BigInt(amount))
})

/** What a chat costs by now. */
const quoted = Effect.fnUntraced(function* (customer: Served.Customer) {
  const { text } = yield* post("/v1/quote")(customer, { endpoint: "/v1/chat/completions", body: talk("talk") })
  return JSON.parse(text).unit_prices.prompt_per_1m_usd
})
const priced = (customer: Served.Customer, usd: number) => eventually(quoted(customer), (price) => price === usd)

const film = { model: "film", prompt: "a fox" }

withLayer(deployment)("a request under way", (it) => {
  it.effect("keeps its markup and discount, in chats, streams and videos, through reloads", function* () {
    const { first } = yield* Upstreams
    yield* setMarkup(100)
    const customer = yield* Served.customer()
    yield* discountOf(customer.org, 25)
    // Twice the price, less a quarter.
    yield* priced(customer, 1.5)

    const streamed = yield* hold(first.script, (gate) =>
      sse(chunk({ content: "a" }), gate, chunk({ content: "b" }), ending)
    )
    const streaming = yield* Effect.fork(chat(customer, { ...talk("talk"), stream: true }))
    yield* soon(Effect.suspend(() => (first.calls.length >= 1 ? Effect.void : Effect.fail("not called yet"))))
    const whole: HeldCall = yield* hold(first.script, (gate) =>
      steps({ type: "application/json" }, gate, JSON.stringify(completion("fine", usual)))
    )
    const waiting = yield* Effect.fork(chat(customer, talk("talk")))
    yield* soon(Effect.suspend(() => (first.calls.length >= 2 ? Effect.void : Effect.fail("not called yet"))))
    const filmed = yield* post("/v1/videos")(customer, film)
    assert.strictEqual(filmed.status, 202, filmed.text)

    yield* setMarkup(900)
    yield* discountOf(customer.org, -100)
    yield* priced(customer, 20)
    yield* streamed.release
    yield* whole.release
    assert.include((yield* Fiber.join(streaming)).text, "[DONE]")
    const answer = yield* Fiber.join(waiting)
    assert.strictEqual(answer.headers.get("x-gateway-charge-usd"), "0.00003")
    const before = (usualCharge * 3n) / 2n
    assert.deepStrictEqual(yield* charges(customer.org, 3), [before, before, 600_000_000n])

    yield* first.script(answers())
    assert.strictEqual((yield* chat(customer, talk("talk"))).headers.get("x-gateway-charge-usd"), "0.0004")
    yield* setMarkup(0)
  })

  it.effect("fails over to another provider at the price of the model, which is the one listed", function* () {
    const { first, second } = yield* Upstreams
    yield* setMarkup({ providers: { first: 50, second: 900 } })
    const customer = yield* Served.customer()
    yield* priced(customer, 1.5)
    yield* first.script(json(500, { error: { message: "broken" } }))
    yield* second.script(answers())
    const answer = yield* chat(customer, talk("talk"))
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(answer.headers.get("x-gateway-charge-usd"), "0.00003")
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    assert.strictEqual(row.route, "talk@second")
    yield* setMarkup(0)
  })

  it.effect("is replayed free of charge, and repeated idempotently at the price of its first arrival", function* () {
    const customer = yield* Served.customer()
    yield* discountOf(customer.org, 50)
    yield* priced(customer, 0.5)
    const headers = { "idempotency-key": "one" }
    const picture = { model: "picture", prompt: "a fox" }
    const drawn = yield* post("/v1/images/generations")(customer, picture, { headers })
    assert.strictEqual(drawn.headers.get("x-gateway-charge-usd"), "0.02")
    const filmed = yield* post("/v1/videos")(customer, film, { headers: { "idempotency-key": "two" } })
    yield* discountOf(customer.org, 0)
    yield* priced(customer, 1)
    const again = yield* post("/v1/images/generations")(customer, picture, { headers })
    assert.strictEqual(again.headers.get("x-gateway-charge-usd"), "0")
    const filmedAgain = yield* post("/v1/videos")(customer, film, { headers: { "idempotency-key": "two" } })
    assert.strictEqual(JSON.parse(filmedAgain.text).id, JSON.parse(filmed.text).id)
    assert.deepStrictEqual(yield* charges(customer.org, 2), [20_000_000n, 200_000_000n])
  })

  it.effect("keeps its price if another process finishes it after the prices have changed", function* () {
    const { start, writeMarkup } = yield* Deployment
    yield* setMarkup(100)
    const customer = yield* Served.customer()
    yield* discountOf(customer.org, 25)
    const brief = yield* start
    const filmed = yield* postTo(`${brief.url}/v1/videos`, customer, film)
    assert.strictEqual(filmed.status, 202, filmed.text)
    yield* brief.stop
    yield* writeMarkup(500)
    yield* discountOf(customer.org, -50)
    const next = yield* start
    assert.deepStrictEqual(yield* charges(customer.org, 1), [600_000_000n])
    const quote = yield* postTo(`${next.url}/v1/quote`, customer, { endpoint: "/v1/videos", body: film })
    assert.strictEqual(JSON.parse(quote.text).hold_usd, 3.6)
    yield* next.stop
    yield* setMarkup(0)
  })

  it.effect("has a hold that fits the balance at its own discount", function* () {
    const { first } = yield* Upstreams
    const body = { ...talk("talk"), max_tokens: 8_000 }
    const measuring = yield* Served.customer()
    const quote = yield* post("/v1/quote")(measuring, { endpoint: "/v1/chat/completions", body })
    const full = BigInt(Math.round(JSON.parse(quote.text).hold_usd * 1e9))

    // Half of the balance that a full hold needs is enough at half the price.
    const half = yield* Served.customer({ nanoUsd: full / 2n })
    yield* discountOf(half.org, 50)
    yield* priced(half, 0.5)
    yield* first.script(answers())
    const answer = yield* chat(half, body)
    assert.strictEqual(answer.status, 200, answer.text)
    assert.deepStrictEqual((yield* Served.logged(answer.headers.get("x-request-id"))).notes, [])

    const reduced = yield* Served.customer({ nanoUsd: full / 2n, canReduceHold: true })
    yield* discountOf(reduced.org, 25)
    yield* priced(reduced, 0.75)
    yield* first.script(answers())
    const lowered = yield* chat(reduced, body)
    assert.strictEqual(lowered.status, 200, lowered.text)
    const row = yield* Served.logged(lowered.headers.get("x-request-id"))
    assert.include(row.notes, "cap_lowered")
    const sql = yield* SqlClient.SqlClient
    const [entry] = yield* sql<{ readonly held: string }>`
      SELECT held::text FROM ledger_entries WHERE hold_id = ${row.holdId ?? ""} AND kind = 'charge'`
    const held = BigInt(entry?.held ?? 0)
    const { text } = yield* post("/v1/quote")(reduced, { endpoint: "/v1/chat/completions", body })
    const prompt = BigInt(JSON.parse(text).prompt_tokens_bound) * 750n
    assert.isTrue(held > prompt && held <= full / 2n, `${held} of ${full / 2n}`)
    assert.strictEqual((held - prompt) % 1_500n, 0n)
  })

  it.effect("that is free needs no balance and reaches no cap", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer({ nanoUsd: 1n, cap: { amount: 1n, period: "day" } })
    yield* discountOf(customer.org, 100)
    yield* priced(customer, 0)
    yield* first.script(answers(), answers())
    for (const _ of [1, 2]) {
      const answer = yield* chat(customer, talk("talk"))
      assert.strictEqual(answer.status, 200, answer.text)
      assert.strictEqual(answer.headers.get("x-gateway-charge-usd"), "0")
    }
    assert.strictEqual(yield* customer.spentInTheEnd, 0n)
    assert.deepStrictEqual(yield* charges(customer.org, 2), [0n, 0n])
  })

  it.effect(
    "leaves its rates in the database, also those of catalogs and discounts that were replaced at once",
    function* () {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer({ rpm: 100_000 })
      for (const percent of [11, 12, 13, 14]) {
        yield* discountOf(customer.org, percent)
        yield* priced(customer, (100 - percent) / 100)
        yield* first.script(answers())
        yield* chat(customer, talk("talk"))
        yield* setMarkup(percent)
        yield* first.script(answers())
        yield* chat(customer, talk("talk"))
        yield* setMarkup(0)
      }
      yield* assertRatesStored
    }
  )

  it.effect("leaves its rates in the database if its gateway stops at once", function* () {
    const { first } = yield* Upstreams
    const { start } = yield* Deployment
    const sql = yield* SqlClient.SqlClient
    const customer = yield* Served.customer()
    const brief = yield* start
    yield* discountOf(customer.org, 31)
    yield* eventually(
      Effect.map(
        postTo(`${brief.url}/v1/quote`, customer, { endpoint: "/v1/chat/completions", body: talk("talk") }),
        ({ text }) => JSON.parse(text).unit_prices.prompt_per_1m_usd
      ),
      (price) => price === 0.69
    )
    yield* first.script(answers())
    const answer = yield* postTo(`${brief.url}/v1/chat/completions`, customer, talk("talk"))
    assert.strictEqual(answer.headers.get("x-gateway-charge-usd"), "0.0000138")
    yield* brief.stop
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    assert.strictEqual((yield* sql`SELECT FROM price_lists WHERE id = ${row.priceId}`).length, 1)
  })
})

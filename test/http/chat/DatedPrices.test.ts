import { SqlClient } from "@effect/sql"
import { Clock, Effect, Fiber, Layer } from "effect"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { bearer, call, chat, post, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { hold, sse } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  catalogOver,
  chunk,
  credentials,
  ending,
  layer,
  onFirst,
  prices,
  Upstreams,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"

const moment = Math.floor(Date.now() / 1000) * 1000 + 60_000
const at = new Date(moment).toISOString().replace(".000", "")

/** Stands still where it is put. */
let now = moment - 1
const real = Clock.make()
const clock: Clock.Clock = {
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  unsafeCurrentTimeMillis: () => now,
  currentTimeMillis: Effect.sync(() => now),
  unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos(),
  currentTimeNanos: real.currentTimeNanos,
  sleep: (duration) => real.sleep(duration)
}

const models = [
  {
    id: "talk",
    surface: "chat",
    family: "A",
    context_length: 100_000,
    max_output: 1_000,
    pricing: prices,
    pricing_from: [{ at, prompt_per_1m_usd: 2, completion_per_1m_usd: 4 }],
    routes: [{ ...onFirst, cost: prices, cost_from: [{ at, prompt_per_1m_usd: 3, completion_per_1m_usd: 6 }] }]
  },
  {
    id: "picture",
    surface: "image",
    pricing: { per_image_usd: 0.04 },
    pricing_from: [{ at, per_image_usd: 0.05 }],
    routes: [{ provider: "drawer", model: "vendor/picture" }]
  },
  {
    id: "film",
    surface: "video",
    pricing: { per_second_usd: 0.1 },
    pricing_from: [{ at, per_second_usd: 0.2 }],
    seconds: { allowed: [4], default: 4 },
    routes: [{ provider: "drawer", model: "vendor/film" }]
  }
]

const served = Served.layer(
  Effect.map(Upstreams, (upstreams) => ({
    catalog: catalogOver("openai-chat", upstreams, { drawer: { adapter: "sandbox" } }, models),
    env: credentials,
    clock
  }))
)

const draw = post("/v1/images/generations")
const film = post("/v1/videos")

withLayer(Layer.provideMerge(served, layer))("a price that changes at a moment", (it) => {
  it.effect("is charged to whoever came from then on, however long those before it take", function* () {
    const { first } = yield* Upstreams
    const { funds, ...customer } = yield* Served.customer()
    const sql = yield* SqlClient.SqlClient
    now = moment - 1

    const held = yield* hold(first.script, (gate) =>
      sse(chunk({ content: "a" }), gate, chunk({ content: "b" }), ending)
    )
    const streaming = yield* Effect.fork(chat(customer, { ...talk("talk"), stream: true }))
    yield* soon(Effect.suspend(() => (first.calls.length === 1 ? Effect.void : Effect.fail("not asked yet"))))
    const filmed = yield* film(customer, { model: "film", prompt: "a fox" })
    assert.strictEqual(filmed.status, 202, filmed.text)
    const drawn = yield* draw(customer, { model: "picture", prompt: "a fox" })
    assert.strictEqual(drawn.status, 200, drawn.text)

    now = moment
    yield* held.release
    assert.include((yield* Fiber.join(streaming)).text, "[DONE]")
    yield* first.script(answers())
    assert.strictEqual((yield* chat(customer, talk("talk"))).status, 200)
    yield* draw(customer, { model: "picture", prompt: "an owl" })
    yield* film(customer, { model: "film", prompt: "an owl" })
    yield* funds

    const charges = yield* sql`
      SELECT log.surface, log.charge::text, log.cost::text, list.rates -> 'tiers' -> 0 ->> 'prompt' AS prompt
      FROM request_log AS log LEFT JOIN price_lists AS list ON list.id = log.price_id
      WHERE surface <> 'video' ORDER BY surface, at`
    assert.deepStrictEqual(
      charges.map((row) => ({ ...row })),
      [
        { surface: "chat", charge: String(usualCharge), cost: String(usualCharge), prompt: "1000000000" },
        { surface: "chat", charge: String(2n * usualCharge), cost: String(3n * usualCharge), prompt: "2000000000" },
        { surface: "image", charge: "40000000", cost: null, prompt: null },
        { surface: "image", charge: "50000000", cost: null, prompt: null }
      ]
    )
    const clips = yield* sql`SELECT price::text FROM videos ORDER BY price`
    assert.deepStrictEqual(
      clips.map(({ price }) => price),
      ["400000000", "800000000"]
    )
  })

  it.effect("is listed before it applies, without a reload", function* () {
    const { secret } = yield* Served.customer()
    const listed = Effect.map(call("/v1/models", { headers: bearer(secret) }), ({ text }) => JSON.parse(text).data[0])
    now = moment - 1
    const before = yield* listed
    now = moment
    const after = yield* listed
    assert.deepStrictEqual(before.next_pricing, { at: moment / 1000, ...after.pricing })
    assert.strictEqual(before.pricing.prompt_per_1m_usd, 1)
    assert.strictEqual(after.pricing.prompt_per_1m_usd, 2)
    assert.notProperty(after, "next_pricing")
  })

  it.effect("is what the ledger proves a charge by", function* () {
    const sql = yield* SqlClient.SqlClient
    const invariant = invariants(sql).find(({ name }) => name.startsWith("a chat's charge"))
    if (invariant === undefined) return assert.fail("there is none")
    assert.deepStrictEqual(yield* invariant.check, [])
    yield* sql`UPDATE request_log SET price_id = (SELECT max(price_id) FROM request_log) WHERE surface = 'chat'`
    const violations = yield* invariant.check
    assert.strictEqual(violations.length, 1)
    assert.notEqual(String(violations[0]?.["by_rates"]), String(violations[0]?.["charge"]))
  })
})

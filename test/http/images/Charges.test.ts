import { Deferred, Effect } from "effect"
import { NanoUsd, toUsdText } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { assertRefused, call, chat, rateOf, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import { imageOf } from "../../harness/client/MediaClient.ts"
import { draw, edit, gateway, keyed, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, painted, painting, paints } from "../../harness/upstream/Replies.ts"
import { answers, hidden, onFirst, Upstreams, usualCharge } from "../../harness/upstream/Upstreams.ts"

const variants = [
  { resolution: "1K", price_usd: 0.04 },
  { resolution: "2K", price_usd: 0.06 },
  { resolution: "4K", price_usd: 0.123456789 }
]
const costs = [
  { resolution: "1K", price_usd: 0.03 },
  { resolution: "4K", price_usd: 0.1 }
]
const shapedCosts = [
  { resolution: "1K", sizes: ["1024x1024"], price_usd: 0.03 },
  { resolution: "1K", sizes: ["1536x1024", "1024x1536"], price_usd: 0.045 }
]
const served = gateway({
  plain: {},
  sized: { variants, routes: [{ ...onFirst, edit_model: hidden.model, cost: { variants: costs } }] },
  large: { variants: variants.slice(1) },
  shaped: {
    variants: [
      { resolution: "1K", sizes: ["1024x1024"], price_usd: 0.04 },
      { resolution: "1K", sizes: ["1536x1024", "1024x1536"], price_usd: 0.05 }
    ],
    routes: [{ ...onFirst, cost: { variants: shapedCosts } }]
  },
  free: { price: 0 },
  referring: {
    routes: [{ ...onFirst, edit_model: hidden.model, cost: { per_image_usd: 0.03, image_input_per_1m_usd: 8 } }]
  },
  stating: {
    variants,
    routes: [{ ...onFirst, options: { stated_cost: "usage.cost_in_usd_ticks" }, cost: { variants: costs } }]
  }
})

const image = painting.toString("base64")

const charged: ReadonlyArray<readonly [what: string, body: object, charge: bigint, cost: bigint | null]> = [
  ["a model with one price", asked("plain"), 40_000_000n, null],
  ["the first variant where none is named", asked("sized"), 40_000_000n, 30_000_000n],
  ["the named variant", asked("sized", { resolution: "2k" }), 60_000_000n, null],
  ["the first variant of a model without 1K", asked("large"), 60_000_000n, null],
  ["4K", asked("sized", { resolution: "4K" }), 123_456_789n, 100_000_000n],
  ["the quality hd, which is 4K", asked("sized", { quality: "hd" }), 123_456_789n, 100_000_000n],
  ["a resolution beside the quality hd", asked("sized", { quality: "hd", resolution: "1K" }), 40_000_000n, 30_000_000n],
  ["a quality without effect", asked("sized", { quality: "low", size: "1024x1024" }), 40_000_000n, 30_000_000n],
  ["the first size where none is named", asked("shaped"), 40_000_000n, 30_000_000n],
  ["the named size", asked("shaped", { size: "1024x1536" }), 50_000_000n, 45_000_000n],
  ["the size of an aspect ratio", asked("shaped", { image, aspect_ratio: "3:2" }), 50_000_000n, 45_000_000n],
  ["an edit", asked("sized", { image, resolution: "4K" }), 123_456_789n, 100_000_000n],
  ["bytes", asked("plain", { response_format: "b64_json" }), 40_000_000n, null],
  ["a free model", asked("free"), 0n, null]
]

withLayer(served)("the charge of an image", (it) => {
  it.effect.each(charged)("is held and settled exactly for %s", function* ([, body, charge, cost]) {
    const { first } = yield* Upstreams
    const { funds, ...customer } = yield* Served.customer()
    const { balance } = yield* funds
    const gate = yield* Deferred.make<void>()
    const calls = first.calls.length
    yield* first.script(steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(painted())))
    const look = soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1))).pipe(
      Effect.zipRight(funds),
      Effect.zipLeft(Deferred.succeed(gate, undefined))
    )
    const [answer, meanwhile] = yield* Effect.all([draw(customer, body), look], { concurrency: "unbounded" })
    imageOf(answer)
    assert.deepStrictEqual(meanwhile, { balance, held: charge, available: balance - charge })
    // No polling: the charge was there before the answer's last byte.
    assert.deepStrictEqual(yield* funds, { balance: balance - charge, held: 0n, available: balance - charge })
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    const counts = { images: 1, seconds: null, promptTokens: null }
    assert.deepInclude(row, { charge: NanoUsd(charge), cost: cost === null ? null : NanoUsd(cost), ...counts })
  })

  it.effect("is flat, and the provider's cost is more by what reference images took", function* () {
    const { first } = yield* Upstreams
    for (const [image_tokens, more] of [
      [0, 0n],
      [323, 323n * 8_000n],
      [2_584, 2_584n * 8_000n],
      ["many", 0n]
    ] as const) {
      yield* first.script(
        json(200, { ...painted(), usage: { input_tokens: 9, input_tokens_details: { image_tokens } } })
      )
      const customer = yield* Served.customer()
      const answer = yield* draw(customer, asked("referring"))
      const row = yield* Served.logged(answer.headers.get("x-request-id"))
      assert.deepInclude(row, { charge: NanoUsd(usualPrice), cost: NanoUsd(30_000_000n + more) })
      assert.strictEqual(yield* customer.spent, usualPrice)
    }
  })

  it.effect("is not what the provider states as its cost, which is kept beside it", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    const counted = Effect.map(call("/metrics"), ({ text }) =>
      ["stated", "compared"].map((kind) =>
        Number(new RegExp(`gateway_${kind}_cost_nano_usd_total\\{route="stating@first"\\} (\\d+)`).exec(text)?.[1] ?? 0)
      )
    )
    const [stated = 0, compared = 0] = yield* counted
    for (const [ticks, statedCost, notes] of [
      [200_000_000, NanoUsd(20_000_000n), []],
      ["0.02", null, ["stated_cost_dropped"]]
    ] as const) {
      yield* first.script(json(200, { ...painted(), usage: { cost_in_usd_ticks: ticks } }))
      const answer = yield* draw(customer, asked("stating"))
      imageOf(answer)
      assert.notMatch(answer.text, /cost|ticks/)
      const row = yield* Served.logged(answer.headers.get("x-request-id"))
      assert.deepInclude(row, { charge: NanoUsd(usualPrice), cost: NanoUsd(30_000_000n), statedCost, notes })
    }
    assert.deepStrictEqual(yield* counted, [stated + 20_000_000, compared + 30_000_000])
  })

  it.effect("never takes a balance below zero in many requests at once", function* () {
    const { first } = yield* Upstreams
    const { funds, ...customer } = yield* Served.customer({ nanoUsd: 3n * usualPrice + 1n })
    yield* first.script(paints(), paints(), paints())
    const tried = yield* Effect.all(
      Array.from({ length: 20 }, () => draw(customer, asked("plain"))),
      { concurrency: "unbounded" }
    )
    for (const answer of tried) {
      if (answer.status === 200) continue
      assertRefused(answer, refusals.insufficient)
      assert.include(answer.text, ` needs up to ${toUsdText(usualPrice)} USD; `)
    }
    assert.lengthOf(
      tried.filter(({ status }) => status === 200),
      3
    )
    assert.deepStrictEqual(yield* funds, { balance: 1n, held: 0n, available: 1n })
  })

  it.effect("is refused on an empty balance even for a free model", function* () {
    yield* (yield* Upstreams).first.script(paints())
    assertRefused(yield* draw(yield* Served.customer({ nanoUsd: 0n }), asked("free")), refusals.shortOf(0n, 0n))
    imageOf(yield* draw(yield* Served.customer({ nanoUsd: 1n }), asked("free")))
  })

  it.effect.each(["day", "week", "month", "total"] as const)(
    "is refused over a key's cap for a %s that chats and images share",
    function* (period) {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer({ cap: { amount: usualPrice + usualCharge, period } })
      yield* first.script(answers(), paints(), paints())
      assert.strictEqual((yield* chat(customer, { ...talk("talk"), max_tokens: 10 })).status, 200)
      imageOf(yield* draw(customer, asked("plain")))
      assertRefused(yield* draw(customer, asked("plain")), refusals.capped(period))
      assertRefused(yield* edit(customer, asked("plain", { image })), refusals.capped(period))
      assert.strictEqual(yield* customer.spent, usualPrice + usualCharge)
      yield* draw(yield* Served.customer(), asked("plain"))
    }
  )

  it.effect("comes with one unit of the rate that images, edits, replays and chats share", function* () {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer({ rpm: 5 })
    yield* first.script(paints(), answers(), json(500, {}))
    const taken = [
      yield* draw(customer, asked("plain"), keyed("k")),
      yield* draw(customer, asked("plain"), keyed("k")),
      yield* chat(customer, talk("talk")),
      yield* edit(customer, asked("plain", { image })),
      yield* edit(customer, asked("plain"))
    ]
    assert.deepStrictEqual(
      taken.map((answer) => [answer.status, rateOf(answer)?.remaining]),
      [
        [200, 4],
        [200, 3],
        [200, 2],
        [502, 1],
        [400, 0]
      ]
    )
    const over = yield* draw(customer, asked("plain"), keyed("k"))
    assertRefused(over, refusals.limited)
    assert.deepStrictEqual(rateOf(over), { limit: 5, remaining: 0 })
    assert.strictEqual(yield* spent, usualPrice + usualCharge)
  })

  it.effect("leaves a ledger that verifies", function* () {
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
  })
})

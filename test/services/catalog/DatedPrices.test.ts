import { Effect } from "effect"
import { modelAt } from "../../../src/domain/Model.ts"
import { futureLossesOf, lossText } from "../../../src/services/admin/CatalogRecord.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { findExpiredDates, priceIdOf } from "../../../src/services/catalog/PriceLists.ts"
import { chat, edited, keys, lineOf, load, problemsOf, small } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const at = Date.parse("2026-12-01T00:00Z")
const later = Date.parse("2027-01-01T00:00Z")

const dated = small
  .replace(
    "    reasoning: [low, medium, high]\n",
    `    pricing_from:
      - {at: "2026-12-01T01:00+01:00", prompt_per_1m_usd: 2, completion_per_1m_usd: 8}
      - {at: 2027-01-01T00:00Z, prompt_per_1m_usd: 1, completion_per_1m_usd: 4}
    reasoning: [low, medium, high]
`
  )
  .replace(
    "    edit: true\n",
    `    pricing_from:
      - {at: 2026-12-01T00:00Z, variants: [{resolution: 1K, price_usd: 0.05}, {resolution: 4K, price_usd: 0.2}]}
    edit: true
`
  )
  .replace(
    "    seconds: {allowed",
    `    pricing_from: [{at: 2026-12-01T00:00:00Z, per_video_usd: 1}]
    seconds: {allowed`
  )
  .replace(
    'seconds_as: "8s"}',
    'seconds_as: "8s", cost: {per_second_usd: 0.05}, cost_from: [{at: 2027-01-01T00:00Z, per_second_usd: 0.3}]}'
  )

/** In nano-USD; a cost is that of the clip. */
const pricesAt = (when: number) =>
  Effect.map(load({ environment: keys, text: dated }), ({ findAt }) => {
    const [talk, draw, film] = ["talk", "draw", "film"].map((id) => findAt(id, when))
    if (draw?.surface !== "image" || film?.surface !== "video") return assert.fail("the models are not sold")
    const prices: ReadonlyArray<bigint> = [
      chat(talk).pricing.prompt,
      ...draw.variants.map(({ price }) => price),
      film.pricing.price
    ]
    const cost: bigint | undefined = film.routes[0]?.cost?.price
    const unit: string = film.pricing.per
    return { prices, unit, cost }
  })

describe("a dated price", () => {
  it.effect("applies from its moment on, and not a millisecond before", function* () {
    const first = {
      prices: [1_500_000_000n, 40_000_000n, 120_000_000n, 100_000_000n],
      unit: "second",
      cost: 50_000_000n
    }
    const second = {
      prices: [2_000_000_000n, 50_000_000n, 200_000_000n, 1_000_000_000n],
      unit: "video",
      cost: 50_000_000n
    }
    assert.deepEqual(yield* pricesAt(0), first)
    assert.deepEqual(yield* pricesAt(at - 1), first)
    assert.deepEqual(yield* pricesAt(at), second)
    assert.deepEqual(yield* pricesAt(later - 1), second)
    const last = yield* pricesAt(later)
    assert.deepEqual([last.prices[0], last.cost], [1_000_000_000n, 300_000_000n])
  })

  it.effect("applies in the sandbox too, and leaves the routes what they are", function* () {
    const { findAt, findId } = yield* load({ sandbox: true, text: dated })
    const routes = findAt("talk", at)?.routes.map(({ id }) => id)
    assert.deepStrictEqual(
      routes,
      findId("talk")?.routes.map(({ id }) => id)
    )
    assert.deepStrictEqual(routes, ["talk@sandbox", "talk@sandbox-b"])
  })

  it.effect("is listed as the next one until it applies", function* () {
    const { findAt } = yield* load({ environment: keys, text: dated })
    const listedAt = (id: string, when: number) => {
      const model = findAt(id, when)
      return model === undefined ? assert.fail(id) : listModel(model)
    }
    const before = listedAt("talk", at - 1)
    const { next_pricing: none, pricing } = listedAt("talk", at)
    assert.deepStrictEqual(before.next_pricing, { at: at / 1000, ...pricing })
    assert.strictEqual(none?.at, later / 1000)
    assert.notProperty(listedAt("talk", later), "next_pricing")
    // A date that changes a cost alone is none of the customer's.
    assert.notProperty(listedAt("film", at), "next_pricing")
    assert.deepInclude(listedAt("film", 0).next_pricing, { at: at / 1000, per_video_usd: 1 })
    assert.deepInclude(listedAt("draw", 0).next_pricing, { at: at / 1000, per_image_usd: 0.05 })
  })

  it.effect("of a model without dates costs nothing: the model is the same", function* () {
    const { changes, findAt, findId } = yield* load({ environment: keys })
    assert.strictEqual(findAt("talk", at), findId("talk"))
    assert.deepStrictEqual(changes, [])
  })

  it.effect("below a later cost is reported with its date", function* () {
    const { saleStates: offers } = yield* load({ environment: keys, text: dated })
    assert.include(
      futureLossesOf(offers).map(lossText).join("\n"),
      "from 2027-01-01T00:00:00.000Z on, film@clips: the price of 8 s clip"
    )
  })

  it("has a hint once every date has passed", () => {
    const entry = { id: "talk", pricing_from: [{ at }, { at: later }], routes: [{ cost_from: [{ at }] }] }
    assert.strictEqual(findExpiredDates(entry, at).length, 1)
    assert.include(findExpiredDates(entry, later).join("\n"), "talk: every date of pricing_from has passed")
    assert.deepStrictEqual(findExpiredDates(entry, at - 1), [])
  })
})

describe("an invalid dated price", () => {
  const mistakes = [
    ["at: 2027-01-01T00:00Z, prompt", "at: 2026-12-01T00:00Z, prompt", "[0].pricing_from[1].at", "must be later than"],
    ["at: 2027-01-01T00:00Z, prompt", "at: 2027-01-01T00:00, prompt", "[0].pricing_from[1].at", "with its zone"],
    ["at: 2027-01-01T00:00Z, prompt", "at: 2027-02-30T00:00Z, prompt", "[0].pricing_from[1].at", "with its zone"],
    ["prompt_per_1m_usd: 1, completion", "completion", "[0].pricing_from[1].prompt_per_1m_usd", "is missing"],
    ["{resolution: 4K, price_usd: 0.2}", "{resolution: 2K, price_usd: 0.2}", "[1].pricing_from[0]", "1K, 4K"],
    ["per_video_usd: 1}", "per_video_usd: 1, per_second_usd: 1}", "[2].pricing_from[0]", "exactly one of"],
    ["Z, per_second_usd: 0.3}", "Z}", "[2].routes[0].cost_from[0]", "exactly one of"]
  ] as const
  it.effect.each(mistakes)("is refused at its line: %s", function* ([from, to, key, message]) {
    assert.include(dated, from)
    const text = dated.replace(from, to)
    const problems = yield* problemsOf(text)
    const found = problems.find((problem) => problem.includes(`models${key}: `) && problem.includes(message))
    assert.isDefined(found, problems.join("\n"))
    assert.strictEqual(problems.length, 1, problems.join("\n"))
    if (key.includes("pricing_from[1]"))
      assert.include(found ?? "", `catalog.yaml:${lineOf(text, "pricing_from:") + 2}:`)
  })
})

describe("the id of rates", () => {
  it.effect("is the same for the same rates however they are written, and another for others", function* () {
    const idOf = (text: string, when = 0) =>
      Effect.map(load({ environment: keys, text }), ({ findAt }) => priceIdOf(chat(findAt("talk", when)).pricing))
    const own = yield* idOf(small)
    assert.strictEqual(
      yield* idOf(edited("cached_prompt_per_1m_usd: 0.003625", "cached_prompt_per_1m_usd: 0.0036250")),
      own
    )
    assert.strictEqual(yield* idOf(dated, at - 1), own)
    assert.notStrictEqual(yield* idOf(dated, at), own)
    assert.notStrictEqual(yield* idOf(edited("completion_per_1m_usd: 7.50", "completion_per_1m_usd: 7.51")), own)
    assert.match(own, /^-?\d{1,19}$/)
  })

  it.effect("follows a model to its next prices", function* () {
    const { findId } = yield* load({ environment: keys, text: dated })
    const model = findId("talk")
    if (model === undefined) return assert.fail("talk is not sold")
    assert.strictEqual(modelAt(modelAt(model, at), later), modelAt(model, later))
  })
})

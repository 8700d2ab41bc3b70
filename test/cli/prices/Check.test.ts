import { check } from "../../../src/cli/prices/Check.ts"
import { builtIn, edited, options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("check", () => {
  it.effect("says what is callable, what is off and why", function* () {
    const { losses, models } = yield* check(options({ environment: { SECOND_KEY: "k" } }))
    assert.deepStrictEqual(losses, [])
    const [talk, draw] = models
    assert.deepInclude(talk, { id: "talk", callable: true, reason: null })
    assert.deepStrictEqual(
      talk?.routes.map(({ blocked }) => blocked),
      ["FIRST_KEY is not set", "FIRST_KEY is not set", null]
    )
    assert.deepInclude(draw, { callable: false, reason: "set CLIPS_KEY" })
  })

  it.effect("finds every price below its cost, callable or not", function* () {
    const text = edited(
      "weight: 3,",
      "weight: 3, cost: {prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7, long_context: {above: 100000, prompt_per_1m_usd: 3, completion_per_1m_usd: 7}},"
    )
      .replace("edit_model: v/draw/edit", "edit_model: v/draw/edit, cost: {per_image_usd: 0.05}")
      .replace('seconds_as: "8s"', "cost: {per_video_usd: 0.5}")
    const { losses, models } = yield* check(options({ text }))
    const below = "is below what the provider charges"
    assert.deepStrictEqual(losses, [
      `talk@first#2: the price of cached prompt per 1M ${below}`,
      `talk@first#2: the price of cached prompt per 1M above 200000 ${below}`,
      `talk@first#2: the price of prompt per 1M above 100000 ${below}`,
      `talk@first#2: the price of cached prompt per 1M above 100000 ${below}`,
      `talk@first#2: the price of cache write per 1M above 100000 ${below}`,
      `draw@clips: the price of 1K image ${below}`,
      `film@clips: the price of 4 s clip ${below}`
    ])
    const [talk] = models
    assert.deepStrictEqual(
      talk?.routes[1]?.margins.find(({ unit }) => unit === "completion per 1M"),
      {
        unit: "completion per 1M",
        price_usd: 7_500_000_000n,
        cost_usd: 7_000_000_000n,
        margin_usd: 500_000_000n,
        margin_pct: 6.6
      }
    )
  })

  it.effect("warns about each price that looks like a price per token or per search", function* () {
    const text = edited("prompt_per_1m_usd: 1.5\n", "prompt_per_1m_usd: 0.0000015\n      web_search_per_1k_usd: 0.01\n")
      .replace("completion_per_1m_usd: 9}", "completion_per_1m_usd: 0.000009}")
      .replace("weight: 3,", "weight: 3, cost: {prompt_per_1m_usd: 0.000001, completion_per_1m_usd: 0},")
    const looks = (given: string, one: string, all: string, meant: string) =>
      `is ${given}, which looks like a price per ${one}. Per ${all} it would be ${meant}`
    const { unitPrices, warnings } = yield* check(options({ text }))
    assert.deepStrictEqual(warnings, unitPrices)
    assert.sameMembers(
      [...unitPrices],
      [
        `talk: pricing.prompt_per_1m_usd ${looks("0.0000015", "token", "million", "1.5")}`,
        `talk: pricing.web_search_per_1k_usd ${looks("0.01", "search", "thousand", "10")}`,
        `talk: pricing.official.completion_per_1m_usd ${looks("0.000009", "token", "million", "9")}`,
        `talk: routes[1].cost.prompt_per_1m_usd ${looks("0.000001", "token", "million", "1")}`
      ]
    )
  })

  it.effect(
    "shows the markup and the margins at a discount, and warns about the losses that the discount adds",
    function* () {
      const text = `markup: {default: 5, models: {"t*": 100}}
markup_from: [{at: 1969-01-01T00:00Z, markup: {models: {"t*": 50}}}, {at: 1969-06-01T00:00+02:00, markup: 10}]
${edited('seconds_as: "8s"', "cost: {per_second_usd: 0.09}")}`
      const plain = yield* check(options({ text }))
      assert.deepStrictEqual(
        plain.models.map(({ markup_pct }) => markup_pct),
        [10, 10, 10]
      )
      const marginOf = ({ models }: typeof plain) => models[2]?.routes[0]?.margins.map(({ margin_pct }) => margin_pct)
      assert.deepStrictEqual(marginOf(plain), [18.1, 18.1, 18.1])
      const hint = "every date of markup_from has passed: replace markup with the last one"
      assert.deepStrictEqual([plain.losses, plain.warnings], [[], [hint]])
      const discounted = yield* check(options({ text }), { discount: 20 })
      assert.deepStrictEqual(marginOf(discounted), [-2.2, -2.2, -2.2])
      assert.deepStrictEqual(discounted.losses, [])
      assert.deepStrictEqual(discounted.warnings, [
        hint,
        ...[4, 6, 8].map(
          (seconds) =>
            `at a discount of 20 %, film@clips: the price of ${seconds} s clip is below what the provider charges`
        )
      ])
      const raised = yield* check(options({ text }), { discount: -50 })
      assert.deepStrictEqual([raised.losses, raised.warnings], [[], [hint]])
    }
  )

  it.effect("warns about no price of the built-in catalog", function* () {
    const { unitPrices } = yield* check(options({ text: builtIn }))
    assert.deepStrictEqual(unitPrices, [])
  })
})

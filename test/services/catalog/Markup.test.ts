import { Effect } from "effect"
import { modelAt } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { changePrice } from "../../../src/domain/Pricing.ts"
import { discountLossesOf, lossText, summarizeLosses } from "../../../src/services/admin/CatalogRecord.ts"
import { chat, keys, load, problemsOf, small } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const withMarkup = (markup: string) => `${markup}\n${small}`

/** A problem without its file and line. */
const withoutPlace = (problem: string) => problem.replace(/^[^:]*:\d+: /, "")

/** The prices of the three models of `small`, and the cost of the first. */
const pricesOf = (text: string, at = 0) =>
  Effect.map(load({ environment: keys, text }), ({ findAt }) => {
    const [talk, draw, film] = ["talk", "draw", "film"].map((id) => findAt(id, at))
    if (draw?.surface !== "image" || film?.surface !== "video") return assert.fail("the models are not sold")
    return {
      chat: chat(talk).pricing,
      image: draw.variants.map(({ price }) => price),
      video: film.pricing.price,
      cost: chat(talk).routes[0]?.cost
    }
  })

describe("a discount", () => {
  it.effect("below the cost of a route is reported, unless its list price is below too", function* () {
    const text = small.replace('seconds_as: "8s"}', 'seconds_as: "8s", cost: {per_second_usd: 0.05}}')
    const { saleStates } = yield* load({ environment: keys, text })
    assert.deepStrictEqual(discountLossesOf(saleStates, [10, 50, -20]), [])
    assert.deepStrictEqual(
      discountLossesOf(saleStates, [10, 60]).map(lossText),
      [4, 6, 8].map(
        (seconds) =>
          `at a discount of 60 %, film@clips: the price of ${seconds} s clip is below what the provider charges`
      )
    )
    assert.deepStrictEqual(summarizeLosses(discountLossesOf(saleStates, [60, 55])), [
      "at a discount of 60 %, film@clips: the prices of 4 s clip, 6 s clip and 8 s clip are below what the provider charges",
      "at a discount of 55 %, film@clips: the prices of 4 s clip, 6 s clip and 8 s clip are below what the provider charges"
    ])
    const cheap = yield* load({
      environment: keys,
      text: text.replace("per_second_usd: 0.1}", "per_second_usd: 0.01}")
    })
    assert.deepStrictEqual(discountLossesOf(cheap.saleStates, [60]), [])
  })
})

describe("a markup", () => {
  it.effect("raises every price of every surface, and no cost", function* () {
    const plain = yield* pricesOf(small)
    const marked = yield* pricesOf(withMarkup("markup: 20"))
    assert.strictEqual(marked.chat.prompt * 10n, plain.chat.prompt * 12n)
    assert.strictEqual(marked.chat.completion * 10n, plain.chat.completion * 12n)
    assert.deepStrictEqual(
      marked.image.map((price) => price * 10n),
      plain.image.map((price) => price * 12n)
    )
    assert.strictEqual(marked.video * 10n, plain.video * 12n)
    assert.deepStrictEqual(marked.cost, plain.cost)
  })

  it.effect("of a model wins over that of its first provider, and that over the default", function* () {
    const plain = yield* pricesOf(small)
    const text = withMarkup(`markup:
  default: 10
  providers: {first: 30}
  models: {film: 50, "fi*": 75}`)
    const marked = yield* pricesOf(text)
    assert.strictEqual(marked.chat.prompt * 10n, plain.chat.prompt * 13n)
    assert.strictEqual(marked.video * 10n, plain.video * 15n)
    assert.deepStrictEqual(
      marked.image.map((price) => price * 10n),
      plain.image.map((price) => price * 11n)
    )
  })

  it.effect("of a longer pattern wins over that of a shorter one", function* () {
    const plain = yield* pricesOf(small)
    const marked = yield* pricesOf(withMarkup(`markup: {models: {"t*": 50, "ta*": 100}}`))
    assert.strictEqual(marked.chat.prompt, NanoUsd(plain.chat.prompt * 2n))
  })

  it.effect("changes at its date, for requests that arrive from then on", function* () {
    const plain = yield* pricesOf(small)
    const at = Date.parse("2027-01-01T00:00Z")
    const text = withMarkup("markup: 100\nmarkup_from: [{at: 2027-01-01T00:00Z, markup: {models: {talk: 200}}}]")
    const before = yield* pricesOf(text, at - 1)
    const after = yield* pricesOf(text, at)
    assert.strictEqual(before.chat.prompt, NanoUsd(plain.chat.prompt * 2n))
    assert.strictEqual(after.chat.prompt, NanoUsd(plain.chat.prompt * 3n))
    assert.strictEqual(after.video, plain.video)
    const { changes, findId } = yield* load({ environment: keys, text })
    assert.deepStrictEqual(changes, [at])
    const talk = findId("talk")
    assert.strictEqual(talk && chat(modelAt(talk, at)).pricing.prompt, after.chat.prompt)
  })

  it("is rounded half up to whole nano-USD", () => {
    assert.strictEqual(changePrice(NanoUsd(5n), 10), 6n)
    assert.strictEqual(changePrice(NanoUsd(4n), 10), 4n)
    assert.strictEqual(changePrice(NanoUsd(1_000n), 12.34), 1_123n)
    assert.strictEqual(changePrice(NanoUsd(7n), -100), 0n)
    assert.strictEqual(changePrice(NanoUsd(7n), 1000), 77n)
  })

  const percentage =
    "must be a percentage from -100 to 1000 with at most two decimals, such as 20, or a mapping with default, providers and models"
  for (const [markup, key, message] of [
    ["markup: -101", "markup", percentage],
    ["markup: 1000.5", "markup", percentage],
    ["markup: 0.125", "markup", percentage],
    ["markup: 1e-7", "markup", percentage],
    ["markup: 33.333333", "markup", percentage],
    ["markup: .nan", "markup", percentage],
    ["markup: .inf", "markup", percentage],
    ["markup: 1e300", "markup", percentage],
    ['markup: "20"', "markup", percentage],
    ["markup: [20]", "markup", percentage],
    ["markup: twenty", "markup", percentage],
    ["markup: {default: 2000}", "markup", percentage],
    ["markup: {model: {talk: 20}}", "markup", percentage],
    ['markup: {models: {"claude-*": 20}}', "markup.models.claude-*", "matches no model of this catalog"],
    [
      "markup_from: [{at: 2027-01-01T00:00Z, markup: 1}, {at: 2026-01-01T00:00Z, markup: 2}]",
      "markup_from[1].at",
      "must be later than the one above it"
    ]
  ] as const) {
    it.effect(`is refused: ${markup}`, function* () {
      const problems = yield* problemsOf(withMarkup(markup))
      assert.deepStrictEqual(problems.map(withoutPlace), [`${key}: ${message}`])
    })
  }

  it.effect("is accepted with two decimals and in both notations, and dates in any time zone", function* () {
    const plain = yield* pricesOf(small)
    for (const [percent, factor] of [
      ["12.34", 11_234n],
      ["1e2", 20_000n],
      ["-100", 0n],
      ["1000", 110_000n],
      ["-0.01", 9_999n]
    ] as const) {
      const { chat } = yield* pricesOf(withMarkup(`markup: ${percent}`))
      assert.strictEqual(chat.prompt * 10_000n, plain.chat.prompt * factor, percent)
    }
    const text = withMarkup("markup_from: [{at: 2027-01-01T00:00+02:00, markup: 100}]")
    const at = Date.parse("2026-12-31T22:00Z")
    assert.strictEqual((yield* pricesOf(text, at - 1)).chat.prompt, plain.chat.prompt)
    assert.strictEqual((yield* pricesOf(text, at)).chat.prompt, NanoUsd(plain.chat.prompt * 2n))
  })

  it.effect("of a provider that is named like a method of objects applies", function* () {
    const plain = yield* pricesOf(small)
    const text = withMarkup("markup: {default: 10, providers: {second: 5}, models: {draw: 1}}").replaceAll(
      "first",
      "constructor"
    )
    const marked = yield* pricesOf(text)
    assert.strictEqual(marked.chat.prompt * 10n, plain.chat.prompt * 11n)
  })

  it.effect("of a model is not called unmatched because the model is malformed", function* () {
    const text = withMarkup('markup: {models: {talk: 5, "fil*": 5, nothing: 5}}')
    const malformed = text
      .replace("context_length: 1000000", "context_length: many")
      .replace("  - id: film\n    surface: video", "  - id: film\n    surface: 7")
    const problems = (yield* problemsOf(malformed)).map(withoutPlace)
    assert.deepStrictEqual(
      problems.filter((problem) => problem.startsWith("markup")),
      ["markup.models.nothing: matches no model of this catalog"]
    )
    assert.isAbove(problems.length, 2)
    const nameless = (yield* problemsOf(text.replace("  - id: film\n", "  - \n"))).map(withoutPlace)
    assert.deepStrictEqual(nameless, ["models[2].id: is missing"])
  })

  it.effect("of an unknown provider is refused", function* () {
    const problems = yield* problemsOf(withMarkup("markup: {providers: {nobody: 5}}"))
    assert.deepStrictEqual(problems.map(withoutPlace), [
      "markup.providers.nobody: unknown provider nobody; known: first, second, clips; use one of them, or add it to providers"
    ])
  })
})

import { FastCheck as fc } from "effect"
import type { Usage } from "../../src/domain/Chat.ts"
import type { ChatPricing } from "../../src/domain/Model.ts"
import * as Pricing from "../../src/domain/Pricing.ts"
import { runs } from "../harness/Cases.ts"
import { assert, describe, it } from "../harness/It.ts"
import { agents, bound, chatModel, flat, request, tiered, usd, user } from "./PricedChats.ts"

const usage = (over: Partial<Usage>): Usage => ({ ...Pricing.noUsage, ...over })
/** The same price by rationals: numerator over 1e6, then the ceiling. */
const oracle = (pricing: ChatPricing, of: Usage): bigint => {
  const long = pricing.longContext !== undefined && of.prompt > pricing.longContext.above
  const tier = long && pricing.longContext !== undefined ? pricing.longContext : pricing
  const cachedPrice = (long ? pricing.longContext?.cachedPrompt : undefined) ?? pricing.cachedPrompt ?? tier.prompt
  const writePrice = (long ? pricing.longContext?.cacheWrite : undefined) ?? pricing.cacheWrite ?? tier.prompt
  const hourPrice = (long ? pricing.longContext?.cacheWriteHour : undefined) ?? pricing.cacheWriteHour ?? writePrice
  const forHour = BigInt(of.cacheWriteHour ?? 0)
  const plain = BigInt(of.prompt) - BigInt(of.cached) - BigInt(of.cacheWrite)
  const numerator =
    plain * tier.prompt +
    BigInt(of.cached) * cachedPrice +
    (BigInt(of.cacheWrite) - forHour) * writePrice +
    forHour * hourPrice +
    BigInt(of.webSearches ?? 0) * (pricing.webSearch ?? 0n) * 1000n +
    BigInt(of.completion) * tier.completion
  return numerator / 1_000_000n + (numerator % 1_000_000n === 0n ? 0n : 1n)
}

const price = fc.bigInt({ min: 0n, max: 75_000_000_000n }).map(usd)
const optionalPrice = fc.option(price, { nil: undefined })
const anyPricing: fc.Arbitrary<ChatPricing> = fc.record({
  prompt: price,
  completion: price,
  cachedPrompt: optionalPrice,
  cacheWrite: optionalPrice,
  cacheWriteHour: optionalPrice,
  webSearch: optionalPrice,
  longContext: fc.option(
    fc.record({
      above: fc.integer({ min: 1, max: 400_000 }),
      prompt: price,
      completion: price,
      cachedPrompt: optionalPrice,
      cacheWrite: optionalPrice,
      cacheWriteHour: optionalPrice
    }),
    { nil: undefined }
  )
})

/** Sound counts, biased towards small numbers, with the parts inside their wholes. */
const anyUsage = (most: number): fc.Arbitrary<Usage> =>
  fc
    .tuple(
      fc.nat({ max: most }),
      fc.nat({ max: 100_000 }),
      fc.nat({ max: 100 }),
      fc.nat({ max: 100 }),
      fc.nat({ max: 100 }),
      fc.nat({ max: 12 })
    )
    .map(([prompt, completion, a, b, c, webSearches]) => {
      const cached = Math.floor((prompt * a) / 100)
      const cacheWrite = Math.floor(((prompt - cached) * b) / 100)
      const cacheWriteHour = Math.floor((cacheWrite * c) / 100)
      return { prompt, completion, cached, cacheWrite, cacheWriteHour, reasoning: 0, webSearches }
    })

const chatHold = (...asked: Parameters<typeof Pricing.quoteChat>) => Pricing.quoteChat(...asked).upTo

describe("chatHold", () => {
  it("is the bound at the maximum input price plus the cap at the maximum output price", () => {
    const messages = [user("x".repeat(1000))]
    const tokens = BigInt(bound(messages))
    const hold = chatHold(chatModel(), request(messages, { maxTokens: 4096 }))
    assert.strictEqual(hold, tokens * 1500n + 4096n * 7500n)
    const written = chatHold(chatModel({ pricing: tiered }), request(messages, { maxTokens: 4096 }))
    assert.strictEqual(written, tokens * 1875n + 4096n * 7500n)
    const kept = chatHold(chatModel({ pricing: agents }), request(messages, { maxTokens: 4096 }))
    assert.strictEqual(kept, tokens * 3000n + 4096n * 7500n)
  })

  it("covers the most searches of a request that asks for them, and none of another", () => {
    const messages = [user("x")]
    const model = chatModel({ pricing: agents, maxWebSearches: 7 })
    const plain = chatHold(model, request(messages))
    const searching = chatHold(model, request(messages, { webSearch: true }))
    assert.strictEqual(searching - plain, 7n * 10_000_000n + 10_000n * 3000n)
  })

  it("takes the long-context tier when the bound may reach it", () => {
    const messages = [user("x".repeat(250_000))]
    const tokens = BigInt(bound(messages))
    const hold = chatHold(chatModel({ pricing: tiered }), request(messages))
    assert.strictEqual(hold, tokens * 3000n + 100n * 11_250n)
  })

  it("clamps the output cap to the model's", () => {
    const asked = chatHold(chatModel({ maxOutput: 50 }), request([user("x")], { maxTokens: 1_000_000 }))
    assert.strictEqual(asked, chatHold(chatModel(), request([user("x")], { maxTokens: 50 })))
  })

  it("covers an agent's cap up to the model's own", () => {
    const native = { dialect: "messages", body: {}, headers: {}, extraTokens: 0 } as const
    const model = chatModel({ maxOutput: 50, ownMaxOutput: 80 })
    const asked = chatHold(model, request([user("x")], { maxTokens: 1_000_000, native }))
    assert.strictEqual(asked, chatHold(chatModel(), request([user("x")], { maxTokens: 80 })))
  })

  it("is never less than the charge of any usage within its bounds", () => {
    const text = fc.oneof(
      fc.fullUnicodeString({ maxLength: 40 }),
      fc.nat({ max: 500_000 }).map((n) => "z".repeat(n))
    )
    fc.assert(
      fc.property(anyPricing, text, fc.nat({ max: 9000 }), anyUsage(1_000_000), (pricing, content, maxTokens, of) => {
        const model = chatModel({ pricing })
        const webSearch = content.length % 2 === 0
        const asked = request([user(content)], { maxTokens, webSearch, ...(webSearch && { maxWebSearches: 10 }) })
        const limit = Pricing.promptBound(model, asked)
        const prompt = of.prompt % (limit + 1)
        const spent = Pricing.capUsage(Pricing.sanitizeUsage({ ...of, prompt }), asked)
        assert.isTrue(Pricing.chatCharge(pricing, spent) <= chatHold(model, asked))
        const most = { ...spent, prompt: limit, completion: maxTokens }
        assert.isTrue(Pricing.chatCharge(pricing, most) <= chatHold(model, asked))
      }),
      { numRuns: runs(300) }
    )
  })
})

describe("chatCharge", () => {
  it("charges each kind of token at its price", () => {
    const charge = Pricing.chatCharge(tiered, usage({ prompt: 1000, cached: 600, cacheWrite: 100, completion: 10 }))
    assert.strictEqual(charge, 300n * 1500n + 600n * 150n + 100n * 1875n + 10n * 7500n)
  })

  it("charges what is kept for an hour and each search at its price", () => {
    const of = usage({ prompt: 1000, cached: 600, cacheWrite: 100, cacheWriteHour: 40, completion: 10, webSearches: 3 })
    const tokens = 300n * 1500n + 600n * 150n + 60n * 1875n + 40n * 3000n + 10n * 7500n
    assert.strictEqual(Pricing.chatCharge(agents, of), tokens + 3n * 10_000_000n)
    const long = { above: 500, prompt: usd(3_000_000_000), completion: usd(1), cacheWriteHour: usd(6_000_000_000) }
    const above = Pricing.chatCharge({ ...agents, longContext: long }, usage({ ...of, completion: 0, webSearches: 0 }))
    assert.strictEqual(above, 300n * 3000n + 600n * 150n + 60n * 1875n + 40n * 6000n)
  })

  it("charges what is kept for an hour as any other write where it has no price, and searches not at all", () => {
    const of = usage({ prompt: 100, cacheWrite: 100, cacheWriteHour: 100, webSearches: 9 })
    assert.strictEqual(Pricing.chatCharge(tiered, of), 100n * 1875n)
    assert.strictEqual(Pricing.chatCharge(flat, of), 100n * 1500n)
  })

  it("charges no searches above those that the hold covers", () => {
    const of = usage({ prompt: 10, webSearches: 12 })
    const asked = request([user("x")], { webSearch: true, maxWebSearches: 5 })
    assert.strictEqual(Pricing.capUsage(of, asked).webSearches, 5)
    assert.strictEqual(Pricing.capUsage(of, request([user("x")])).webSearches, 0)
    assert.deepStrictEqual(Pricing.capUsage(usage({ prompt: 10 }), asked), usage({ prompt: 10 }))
  })

  it("believes no count above the context and the cap together, nor a thousand searches and more", () => {
    const model = chatModel({ contextLength: 1_000 })
    const asked = request([user("x")], { maxTokens: 50 })
    const most = usage({ prompt: 1_050, completion: 1_050, cached: 1_050, reasoning: 1_050, webSearches: 1_000 })
    assert.deepStrictEqual(Pricing.boundUsage(most, model, asked), { usage: most, isBounded: false })
    for (const absurd of [1_051, 1e300, Infinity]) {
      const of = { ...most, prompt: absurd, completion: absurd, cached: absurd, reasoning: absurd, webSearches: absurd }
      assert.deepStrictEqual(Pricing.boundUsage(of, model, asked), { usage: most, isBounded: true })
    }
  })

  it("picks the tier of the whole request, only above the mark", () => {
    const at = Pricing.chatCharge(tiered, usage({ prompt: 200_000, completion: 10 }))
    assert.strictEqual(at, 200_000n * 1500n + 10n * 7500n)
    const above = Pricing.chatCharge(tiered, usage({ prompt: 200_001, completion: 10 }))
    assert.strictEqual(above, 200_001n * 3000n + 10n * 11_250n)
  })

  it("keeps the base cached price in the long tier unless that has its own", () => {
    const of = usage({ prompt: 300_000, cached: 300_000 })
    assert.strictEqual(Pricing.chatCharge(tiered, of), 300_000n * 150n)
    const long = { above: 200_000, prompt: usd(3_000_000_000), completion: usd(1), cachedPrompt: usd(300_000_000) }
    assert.strictEqual(Pricing.chatCharge({ ...tiered, longContext: long }, of), 300_000n * 300n)
  })

  it("charges cached tokens as prompt if there is no cached price", () => {
    const uncached = { ...flat, cachedPrompt: undefined }
    assert.strictEqual(Pricing.chatCharge(uncached, usage({ prompt: 10, cached: 10 })), 15_000n)
  })

  it("rounds up once, at the total", () => {
    const tiny: ChatPricing = { ...flat, prompt: usd(1), completion: usd(1), cachedPrompt: usd(1) }
    assert.strictEqual(Pricing.chatCharge(tiny, usage({ prompt: 2, cached: 1, completion: 1 })), 1n)
    assert.strictEqual(Pricing.chatCharge(tiny, usage({ prompt: 500_000, completion: 500_000 })), 1n)
    assert.strictEqual(Pricing.chatCharge(tiny, usage({ prompt: 500_001, completion: 500_000 })), 2n)
    assert.strictEqual(Pricing.chatCharge(tiny, Pricing.noUsage), 0n)
  })

  it("is exact", () => {
    fc.assert(
      fc.property(anyPricing, anyUsage(2_000_000), (pricing, of) => {
        assert.strictEqual(Pricing.chatCharge(pricing, of), oracle(pricing, of))
      }),
      { numRuns: runs(1000) }
    )
  })

  it("grows with prompt and completion if the long tier is more expensive", () => {
    fc.assert(
      fc.property(anyUsage(400_000), fc.nat({ max: 1000 }), fc.nat({ max: 1000 }), (of, prompt, completion) => {
        const more = { ...of, prompt: of.prompt + prompt, completion: of.completion + completion }
        assert.isTrue(Pricing.chatCharge(tiered, of) <= Pricing.chatCharge(tiered, more))
      }),
      { numRuns: runs(300) }
    )
  })

  it("survives whatever a provider reports", () => {
    const hostile = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, 1e300))
    const reports = fc.record({
      prompt: hostile,
      completion: hostile,
      cached: hostile,
      cacheWrite: hostile,
      cacheWriteHour: hostile,
      reasoning: hostile,
      webSearches: hostile
    })
    fc.assert(
      fc.property(reports, (of) => {
        const clean = Pricing.sanitizeUsage(of)
        for (const tokens of Object.values(clean)) {
          assert.isTrue(Number.isSafeInteger(tokens) && tokens >= 0, `${tokens}`)
        }
        assert.isAtMost(clean.cached + clean.cacheWrite, clean.prompt)
        assert.isAtMost(clean.cacheWriteHour ?? 0, clean.cacheWrite)
        assert.isAtMost(clean.reasoning, clean.completion)
        assert.isTrue(Pricing.chatCharge(tiered, of) >= 0n)
        assert.deepStrictEqual(Pricing.sanitizeUsage(clean), clean)
      })
    )
  })

  it("reads broken counts as the customer would want, fractions as a whole token", () => {
    const broken = { prompt: 10.2, completion: -5, cached: 99, cacheWrite: 3, reasoning: Number.NaN }
    const clean = { prompt: 11, completion: 0, cached: 11, cacheWrite: 0, reasoning: 0 }
    assert.deepStrictEqual(Pricing.sanitizeUsage(broken), clean)
  })
})

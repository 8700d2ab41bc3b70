import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import type { ChatRequest, Message, Usage } from "../../src/domain/Chat.ts"
import type { ChatModel, ChatPricing } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import * as Pricing from "../../src/domain/Pricing.ts"

const usd = (nano: number | bigint) => NanoUsd(BigInt(nano))

const flat: ChatPricing = {
  prompt: usd(1_500_000_000),
  completion: usd(7_500_000_000),
  cachedPrompt: usd(150_000_000),
  cacheWrite: undefined,
  longContext: undefined
}

const tiered: ChatPricing = {
  ...flat,
  cacheWrite: usd(1_875_000_000),
  longContext: { above: 200_000, prompt: usd(3_000_000_000), completion: usd(11_250_000_000) }
}

const chatModel = (over: Partial<ChatModel> = {}): ChatModel => ({
  id: "m",
  surface: "chat",
  created: 0,
  routes: [],
  family: "A",
  contextLength: 1_048_576,
  maxOutput: 65_536,
  maxOutputPolicy: "clamp",
  sampling: true,
  reasoning: "none",
  capabilities: new Set(["tools", "vision", "web_search"]),
  pricing: flat,
  official: undefined,
  imageTokens: 2500,
  webSearchTokens: 10_000,
  ...over
})

const request = (messages: ReadonlyArray<Message>, over: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "m",
  messages,
  stream: false,
  includeUsage: false,
  maxTokens: 100,
  stop: [],
  tools: [],
  webSearch: false,
  ...over
})

const usage = (over: Partial<Usage>): Usage => ({ ...Pricing.noUsage, ...over })
const bound = (messages: ReadonlyArray<Message>, over: Partial<ChatRequest> = {}) =>
  Pricing.promptBound(chatModel(), request(messages, over))
const user = (content: string): Message => ({ role: "user", content })

/** The same price by rationals: numerator over 1e6, then the ceiling. */
const oracle = (pricing: ChatPricing, of: Usage): bigint => {
  const long = pricing.longContext !== undefined && of.prompt > pricing.longContext.above
  const tier = long && pricing.longContext !== undefined ? pricing.longContext : pricing
  const cachedPrice = (long ? pricing.longContext?.cachedPrompt : undefined) ?? pricing.cachedPrompt ?? tier.prompt
  const writePrice = (long ? pricing.longContext?.cacheWrite : undefined) ?? pricing.cacheWrite ?? tier.prompt
  const plain = BigInt(of.prompt) - BigInt(of.cached) - BigInt(of.cacheWrite)
  const numerator =
    plain * tier.prompt +
    BigInt(of.cached) * cachedPrice +
    BigInt(of.cacheWrite) * writePrice +
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
  longContext: fc.option(
    fc.record({
      above: fc.integer({ min: 1, max: 400_000 }),
      prompt: price,
      completion: price,
      cachedPrompt: optionalPrice,
      cacheWrite: optionalPrice
    }),
    { nil: undefined }
  )
})

/** Sound counts, biased towards small numbers, with the parts inside their wholes. */
const anyUsage = (most: number): fc.Arbitrary<Usage> =>
  fc
    .tuple(fc.nat({ max: most }), fc.nat({ max: 100_000 }), fc.nat({ max: 100 }), fc.nat({ max: 100 }))
    .map(([prompt, completion, a, b]) => {
      const cached = Math.floor((prompt * a) / 100)
      return { prompt, completion, cached, cacheWrite: Math.floor(((prompt - cached) * b) / 100), reasoning: 0 }
    })

describe("utf8Bytes", () => {
  it("agrees with the platform's encoder", () => {
    const encoder = new TextEncoder()
    const texts = fc.oneof(fc.string(), fc.fullUnicodeString(), fc.string16bits())
    fc.assert(
      fc.property(texts, (text) => {
        assert.strictEqual(Pricing.utf8Bytes(text), encoder.encode(text).length)
      })
    )
    assert.strictEqual(Pricing.utf8Bytes("aé漢😀\ud800"), 1 + 2 + 3 + 4 + 3)
  })

  it("stops soon after the limit", () => {
    const bytes = Pricing.utf8Bytes("漢".repeat(1_000_000), 10)
    assert.isAbove(bytes, 10)
    assert.isAtMost(bytes, 13)
  })
})

describe("promptBound", () => {
  it("counts bytes of text, not characters", () => {
    assert.strictEqual(bound([user("漢漢")]) - bound([user("")]), 6)
  })

  it("counts every text that becomes prompt", () => {
    const empty = bound([{ role: "assistant", content: null }])
    const full = bound([
      {
        role: "assistant",
        content: [{ type: "text", text: "abc" }],
        name: "de",
        reasoning_content: "fghi",
        tool_calls: [{ id: "call1", type: "function", function: { name: "sum", arguments: "{}" } }]
      }
    ])
    assert.strictEqual(full - empty, 3 + 2 + 4 + 5 + 3 + 2)
    const answer = bound([{ role: "tool", content: "42", tool_call_id: "call1" }])
    assert.strictEqual(answer - empty, 2 + 5)
  })

  it("counts tools, schemas and searches", () => {
    const plain = bound([user("x")])
    const tools = [{ type: "function" as const, function: { name: "f", description: "d".repeat(500) } }]
    assert.isAtLeast(bound([user("x")], { tools }) - plain, JSON.stringify(tools).length)
    const schema = { properties: { a: { type: "string", description: "e".repeat(300) } } }
    const responseFormat = { type: "json_schema" as const, json_schema: { name: "s", schema } }
    assert.isAtLeast(bound([user("x")], { responseFormat }) - plain, JSON.stringify(responseFormat).length)
    assert.strictEqual(bound([user("x")], { webSearch: true }) - plain, 10_000)
  })

  it("counts what only a native body holds, up to the context", () => {
    const native = (extraTokens: number) =>
      ({ native: { dialect: "messages", body: {}, headers: {}, extraTokens } }) as const
    assert.strictEqual(bound([user("x")], native(500)) - bound([user("x")]), 500)
    for (const endless of [Number.MAX_SAFE_INTEGER, Infinity]) {
      assert.strictEqual(bound([user("x")], native(endless)), 1_048_576)
    }
  })

  it("counts an image at its worst case whatever its address or bytes weigh", () => {
    const image = (url: string): Message => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] })
    const short = bound([image("https://a.test/b.png")])
    const long = bound([image(`data:image/png;base64,${"A".repeat(500_000)}`)])
    assert.strictEqual(short, long)
    assert.strictEqual(short - bound([{ role: "user", content: [] }]), 2500)
  })

  it("never passes the context", () => {
    assert.strictEqual(bound([user("x".repeat(3_000_000))]), 1_048_576)
    assert.strictEqual(bound(Array.from({ length: 40 }, () => user("y".repeat(50_000)))), 1_048_576)
  })
})

describe("chatHold", () => {
  it("is the bound at the dearest input price plus the cap at the dearest output price", () => {
    const messages = [user("x".repeat(1000))]
    const tokens = BigInt(bound(messages))
    const hold = Pricing.chatHold(chatModel(), request(messages, { maxTokens: 4096 }))
    assert.strictEqual(hold, tokens * 1500n + 4096n * 7500n)
    const written = Pricing.chatHold(chatModel({ pricing: tiered }), request(messages, { maxTokens: 4096 }))
    assert.strictEqual(written, tokens * 1875n + 4096n * 7500n)
  })

  it("takes the long-context tier when the bound may reach it", () => {
    const messages = [user("x".repeat(250_000))]
    const tokens = BigInt(bound(messages))
    const hold = Pricing.chatHold(chatModel({ pricing: tiered }), request(messages))
    assert.strictEqual(hold, tokens * 3000n + 100n * 11_250n)
  })

  it("clamps the output cap to the model's", () => {
    const asked = Pricing.chatHold(chatModel({ maxOutput: 50 }), request([user("x")], { maxTokens: 1_000_000 }))
    assert.strictEqual(asked, Pricing.chatHold(chatModel(), request([user("x")], { maxTokens: 50 })))
  })

  it("covers an agent's cap up to the model's own", () => {
    const native = { dialect: "messages", body: {}, headers: {}, extraTokens: 0 } as const
    const model = chatModel({ maxOutput: 50, ownMaxOutput: 80 })
    const asked = Pricing.chatHold(model, request([user("x")], { maxTokens: 1_000_000, native }))
    assert.strictEqual(asked, Pricing.chatHold(chatModel(), request([user("x")], { maxTokens: 80 })))
  })

  it("is never less than the charge of any usage within its bounds", () => {
    const text = fc.oneof(
      fc.fullUnicodeString({ maxLength: 40 }),
      fc.nat({ max: 500_000 }).map((n) => "z".repeat(n))
    )
    fc.assert(
      fc.property(anyPricing, text, fc.nat({ max: 9000 }), anyUsage(1_000_000), (pricing, content, maxTokens, of) => {
        const model = chatModel({ pricing })
        const asked = request([user(content)], { maxTokens })
        const limit = Pricing.promptBound(model, asked)
        const prompt = of.prompt % (limit + 1)
        const spent = { ...of, prompt, completion: Math.min(of.completion, maxTokens) }
        assert.isTrue(Pricing.chatCharge(pricing, spent) <= Pricing.chatHold(model, asked))
        const most = { ...spent, prompt: limit, completion: maxTokens }
        assert.isTrue(Pricing.chatCharge(pricing, most) <= Pricing.chatHold(model, asked))
      }),
      { numRuns: 300 }
    )
  })
})

describe("chatCharge", () => {
  it("charges each kind of token at its price", () => {
    const charge = Pricing.chatCharge(tiered, usage({ prompt: 1000, cached: 600, cacheWrite: 100, completion: 10 }))
    assert.strictEqual(charge, 300n * 1500n + 600n * 150n + 100n * 1875n + 10n * 7500n)
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

  it("charges cached tokens as prompt where there is no cached price", () => {
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
      { numRuns: 1000 }
    )
  })

  it("grows with prompt and completion where the long tier is the dearer one", () => {
    fc.assert(
      fc.property(anyUsage(400_000), fc.nat({ max: 1000 }), fc.nat({ max: 1000 }), (of, prompt, completion) => {
        const more = { ...of, prompt: of.prompt + prompt, completion: of.completion + completion }
        assert.isTrue(Pricing.chatCharge(tiered, of) <= Pricing.chatCharge(tiered, more))
      }),
      { numRuns: 300 }
    )
  })

  it("survives whatever a provider reports", () => {
    const hostile = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, 1e300))
    const reports = fc.record({
      prompt: hostile,
      completion: hostile,
      cached: hostile,
      cacheWrite: hostile,
      reasoning: hostile
    })
    fc.assert(
      fc.property(reports, (of) => {
        const clean = Pricing.sanitizeUsage(of)
        for (const tokens of Object.values(clean)) {
          assert.isTrue(Number.isSafeInteger(tokens) && tokens >= 0, `${tokens}`)
        }
        assert.isAtMost(clean.cached + clean.cacheWrite, clean.prompt)
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

import { FastCheck as fc } from "effect"
import * as Pricing from "../../src/domain/Pricing.ts"
import { runs } from "../harness/Cases.ts"
import { assert, describe, it } from "../harness/It.ts"

const price: fc.Arbitrary<Pricing.HoldTerms> = fc.record({
  prompt: fc.bigInt({ min: 0n, max: 10n ** 17n }),
  outputToken: fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 11n })),
  cap: fc.oneof(fc.nat(3), fc.nat(128_000)),
  promptTokens: fc.nat(200_000)
})
const budget = fc.oneof(fc.bigInt({ min: 0n, max: 10n }), fc.bigInt({ min: 0n, max: 10n ** 13n }))

describe("the output within a budget", () => {
  it("is the most that its hold covers, to the token", () => {
    fc.assert(
      fc.property(price, budget, (of, amount) => {
        const output = Pricing.maxOutputWithin(of, amount)
        if (output === undefined) return assert.isTrue(Pricing.holdAmount(of, 0) > amount)
        assert.isTrue(Pricing.holdAmount(of, output) <= amount, "the hold is above the budget")
        assert.isAtMost(output, of.cap)
        assert.isTrue(output === of.cap || Pricing.holdAmount(of, output + 1) > amount, "one more token would fit")
      }),
      { numRuns: runs(2000) }
    )
  })

  it("is all that was asked for where the hold fits exactly", () => {
    fc.assert(
      fc.property(price, (of) => {
        assert.strictEqual(Pricing.maxOutputWithin(of, Pricing.holdAmount(of, of.cap)), of.cap)
      })
    )
  })
})

import { FastCheck as fc } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { allocateReversals, fromCents, toCents } from "../../src/domain/Payment.ts"
import { assert, describe, it } from "../harness/It.ts"

const reversal = (id: number, amount: number, at: number) => ({
  id: `re_${id}`,
  amount: NanoUsd(BigInt(amount)),
  createdAt: new Date(at)
})

const reversals = fc
  .array(fc.tuple(fc.nat(20), fc.nat(3)), { maxLength: 6 })
  .map((all) => all.map(([amount, at], index) => reversal(index, amount, at)))

describe("payments", () => {
  it("are in cents at the provider and in nano-USD here", () => {
    assert.strictEqual(fromCents(2550), 25_500_000_000n)
    assert.strictEqual(toCents(fromCents(2550)), 2550)
    assert.isUndefined(toCents(NanoUsd(25_500_000_001n)))
  })

  it("are reversed at most in full, with the same shares in any order", () => {
    const property = fc.property(fc.nat(30), reversals, fc.infiniteStream(fc.nat()), (amount, all, random) => {
      const shares = allocateReversals(NanoUsd(BigInt(amount)), all)
      const sum = [...shares.values()].reduce((total, share) => total + share, 0n)
      const wanted = all.reduce((total, one) => total + one.amount, 0n)
      assert.strictEqual(sum, wanted < BigInt(amount) ? wanted : BigInt(amount))
      const mixed = all
        .map((one) => ({ one, place: random.next().value ?? 0 }))
        .toSorted((a, b) => a.place - b.place)
        .map(({ one }) => one)
      assert.deepStrictEqual(new Map(allocateReversals(NanoUsd(BigInt(amount)), mixed)), new Map(shares))
    })
    fc.assert(property)
  })
})

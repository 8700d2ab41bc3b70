import { FastCheck as fc } from "effect"
import * as Money from "../../src/domain/Money.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("Money", () => {
  it("reads decimals exactly", () => {
    assert.strictEqual(Money.fromUsd("0.15"), 150_000_000n)
    assert.strictEqual(Money.fromUsd("0.1"), 100_000_000n)
    assert.strictEqual(Money.fromUsd("0.003625"), 3_625_000n)
    assert.strictEqual(Money.fromUsd("0.000000001"), 1n)
    assert.strictEqual(Money.fromUsd("10"), 10_000_000_000n)
    assert.strictEqual(Money.fromUsd("-2.50"), -2_500_000_000n)
    assert.strictEqual(Money.fromUsd("1.5000000000000"), 1_500_000_000n)
    assert.strictEqual(Money.fromUsd("9007199254740993.000000001"), 9_007_199_254_740_993_000_000_001n)
  })

  it("refuses what is no plain decimal, and what is finer than a nano-dollar", () => {
    for (const text of [
      "",
      " ",
      ".",
      "1.",
      ".5",
      "1e3",
      "1,5",
      "0x10",
      "1_000",
      "NaN",
      "Infinity",
      "--1",
      "+1",
      "$1"
    ]) {
      assert.strictEqual(Money.fromUsd(text), undefined, JSON.stringify(text))
    }
    assert.strictEqual(Money.fromUsd("0.0000000001"), undefined)
  })

  it("writes no trailing zeros", () => {
    assert.strictEqual(Money.toUsdText(150_000_000n), "0.15")
    assert.strictEqual(Money.toUsdText(0n), "0")
    assert.strictEqual(Money.toUsdText(-1n), "-0.000000001")
    assert.strictEqual(Money.toUsdText(100_000_000_000n), "100")
    assert.strictEqual(Money.toUsdPerToken(1_750_000_000n), "0.00000175")
    assert.strictEqual(Money.toUsdPerToken(1n), "0.000000000000001")
    assert.strictEqual(Money.toUsd(299_999_999n), 0.299999999)
  })

  it("reads back every amount it writes", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (amount) => {
        assert.strictEqual(Money.fromUsd(Money.toUsdText(amount)), amount)
      })
    )
  })

  it("max is never below zero", () => {
    assert.strictEqual(Money.max(Money.NanoUsd(3n), Money.NanoUsd(7n), Money.NanoUsd(5n)), 7n)
    assert.strictEqual(Money.max(), 0n)
    assert.strictEqual(Money.max(Money.NanoUsd(-4n)), 0n)
  })
})

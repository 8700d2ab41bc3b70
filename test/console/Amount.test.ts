import {
  discountUsd,
  formatCount,
  formatShare,
  formatShort,
  formatUsd,
  partsOfUsd
} from "../../src/console/format/Amount.ts"
import { NanoUsd, toUsd } from "../../src/domain/Money.ts"
import { changePrice } from "../../src/domain/Pricing.ts"
import * as Random from "../harness/fixtures/Random.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("an amount", () => {
  it("shows at least cents, and thousands in groups", () => {
    assert.strictEqual(formatUsd(0), "$0.00")
    assert.strictEqual(formatUsd(12.5), "$12.50")
    assert.strictEqual(formatUsd(-1_234_567.8), "−$1,234,567.80")
  })

  it("is never rounded", () => {
    assert.strictEqual(formatUsd(0.000000001), "$0.000000001")
    assert.strictEqual(formatUsd(-0.000000999), "−$0.000000999")
    assert.strictEqual(formatUsd(0.00001), "$0.00001")
    assert.strictEqual(formatUsd(4_000_000.123456789), "$4,000,000.123456789")
  })

  it("up to four million dollars parses back to the same value", () => {
    const { next } = Random.make("amounts")
    for (const size of [1e3, 1e6, 1e9, 1e12, 4e15]) {
      for (let round = 0; round < 2000; round++) {
        const nano = BigInt(Math.floor(next() * size))
        const digits = formatUsd(toUsd(nano)).replace(/[$,]/g, "")
        const [dollars = "", decimals = ""] = digits.split(".")
        assert.strictEqual(BigInt(dollars + decimals.padEnd(9, "0")), nano, digits)
      }
    }
  })

  it("that was summed in the browser has no digits beyond the nano-dollar", () => {
    assert.strictEqual(formatUsd(0.1 + 0.2), "$0.30")
    assert.strictEqual(formatUsd(6 * 0.000123457), "$0.000740742")
    assert.strictEqual(formatUsd(9_000_000.25), "$9,000,000.25")
  })

  it("separates its decimals, so that tables can align them", () => {
    assert.deepStrictEqual(partsOfUsd(-8.1215), { dollars: "−$8", decimals: "1215" })
    assert.deepStrictEqual(partsOfUsd(0.0000000375, 12), { dollars: "$0", decimals: "0000000375" })
    assert.deepStrictEqual(partsOfUsd(0.1), { dollars: "$0", decimals: "10" })
  })
})

it("counts have thousands in groups", () => {
  assert.deepStrictEqual([0, 999, 1000, 12_345_678].map(formatCount), ["0", "999", "1,000", "12,345,678"])
})

it("axis values are short", () => {
  assert.deepStrictEqual([0, 0.0025, 950, 1200, 12_345, 3_400_000, 2e9].map(formatShort), [
    "0",
    "0.0025",
    "950",
    "1200",
    "12.3k",
    "3.4M",
    "2B"
  ])
})

it("a share is a percentage of three digits", () => {
  assert.deepStrictEqual([0, 0.0512, 1, 12.345].map(formatShare), ["0 %", "5.12 %", "100 %", "1230 %"])
})

it("a discount is rounded half up to a nano-dollar, as the gateway rounds it", () => {
  const cases = [
    [5, 20],
    [0.000000001, 50],
    [0.000000003, 16.67],
    [1.25, -12.5],
    [3, 100]
  ] as const
  for (const [price, percent] of cases) {
    const expected = changePrice(NanoUsd(BigInt(Math.round(price * 1e9))), -percent)
    assert.strictEqual(Math.round(discountUsd(price, percent) * 1e9), Number(expected), `${price} less ${percent} %`)
  }
})

import { formatMarginShare } from "../../src/console/format/Amount.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a margin in percent", () => {
  it("is a share of the charge, to a tenth", () => {
    assert.strictEqual(formatMarginShare(2.000000001, 10), "16.7 %")
    assert.strictEqual(formatMarginShare(1, 0), "100 %")
    assert.strictEqual(formatMarginShare(0, 4), "0 %")
  })

  it("is negative if the cost exceeds the charge, and never minus zero", () => {
    assert.strictEqual(formatMarginShare(-0.000224962, 0.0031), "−7.8 %")
    assert.strictEqual(formatMarginShare(-3, 4), "−300 %")
    assert.strictEqual(formatMarginShare(-0.000000001, 131.5500203), "0 %")
  })

  it("is null if nothing was charged or no cost is known", () => {
    assert.isNull(formatMarginShare(0, 0))
    assert.isNull(formatMarginShare(-0.3, 0.1 + 0.2))
    assert.isNull(formatMarginShare(null, 0))
    assert.isNull(formatMarginShare(1, null))
    assert.isNull(formatMarginShare(undefined, undefined))
  })
})

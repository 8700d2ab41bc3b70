import { valueTicks } from "../../src/console/views/requests/Timeline.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("the ticks of values", () => {
  it("are round and reach the maximum", () => {
    assert.deepStrictEqual(valueTicks(847), [0, 500, 1000])
    assert.deepStrictEqual(valueTicks(10.4), [0, 5, 10, 15])
    assert.deepStrictEqual(valueTicks(0.0000021), [0, 0.000001, 0.000002, 0.000003])
    assert.deepStrictEqual(valueTicks(1), [0, 0.5, 1])
  })

  it("are two without a value", () => {
    for (const max of [0, -1, Number.NaN]) assert.deepStrictEqual(valueTicks(max), [0, 1])
  })

  it("are few for any size", () => {
    for (let max = 1e-9; max < 1e12; max *= 1.7) {
      const ticks = valueTicks(max)
      assert.isAtLeast(ticks.at(-1) ?? 0, max * 0.999)
      assert.isAtMost(ticks.length, 5)
    }
  })
})

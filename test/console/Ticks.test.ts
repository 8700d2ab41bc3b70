import { valueTicks } from "../../src/console/views/requests/Timeline.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("the ticks of values", () => {
  it("are round and reach the most", () => {
    assert.deepStrictEqual(valueTicks(847), [0, 500, 1000])
    assert.deepStrictEqual(valueTicks(10.4), [0, 5, 10, 15])
    assert.deepStrictEqual(valueTicks(0.0000021), [0, 0.000001, 0.000002, 0.000003])
    assert.deepStrictEqual(valueTicks(1), [0, 0.5, 1])
  })

  it("are two where there is nothing", () => {
    for (const most of [0, -1, Number.NaN]) assert.deepStrictEqual(valueTicks(most), [0, 1])
  })

  it("are few for any size", () => {
    for (let most = 1e-9; most < 1e12; most *= 1.7) {
      const ticks = valueTicks(most)
      assert.isAtLeast(ticks.at(-1) ?? 0, most * 0.999)
      assert.isAtMost(ticks.length, 5)
    }
  })
})

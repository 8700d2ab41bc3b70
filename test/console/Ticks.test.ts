import { assert, describe, it } from "@effect/vitest"
import { timeTicks, valueTicks } from "../../src/console/parts/chart/Ticks.ts"

const hour = 3600

/** Midnight of the machine's zone, which is the reader's. */
const midnight = new Date(2026, 10, 21).getTime() / 1000

const hours = (count: number) => Array.from({ length: count }, (_, at) => midnight + at * hour)

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

describe("the ticks of times", () => {
  it("begin round hours of the reader's zone, and name the days", () => {
    assert.deepStrictEqual(timeTicks(hours(30), 3), [
      { index: 12, label: "12:00" },
      { index: 24, label: "22 Nov" }
    ])
    assert.deepStrictEqual(
      timeTicks(hours(13), 4).map(({ label }) => label),
      ["03:00", "06:00", "09:00", "12:00"]
    )
  })

  it("are at most so many, over any time", () => {
    for (const count of [1, 2, 48, 90 * 24, 5 * 365 * 24]) {
      assert.isAtMost(timeTicks(hours(count), 6).length, 6)
    }
  })
})

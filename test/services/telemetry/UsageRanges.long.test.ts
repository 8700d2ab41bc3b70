import { FastCheck } from "effect"
import { type Range, rangesOf } from "../../../src/services/telemetry/Usage.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"

const hour = 3_600_000
const day = 24 * hour
const always = { filledFrom: -Infinity, rowsFrom: -Infinity }

describe("what is read of a time", () => {
  it("is days, hours before and after them, and rows of broken hours", () => {
    const range = { from: day - hour - 5, to: 3 * day + hour + 7 }
    assert.deepStrictEqual(rangesOf(range, always, false), {
      all: range,
      hours: { from: day - hour, to: 3 * day + hour },
      days: { from: day, to: 3 * day }
    })
    const all = { from: -Infinity, to: Infinity }
    assert.deepStrictEqual(rangesOf(all, always, false), { all, hours: all, days: all })
    assert.deepStrictEqual(rangesOf(all, always, true), { all, hours: all, days: { from: Infinity, to: Infinity } })
  })

  it("is rows of before the totals, and whole hours where rows are gone", () => {
    const bounds = { filledFrom: 2 * day, rowsFrom: day }
    const filled = { from: 2 * day, to: Infinity }
    const all = { from: -Infinity, to: Infinity }
    assert.deepStrictEqual(rangesOf(all, bounds, false), { all, hours: filled, days: filled })
    const gone = { from: 5, to: 2 * hour + 5 }
    assert.deepStrictEqual(rangesOf(gone, { filledFrom: -Infinity, rowsFrom: day }, false), {
      all: { from: hour, to: 3 * hour },
      hours: { from: hour, to: 3 * hour },
      days: { from: 3 * hour, to: 3 * hour }
    })
  })

  it("is rows, then hours, then days, one within the other", () => {
    const moment = FastCheck.integer({ min: 0, max: 4 * day })
    const bound = FastCheck.integer({ min: 0, max: 96 }).map((hours) => hours * hour)
    FastCheck.assert(
      FastCheck.property(moment, moment, moment, bound, FastCheck.boolean(), (from, to, at, filledFrom, byHour) => {
        const { all, days, hours } = rangesOf({ from, to }, { filledFrom, rowsFrom: -Infinity }, byHour)
        const has = (range: Range) => range.from <= at && at < range.to
        assert.strictEqual(has(all), from <= at && at < to)
        assert.isTrue(hours.from >= all.from && hours.to <= all.to && hours.from <= hours.to)
        assert.isTrue(days.from >= hours.from && days.to <= hours.to && days.from <= days.to)
        for (const [range, unit] of [
          [hours, hour],
          [days, day]
        ] as const) {
          if (range.from === range.to) continue
          assert.isTrue(range.from % unit === 0 && range.to % unit === 0 && range.from >= filledFrom)
        }
      }),
      { numRuns: runs(2_000) }
    )
  })
})

import { FastCheck } from "effect"
import { type Range, rangesOf } from "../../../src/services/telemetry/UsageRanges.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"

const hour = 3_600_000
const day = 24 * hour
const always = { filledFrom: -Infinity, rowsFrom: -Infinity }

describe("what is read of a time", () => {
  it("is days, hours before and after them, and rows of broken hours", () => {
    const range = { from: day - hour - 5, to: 3 * day + hour + 7 }
    assert.deepStrictEqual(rangesOf(range, always, false), {
      rows: [
        { from: day - hour - 5, to: day - hour },
        { from: 3 * day + hour, to: 3 * day + hour + 7 }
      ],
      hours: [
        { from: day - hour, to: day },
        { from: 3 * day, to: 3 * day + hour }
      ],
      days: [{ from: day, to: 3 * day }]
    })
    const all = { from: -Infinity, to: Infinity }
    assert.deepStrictEqual(rangesOf(all, always, false), { rows: [], hours: [], days: [all] })
    assert.deepStrictEqual(rangesOf(all, always, true), { rows: [], hours: [all], days: [] })
  })

  it("is rows of before the totals, and whole hours where rows are gone", () => {
    const bounds = { filledFrom: 2 * day, rowsFrom: day }
    assert.deepStrictEqual(rangesOf({ from: -Infinity, to: Infinity }, bounds, false), {
      rows: [{ from: -Infinity, to: 2 * day }],
      hours: [],
      days: [{ from: 2 * day, to: Infinity }]
    })
    const gone = { from: 5, to: 2 * hour + 5 }
    assert.deepStrictEqual(rangesOf(gone, { filledFrom: -Infinity, rowsFrom: day }, false), {
      rows: [],
      hours: [{ from: hour, to: 3 * hour }],
      days: []
    })
  })

  it("has every moment once", () => {
    const moment = FastCheck.integer({ min: 0, max: 4 * day })
    const bound = FastCheck.integer({ min: 0, max: 96 }).map((hours) => hours * hour)
    FastCheck.assert(
      FastCheck.property(moment, moment, moment, bound, FastCheck.boolean(), (from, to, at, filledFrom, byHour) => {
        const { days, hours, rows } = rangesOf({ from, to }, { filledFrom, rowsFrom: -Infinity }, byHour)
        const has = (ranges: ReadonlyArray<Range>) => ranges.filter((one) => one.from <= at && at < one.to).length
        assert.strictEqual(has(rows) + has(hours) + has(days), from <= at && at < to ? 1 : 0)
        assert.isTrue(days.every((one) => one.from % day === 0 && one.to % day === 0 && one.from >= filledFrom))
        assert.isTrue(hours.every((one) => one.from % hour === 0 && one.to % hour === 0 && one.from >= filledFrom))
      }),
      { numRuns: runs(2_000) }
    )
  })
})

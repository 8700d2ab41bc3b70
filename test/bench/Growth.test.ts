import { assert, describe, it } from "../harness/It.ts"
import * as Growth from "./Growth.ts"

const { GROWTH_ROWS, GROWTH_URL, GROWTH_VIDEOS } = process.env
const isLong = GROWTH_ROWS !== undefined
const size = isLong
  ? { rows: Number(GROWTH_ROWS), videos: Number(GROWTH_VIDEOS ?? Number(GROWTH_ROWS) / 10) }
  : { rows: 20_000, videos: 2_000 }

describe("growth", () => {
  it.live(
    "every endpoint, command and chore finds its rows by an index, whatever the planner knows of them",
    function* () {
      const { left, measured, violations } = yield* Growth.run({ size, url: GROWTH_URL, isLong })
      assert.deepStrictEqual(violations, [])
      assert.strictEqual(left.indexEntries, 9)
      // Among few rows only what has no index reads a table whole, as the planner is told to avoid it there; among
      // many the rows that are read tell, and a table may rightly be read whole that has hardly more than is wanted.
      const isWhole = ({ mostRows, work: { scans } }: (typeof measured)[number]) =>
        !isLong && mostRows < Infinity && scans.some((scan) => scan.startsWith("Seq "))
      const slow = measured.filter((one) => one.work.rowsRead > one.mostRows || isWhole(one))
      assert.deepStrictEqual(
        slow.map(
          ({ name, planning, statistics, work }) =>
            `${name} (${planning}, ${statistics} statistics): ${work.rowsRead} rows by ${work.scans.join(", ")}`
        ),
        []
      )
    },
    isLong ? 4 * 3_600_000 : 180_000
  )
})

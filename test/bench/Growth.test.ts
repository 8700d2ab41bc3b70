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
      const { measured, violations } = yield* Growth.run({ size, url: GROWTH_URL, isLong })
      assert.deepStrictEqual(violations, [])
      const slow = measured.filter(
        ({ mostRows, work }) =>
          work.rowsRead > mostRows || (mostRows < Infinity && work.scans.some((scan) => scan.startsWith("Seq ")))
      )
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

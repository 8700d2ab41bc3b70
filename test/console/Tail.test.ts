import { findArrivals, merge } from "../../src/console/views/requests/RequestRows.ts"
import { assert, describe, it } from "../harness/It.ts"

const row = (at: number, id = `id-${at}`, charge = 0) => ({ at, id, charge })
const idsOf = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)
const more = { hasMoreRows: true, hasMoreNewest: true }

describe("the tail of a list", () => {
  it("has each row once, newest first, in its latest version", () => {
    const merged = merge([row(3), row(1)], [row(3, "id-3", 7), row(2), row(3, "id-3b")])
    assert.deepStrictEqual(merged, [row(3, "id-3b"), row(3, "id-3", 7), row(2), row(1)])
  })

  it("finds a request that began earlier than others and ended later", () => {
    const { arrivals, isGap, updates } = findArrivals([row(5), row(3)], [row(5), row(4), row(3)], more)
    assert.deepStrictEqual([idsOf(arrivals), idsOf(updates), isGap], [["id-4"], ["id-5", "id-3"], false])
  })

  it("leaves rows after the last known row to the next page", () => {
    assert.deepStrictEqual(findArrivals([row(5), row(3)], [row(5), row(3), row(2)], more).arrivals, [])
    const all = findArrivals([row(5), row(3)], [row(5), row(3), row(2)], { ...more, hasMoreRows: false })
    assert.deepStrictEqual(idsOf(all.arrivals), ["id-2"])
  })

  it("reports a gap if no row is known and others follow", () => {
    assert.isTrue(findArrivals([row(1)], [row(9), row(8)], more).isGap)
    assert.isFalse(findArrivals([row(1)], [row(9), row(8)], { ...more, hasMoreNewest: false }).isGap)
    assert.isFalse(findArrivals([row(1)], [], more).isGap)
  })

  it("adds everything to an empty list", () => {
    const { arrivals, isGap } = findArrivals([], [row(2)], { hasMoreRows: false, hasMoreNewest: false })
    assert.deepStrictEqual([idsOf(arrivals), isGap], [["id-2"], false])
  })
})

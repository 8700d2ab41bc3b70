import { arrivals, merge } from "../../src/console/views/requests/Tail.ts"
import { assert, describe, it } from "../harness/It.ts"

const row = (at: number, id = `id-${at}`, charge = 0) => ({ at, id, charge })
const idsOf = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)
const more = { afterKnown: true, afterNewest: true }

describe("the tail of a list", () => {
  it("has each row once, newest first, in its newest version", () => {
    const merged = merge([row(3), row(1)], [row(3, "id-3", 7), row(2), row(3, "id-3b")])
    assert.deepStrictEqual(merged, [row(3, "id-3b"), row(3, "id-3", 7), row(2), row(1)])
  })

  it("finds a request that began earlier than others and ended later", () => {
    const { changed, fresh, isGap } = arrivals([row(5), row(3)], [row(5), row(4), row(3)], more)
    assert.deepStrictEqual([idsOf(fresh), idsOf(changed), isGap], [["id-4"], ["id-5", "id-3"], false])
  })

  it("leaves what follows the last known row to the next page", () => {
    assert.deepStrictEqual(arrivals([row(5), row(3)], [row(5), row(3), row(2)], more).fresh, [])
    const all = arrivals([row(5), row(3)], [row(5), row(3), row(2)], { ...more, afterKnown: false })
    assert.deepStrictEqual(idsOf(all.fresh), ["id-2"])
  })

  it("knows a gap where not one row is known and others follow", () => {
    assert.isTrue(arrivals([row(1)], [row(9), row(8)], more).isGap)
    assert.isFalse(arrivals([row(1)], [row(9), row(8)], { ...more, afterNewest: false }).isGap)
    assert.isFalse(arrivals([row(1)], [], more).isGap)
  })

  it("takes everything where the list was empty", () => {
    const { fresh, isGap } = arrivals([], [row(2)], { afterKnown: false, afterNewest: false })
    assert.deepStrictEqual([idsOf(fresh), isGap], [["id-2"], false])
  })
})

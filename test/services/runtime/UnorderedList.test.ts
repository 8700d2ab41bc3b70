import { UnorderedList } from "../../../src/services/runtime/UnorderedList.ts"
import { assert, describe, it } from "../../harness/It.ts"

const named = (name: string) => ({ name, index: -1 })

const namesIn = (roster: UnorderedList<{ readonly name: string; index: number }>) =>
  Array.from(roster, ({ name }) => name)

describe("a roster", () => {
  it("holds those that came and have not gone, whatever the order in which they go", () => {
    const all = Array.from({ length: 50 }, (_, at) => named(String(at)))
    const roster = new UnorderedList<(typeof all)[number]>()
    const there = new Set<string>()
    for (let turn = 0; turn < 1_000; turn += 1) {
      const one = all[(turn * 7919) % all.length] ?? named("")
      assert.strictEqual(roster.has(one), there.has(one.name))
      if (there.delete(one.name)) assert.isTrue(roster.delete(one))
      else {
        assert.isFalse(roster.delete(one))
        roster.add(one)
        there.add(one.name)
      }
      assert.sameMembers(namesIn(roster), [...there])
      assert.strictEqual(roster.size, there.size)
    }
  })

  it("can be left while it is gone through", () => {
    const roster = new UnorderedList<ReturnType<typeof named>>()
    for (const name of ["a", "b", "c"]) roster.add(named(name))
    const seen: Array<string> = []
    for (const one of roster) {
      seen.push(one.name)
      roster.delete(one)
    }
    assert.deepStrictEqual(seen, ["a", "b", "c"])
    assert.strictEqual(roster.size, 0)
  })
})

import { editDistance, findNearest } from "../../src/domain/Wording.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("the distance of two texts", () => {
  it.each<readonly [string, string, number]>([
    ["", "", 0],
    ["", "ab", 2],
    ["model", "models", 1],
    ["generation", "generations", 1],
    ["teh", "the", 1],
    ["abc", "xyz", 3]
  ])("of %j and %j is %i, either way", (a, b, distance) => {
    assert.deepStrictEqual([editDistance(3, a, b), editDistance(3, b, a)], [distance, distance])
  })

  it("above the bound is one more than it", () => {
    assert.strictEqual(editDistance(1, "abc", "xyz"), 2)
    assert.strictEqual(editDistance(0, "abc", "abd"), 1)
    assert.strictEqual(editDistance(2, "a".repeat(10_000_000), "b"), 3)
  })
})

describe("the nearest of the names", () => {
  it("all have the minimum distance, within the limit of their length", () => {
    const known = ["completions", "completion-", "abcdefg", "abcdef"]
    assert.deepStrictEqual(findNearest("completion", known), ["completions", "completion-"])
    assert.deepStrictEqual(findNearest("completionss", known), ["completions"])
    assert.deepStrictEqual(findNearest("abcdefh", known), ["abcdefg"])
    assert.deepStrictEqual(findNearest("abcdxx", known), [])
  })
})

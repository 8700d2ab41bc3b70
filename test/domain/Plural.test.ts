import { formatCounted } from "../../src/console/format/Amount.ts"
import { nounFor, pluralize } from "../../src/domain/Wording.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a counted noun", () => {
  it("is in the singular for one only", () => {
    assert.deepStrictEqual(
      [0, 1, 2].map((count) => pluralize(count, "request")),
      ["0 requests", "1 request", "2 requests"]
    )
  })

  it("takes a plural of its own, and a verb", () => {
    assert.deepStrictEqual(
      [0, 1, 2].map((count) => pluralize(count, "entry is", "entries are")),
      ["0 entries are", "1 entry is", "2 entries are"]
    )
    assert.deepStrictEqual(
      [nounFor(1, "keeps its", "keep their"), nounFor(3, "keeps its", "keep their")],
      ["keeps its", "keep their"]
    )
  })

  it("has its count in groups of thousands in the console", () => {
    assert.strictEqual(formatCounted(1, "entry", "entries"), "1 entry")
    assert.strictEqual(formatCounted(12_345, "entry", "entries"), "12,345 entries")
  })
})

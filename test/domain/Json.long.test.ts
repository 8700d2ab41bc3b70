import { FastCheck } from "effect"
import { countValues, jsonTexts, nestsWithin } from "../../src/domain/Json.ts"
import { runAtOnce } from "../../src/services/runtime/EventLoop.ts"
import { runs } from "../harness/Cases.ts"
import { assert, describe, it } from "../harness/It.ts"

const written = (value: unknown): string => [...jsonTexts(value)].join("")

const valuesIn = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, child) => sum + valuesIn(child), 1)
    : 1

describe("JSON in pieces", () => {
  it("is the text that JSON.stringify makes", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.jsonValue({ stringUnit: "binary" }), (value) =>
        assert.strictEqual(written(value), JSON.stringify(value))
      ),
      { numRuns: runs(1_000) }
    )
  })

  it("leaves out members without a value, and has null for such items", () => {
    for (const value of [{ a: undefined, b: [undefined, 1], c: {} }, { a: undefined }, [undefined], [], {}, null, -0]) {
      assert.strictEqual(written(value), JSON.stringify(value))
    }
  })

  it("splits long strings, but no surrogate pair and no escape", () => {
    for (const unit of ["x", "é", "😀", "\n", '"', "\ud800", "\udc00"]) {
      for (const shift of [0, 1, 2]) {
        const value = { text: "_".repeat(shift) + unit.repeat(150_000) }
        assert.isTrue(written(value) === JSON.stringify(value))
        for (const piece of jsonTexts(value)) {
          assert.isAtMost(piece.length, 1_000_000)
          assert.strictEqual(Buffer.from(piece).includes("\ufffd"), false)
        }
      }
    }
  })

  it("comes in pieces of bounded length, made when they are asked for", () => {
    const pieces = [...jsonTexts(Array.from({ length: 100_000 }, (_, at) => ({ at })))]
    assert.isAbove(pieces.length, 10)
    for (const piece of pieces) assert.isBelow(piece.length, 70_000)
  })
})

describe("counting the values of a text", () => {
  it("finds as many as there are, and at most one more for what is empty", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        const empty = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, "0").match(/\[\]|\{\}/g)?.length ?? 0
        const found = runAtOnce(countValues(text))
        assert.strictEqual(found, valuesIn(value) + empty)
      }),
      { numRuns: runs(1_000) }
    )
  })
})

describe("nesting", () => {
  const nest = (levels: number): unknown => JSON.parse(`${'{"a":['.repeat(levels / 2)}${"]}".repeat(levels / 2)}`)

  it("is counted in levels of arrays and objects alike", () => {
    assert.isTrue(nestsWithin(10, nest(10)))
    assert.isFalse(nestsWithin(9, nest(10)))
    assert.isTrue(nestsWithin(0, "text"))
    assert.isFalse(nestsWithin(100, nest(100_000)))
  })
})

import { FastCheck as fc } from "effect"
import { JsonScanner } from "../../src/domain/JsonText.ts"
import { assert, describe, it } from "../harness/It.ts"

const stateOf = (pieces: ReadonlyArray<string>): JsonScanner["state"] => {
  const scanner = new JsonScanner()
  for (const piece of pieces) scanner.take(piece)
  return scanner.state
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const cutAt = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].toSorted((a, b) => a - b)
  return ends.map((end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end))
}

const cuts = fc.array(fc.nat(), { maxLength: 12 })
/** Texts near JSON, most of them broken. */
const nearJson = fc
  .array(
    fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "\\",
      "u",
      "00e",
      "n",
      "1",
      "-",
      ".5",
      "e3",
      "true",
      "null",
      " ",
      "\n"
    ),
    { maxLength: 12 }
  )
  .map((tokens) => tokens.join(""))

const container = fc.oneof(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), fc.array(fc.jsonValue()))

describe("JsonScanner", () => {
  it("an object or array is complete at its end, however it is cut, and no part of it is", () => {
    fc.assert(
      fc.property(container, cuts, fc.nat(), (value, places, at) => {
        const text = JSON.stringify(value, undefined, at % 3)
        assert.strictEqual(stateOf(cutAt(text, places)), "complete")
        assert.include(["start", "open"], stateOf([text.slice(0, at % text.length)]))
      })
    )
  })

  it("what JSON.parse accepts is complete", () => {
    fc.assert(
      fc.property(nearJson, cuts, (text, places) => {
        if (isJson(text) && /^\s*[[{]/.test(text)) assert.strictEqual(stateOf(cutAt(text, places)), "complete", text)
      }),
      { numRuns: 5_000 }
    )
  })

  it("the value ends where more text begins", () => {
    const scanner = new JsonScanner()
    assert.strictEqual(scanner.take('{"a":'), 5)
    assert.strictEqual(scanner.take('"}"}{"b"'), 4)
    assert.strictEqual(scanner.state, "complete")
  })

  it.each(["}", "{]", "{,", '{"a"}', '{"a":1,}', "[1,]", "[1 2]", "{a", "1", "true"])(
    "no object or array can begin with %s",
    (text) => {
      assert.strictEqual(stateOf([text]), "invalid")
      assert.strictEqual(stateOf(text.split("")), "invalid")
    }
  )

  it("a host that begins its arguments anew breaks them", () => {
    assert.strictEqual(stateOf(['{"ci', '{"city":"Os']), "invalid")
  })
})

import { FastCheck as fc } from "effect"
import { JsonProgress } from "../../src/domain/JsonProgress.ts"
import { assert, describe, it } from "../harness/It.ts"

const stateOf = (pieces: ReadonlyArray<string>): JsonProgress["state"] => {
  const progress = new JsonProgress()
  for (const piece of pieces) progress.push(piece)
  return progress.state
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

describe("JsonProgress", () => {
  it("a JSON text is complete at its end, however it is cut, and no part of an object is", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), cuts, fc.nat(), (value, places, at) => {
        const text = JSON.stringify(value, undefined, at % 3)
        assert.strictEqual(stateOf(cutAt(text, places)), "complete")
        assert.strictEqual(stateOf([text.slice(0, at % text.length)]), "incomplete")
      })
    )
  })

  it("the state is complete exactly where JSON.parse accepts the text", () => {
    fc.assert(
      fc.property(nearJson, cuts, (text, places) => {
        assert.strictEqual(stateOf(cutAt(text, places)) === "complete", isJson(text), text)
      }),
      { numRuns: 5_000 }
    )
  })

  it.each([
    "}",
    "{]",
    "{,",
    '{"a"}',
    '{"a":1,}',
    "[1,]",
    "[1 2]",
    '"\\x"',
    '"\\u12g',
    '"a\nb"',
    "{} {",
    "01 ",
    "tru ",
    "{a"
  ])("no text can begin with %s", (text) => {
    assert.strictEqual(stateOf([text]), "invalid")
    assert.strictEqual(stateOf(text.split("")), "invalid")
  })

  it("a host that begins its arguments anew breaks them", () => {
    assert.strictEqual(stateOf(['{"ci', '{"city":"Os']), "invalid")
    assert.strictEqual(stateOf(['{"a":1}', '{"a":1}']), "invalid")
  })
})

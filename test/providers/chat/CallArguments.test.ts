import { FastCheck as fc } from "effect"
import { CallArguments, toSingleValue } from "../../../src/providers/chat/CallArguments.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** Returns the arguments that a client assembles, or `broken`. */
const input = (pieces: ReadonlyArray<string>): string => {
  const taken = new CallArguments()
  let text = ""
  for (const piece of pieces) {
    const shown = taken.take(piece)
    if (shown === undefined) return "broken"
    text += shown
  }
  const rest = taken.end()
  return rest === undefined ? "broken" : text + rest
}

const oslo = '{"city":"Oslo"}'
const spaced = '{ "city" : "Oslo" }'
const quoted = '{"city":"a \\"}{\\" b\\\\"}'

describe("the arguments of a call, in pieces", () => {
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
    ["are added up", ['{"ci', 'ty":"Os', 'lo"}'], oslo],
    ["may be restated with every piece", ['{"ci', '{"city":"Os', oslo], oslo],
    ["may be restated token by token", ["{", '{"', '{"city', '{"city":', '{"city":"', '{"city":"Oslo', oslo], oslo],
    ["may be restated where a nested object could begin", ['{"city":', oslo], oslo],
    ["may nest an object that begins as they do", ['{"a":', '{"a":', "1}", "}"], '{"a":{"a":1}}'],
    ["may nest a whole object that begins as they do", ['{"a":', '{"a":1}', "}"], '{"a":{"a":1}}'],
    ["may come again as a whole", ['{"ci', 'ty":"Oslo"}', oslo], oslo],
    ["may come again in pieces", ['{"ci', 'ty":"Oslo"}', '{"city":', '"Oslo"}'], oslo],
    ["may come again with other white space", [oslo, `\n${spaced}\n`], oslo],
    ["may come again with other escapes", ['{"city":"Øst"}', String.raw`{"city":"\u00d8st"}`], '{"city":"Øst"}'],
    ["may come again many times", [oslo, oslo, oslo + oslo], oslo],
    ["may come again as a whole that is only begun", [oslo, '{"ci'], oslo],
    ["may come as a whole after their beginning, with other white space", ['{ "city": "Os', oslo], '{ "city": "Oslo"}'],
    ["may have one bracket before the whole", ["{", oslo], oslo],
    ["may come after an empty object", ["{}", oslo], oslo],
    ["may come in pieces after an empty object", ["{}", '{"ci', 'ty":"Oslo"}'], oslo],
    ["may come after an empty object in pieces", ["{", " }", oslo], oslo],
    ["may come after an empty object in one piece", [`{}${oslo}`], oslo],
    ["may be an empty object", ["{}"], "{}"],
    ["may have an empty object after them", ['{"ci', 'ty":"Oslo"}', "{}", "{ }"], oslo],
    ["may come after the word null", ["null", '{"ci', 'ty":"Oslo"}'], oslo],
    ["may have the word null in a piece of its own", ['{"city":', "null", "}"], '{"city":null}'],
    ["may be an empty object in pieces, twice", ["{", "}", "{}"], "{}"],
    ["lose white space around them", ["\n ", oslo, " ", "\n"], oslo],
    ["keep brackets and quotes in strings", [quoted.slice(0, 13), quoted.slice(13)], quoted],
    ["that are no JSON are passed on", ['{"city": Oslo', "}}", "}}"], '{"city": Oslo}}}}'],
    ["that repeat themselves and are no JSON are passed on", ["a", "aa", "a"], "aaaa"],
    ["that go on after their end are passed on", [oslo, "</tool_call>"], `${oslo}</tool_call>`],
    ["that are cut are passed on", ['{"city":"Os'], '{"city":"Os'],
    ["of two values are broken", [oslo, '{"city":"Rome"}'], "broken"],
    ["of two values in one piece are broken", [`${oslo}{"city":"Rome"}`], "broken"],
    ["of two values of which one is cut are broken", [oslo, '{"city":"Ro'], "broken"],
    ["of two long numbers are broken", ['{"id":12345678901234567891}', '{"id":12345678901234567892}'], "broken"],
    [
      "of two numbers that differ in their last digit alone are broken",
      ['{"a":[{"x":123456789012345.67}]}', '{"a":[{"x":123456789012345.68}]}'],
      "broken"
    ],
    ["of one beyond all numbers and another are broken", ['{"x":1e999}', '{"x":2e999}'], "broken"],
    [
      "may come again with long numbers in another order and form",
      ['{"id":12345678901234567890,"x":[1,0,5e-3]}', '{"x":[1.0,-0,0.005],"id":1234567890123456789e1}'],
      '{"id":12345678901234567890,"x":[1,0,5e-3]}'
    ],
    ["with a member less are broken", ['{"a":1,"b":null}', '{"a":1}'], "broken"],
    ["with a list and an object are broken", ['{"a":[1]}', '{"a":{"0":1}}'], "broken"],
    ["with a number and a text are broken", ['{"a":1}', '{"a":"1"}'], "broken"]
  ]
  for (const [name, pieces, expected] of rows) it(name, () => assert.strictEqual(input(pieces), expected))

  const object = fc
    .tuple(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { minKeys: 1 }),
      fc.constantFrom(undefined, 1, "\t")
    )
    .map(([value, space]) => JSON.stringify(value, null, space))
  /** Sorted positions in a text. */
  const placesIn = (text: string) =>
    fc
      .uniqueArray(fc.integer({ min: 1, max: text.length }))
      .map((places) => places.toSorted((one, other) => one - other))
  const cut = object.chain((text) => fc.tuple(fc.constant(text), placesIn(text)))
  const both = fc.record({ first: cut, ends: fc.constantFrom("", " \n", "whole") })

  it("give back any object, in whatever pieces it comes", () => {
    fc.assert(
      fc.property(both, ({ ends, first: [text, places] }) => {
        const pieces = [...places, text.length].map((place, at) => text.slice(places[at - 1] ?? 0, place))
        assert.strictEqual(input([...pieces, ends === "whole" ? text : ends]), text)
      })
    )
  })

  it("give back any object that is restated with every piece", () => {
    fc.assert(
      fc.property(both, ({ ends, first: [text, places] }) => {
        const pieces = [...places, text.length].map((place) => text.slice(0, place))
        assert.strictEqual(input([...pieces, ends === "whole" ? text : ends]), text)
      }),
      // The first piece ends inside a string. The second one would end the object there.
      { examples: [[{ first: ['{" }":[],"b":"c"}', [14]], ends: "" }]] }
    )
  })

  it("return what a client lacks of the whole", () => {
    const rows: ReadonlyArray<readonly [ReadonlyArray<string>, string, string | undefined]> = [
      [[oslo], oslo, ""],
      [[oslo], spaced, ""],
      [[], oslo, oslo],
      [['{"ci'], oslo, 'ty":"Oslo"}'],
      [['{"city":'], '{"city":', ""],
      [['{"city":', '{"city":'], oslo, '"Oslo"}'],
      [["{", "}"], oslo, oslo.slice(1)],
      [[oslo], "", ""],
      [[oslo], "{}", ""],
      [['{"ci'], "null", ""],
      [['{"a'], oslo, undefined],
      [[oslo], '{"city":"Rome"}', undefined]
    ]
    for (const [pieces, whole, expected] of rows) {
      const taken = new CallArguments()
      for (const piece of pieces) taken.take(piece)
      assert.strictEqual(taken.takeAll(whole), expected, whole)
    }
  })
})

describe("whole arguments", () => {
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    [oslo, oslo],
    [spaced, spaced],
    [`{}${oslo}`, oslo],
    [`${oslo}\n${spaced}`, oslo],
    ["no } { JSON", "no } { JSON"],
    [quoted, quoted],
    [`${oslo}{}`, oslo],
    [" null ", ""],
    [`${oslo}{"city":"Rome"}`, undefined],
    ["", ""]
  ]
  it("are one value, or break the protocol", () => {
    for (const [text, expected] of rows) assert.strictEqual(toSingleValue(text), expected)
  })
})

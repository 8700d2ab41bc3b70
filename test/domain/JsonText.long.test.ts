import { FastCheck, Schema } from "effect"
import { jsonTexts } from "../../src/domain/Json.ts"
import { keepSource, stringify } from "../../src/domain/JsonSource.ts"
import { NestsTooDeep, parseExact, replaceLoneSurrogates } from "../../src/domain/JsonText.ts"
import { runs } from "../harness/Cases.ts"
import { exactTexts } from "../harness/fixtures/ExactTexts.ts"
import { assert, describe, it } from "../harness/It.ts"

const parse = (text: string): unknown => parseExact(text, 100)
const written = (value: unknown): string => [...jsonTexts(value)].join("")
const parsed = (text: string): Record<string, unknown> => Object(parse(text))

const assertSame = (text: string) => {
  const value = parse(text)
  assert.strictEqual(stringify(value), text)
  assert.strictEqual(written(value), text)
  assert.deepEqual(value, JSON.parse(text))
}

const digits = (min: number, max: number) =>
  FastCheck.array(FastCheck.nat(9), { minLength: min, maxLength: max }).map((all) => all.join(""))

/** Any number token of the grammar. */
const numberTexts = FastCheck.tuple(
  FastCheck.constantFrom("", "-"),
  FastCheck.oneof(
    FastCheck.constant("0"),
    FastCheck.tuple(FastCheck.integer({ min: 1, max: 9 }), digits(0, 25)).map(([first, rest]) => first + rest)
  ),
  FastCheck.oneof(
    FastCheck.constant(""),
    digits(1, 20).map((text) => `.${text}`)
  ),
  FastCheck.oneof(
    FastCheck.constant(""),
    FastCheck.tuple(FastCheck.constantFrom("e", "E", "e+", "e-"), digits(1, 3)).map((parts) => parts.join(""))
  )
).map((parts) => parts.join(""))

const names = FastCheck.oneof(
  FastCheck.nat(30).map(String),
  FastCheck.constantFrom("a", "b", "01", "-1", "__proto__"),
  FastCheck.string()
)

/** JSON texts as `JSON.stringify` would write them but for numbers and the order of names. */
const { texts } = FastCheck.letrec<{ texts: string }>((tie) => ({
  texts: FastCheck.oneof(
    { depthSize: "small" },
    numberTexts,
    FastCheck.oneof(FastCheck.string(), FastCheck.constantFrom("[1.0]", '"1":', ",1e5]", "\\")).map((text) =>
      JSON.stringify(text)
    ),
    FastCheck.constantFrom("true", "null", "[]", "{}"),
    FastCheck.array(tie("texts")).map((items) => `[${items.join(",")}]`),
    FastCheck.uniqueArray(FastCheck.tuple(names, tie("texts")), { selector: ([name]) => name }).map(
      (members) => `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`
    )
  )
}))

describe("an exact parse", () => {
  it("is undone by stringify and by jsonTexts, digit for digit and in order", () => {
    for (const text of exactTexts) assertSame(text)
    FastCheck.assert(
      FastCheck.property(texts, (text) => assertSame(`[${text}]`)),
      { numRuns: runs(5_000) }
    )
  })

  it("ignores white space, and takes the last of two members with one name", () => {
    assert.strictEqual(stringify(parse('{ "b" : 1.0 ,\n"1"\t:[ 1e5 \r] ,"b": 2.50 } ')), '{"b":2.50,"1":[1e5]}')
    assert.strictEqual(stringify(parse('{"b":1,"1":1.0,"1":2,"b":3.0}')), '{"b":3.0,"1":2}')
  })

  it("refuses what JSON.parse refuses: texts with one thing replaced, added or left out", () => {
    const outcome = (run: () => unknown): unknown => {
      try {
        return run()
      } catch (error) {
        return error instanceof SyntaxError ? "syntax" : error
      }
    }
    const inserted = FastCheck.constantFrom(
      ...`[]{}:,"\\0 1-+.eEt\u00a0`.split(""),
      "",
      "1.0",
      '"1":',
      "1e5",
      "01.0",
      '\\"'
    )
    FastCheck.assert(
      FastCheck.property(texts, FastCheck.nat(), FastCheck.nat(2), inserted, (given, place, removed, piece) => {
        const text = `{"1.0":[1.0],"a":${given}}`
        const at = place % (text.length + 1)
        const changed = text.slice(0, at) + piece + text.slice(at + removed)
        assert.deepEqual(
          outcome(() => parse(changed)),
          outcome(() => JSON.parse(changed))
        )
      }),
      { numRuns: runs(5_000) }
    )
    for (const text of [
      "{1.0:2}",
      '{"a":1,1.0:2}',
      '["1":3]',
      "[01.0]",
      "[+1.0]",
      "[.10]",
      "[1.e5]",
      "[1.0",
      "[1.0.0]",
      '[1.0,"'
    ]) {
      assert.strictEqual(
        outcome(() => parse(text)),
        "syntax",
        text
      )
    }
  })

  it("takes as many levels as allowed, exact or not", () => {
    for (const inner of ["1", "1.0", '{"b":1,"1":2}']) {
      const nest = (levels: number) => "[".repeat(levels) + inner + "]".repeat(levels)
      const own = inner.startsWith("{") ? 1 : 0
      assert.strictEqual(stringify(parse(nest(100 - own))), nest(100 - own))
      for (const levels of [101 - own, 100_000]) assert.throws(() => parse(nest(levels)), NestsTooDeep)
    }
  })

  it("reads hostile texts in linear time", () => {
    const many = 200_000
    for (const text of [
      `[${"1".repeat(many)}${" ".repeat(many)}x`,
      `[1.0${" ".repeat(many)}x`,
      `["${"\\".repeat(many)}1.0]`,
      `[1.0,"${'\\"'.repeat(many)}"]`,
      `[${"1.1".repeat(many)}0]`,
      `[${"1e".repeat(many)}0]`,
      `["${'5" '.repeat(many)}]`,
      `["${String.raw`\ud83d`.repeat(many)}"]`
    ]) {
      try {
        parse(replaceLoneSurrogates(text))
      } catch (error) {
        assert.instanceOf(error, SyntaxError)
      }
    }
  })
})

describe("a value of an exact parse", () => {
  const text = '{"b":1.0,"2":{"id":12345678901234567891},"a":[1.50,2]}'

  it("is a plain value to everything else", () => {
    const value = parse(text)
    assert.deepStrictEqual(Object.entries(Object(value)), Object.entries(JSON.parse(text)))
    assert.strictEqual(JSON.stringify(value), JSON.stringify(JSON.parse(text)))
    assert.deepStrictEqual(structuredClone(value), JSON.parse(text))
    const item = Schema.Struct({ a: Schema.Number, list: Schema.Array(Schema.Number) })
    const decode = Schema.decodeUnknownSync(item, { onExcessProperty: "error" })
    assert.deepStrictEqual(decode(parse('{"a":1.0,"list":[2.0]}')), { a: 1, list: [2] })
  })

  it("keeps what a copy holds, and with keepSource also its own numbers and the order", () => {
    const value = parsed(text)
    const changed = { ...value, c: 1, a: undefined }
    assert.strictEqual(stringify(changed), '{"2":{"id":12345678901234567891},"b":1,"c":1}')
    assert.strictEqual(stringify(keepSource(value, changed)), '{"b":1.0,"2":{"id":12345678901234567891},"c":1}')
    assert.strictEqual(written(keepSource(value, { ...value, c: 1, a: undefined })), stringify(changed))
  })

  it("keeps no text of a number that a copy has from elsewhere", () => {
    const value = parsed('{"cap":100.0,"b":1.0}')
    assert.strictEqual(stringify(keepSource(value, { ...value, cap: 100 }, ["cap", "c"])), '{"cap":100,"b":1.0}')
    assert.strictEqual(stringify(value), '{"cap":100.0,"b":1.0}')
  })

  it("is written as it is now: a changed number or item has no text", () => {
    const value = parsed('{"b":1.0,"list":[1.0,2.0],"1":"x"}')
    value.b = 5
    Object(value.list)[0] = "new"
    Object(value.list).push({})
    assert.strictEqual(stringify(value), '{"b":5,"list":["new",2.0,{}],"1":"x"}')
  })

  it("is lossy where a member is named toJSON, and never fails", () => {
    assert.strictEqual(stringify(parse('{"toJSON":1.0,"a":{"b":1.0}}')), '{"toJSON":1,"a":{"b":1.0}}')
  })

  it("is written by JSON.stringify after a failed stringify as before", () => {
    const circular: Record<string, unknown> = { value: parse(text) }
    circular.self = circular
    assert.throws(() => stringify(circular), TypeError)
    assert.strictEqual(JSON.stringify(parse(text)), JSON.stringify(JSON.parse(text)))
  })
})

describe("lone surrogates in a JSON text", () => {
  const escape = (unit: number) => `\\u${unit.toString(16)}`

  it("replaces a lone surrogate by U+FFFD, as toWellFormed does with the parsed text", () => {
    const pieces = FastCheck.oneof(
      FastCheck.integer({ min: 0xd7f0, max: 0xe010 }).map(escape),
      FastCheck.integer({ min: 0xd800, max: 0xdfff }).map((unit) => escape(unit).toUpperCase().replace("U", "u")),
      FastCheck.constantFrom("\\\\", "\\n", '\\"', "ud83d", "u", "a", "\\u0041", String.raw`\ud83d\ude00`)
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(pieces, { maxLength: 8 }), (all) => {
        const text = `"${all.join("")}"`
        const original: unknown = JSON.parse(text)
        assert.strictEqual(JSON.parse(replaceLoneSurrogates(text)), String(original).toWellFormed())
      }),
      { numRuns: runs(5_000) }
    )
  })

  it("leaves any other text as it is", () => {
    for (const text of [
      "",
      "plain",
      String.raw`{"a":"\ud83d\ude00 \\ud83d \u00e9 \n"}`,
      '{"a":"😀"}',
      "\\ud83",
      "\\"
    ]) {
      assert.strictEqual(replaceLoneSurrogates(text), text)
    }
  })
})

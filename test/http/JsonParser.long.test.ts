import { Either, FastCheck } from "effect"
import { stringify } from "../../src/domain/JsonSource.ts"
import { parseJson } from "../../src/http/body/JsonParser.ts"
import * as EventLoop from "../../src/services/runtime/EventLoop.ts"
import { runs } from "../harness/Cases.ts"
import { exactTexts } from "../harness/fixtures/ExactTexts.ts"
import { assert, describe, it } from "../harness/It.ts"

const limits = { levels: 10, values: 1_000, members: 100, nameBytes: 500, numberBytes: 400 }

const parse = (text: string | Buffer, over: Partial<typeof limits> = {}) =>
  EventLoop.runAtOnce(parseJson(Buffer.from(text), { ...limits, ...over }))

const reasonOf = (text: string, over: Partial<typeof limits> = {}) => {
  const parsed = parse(text, over)
  return Either.isLeft(parsed) ? parsed.left.reason : "parsed"
}

/** What `JSON.parse` makes of a text; `syntax` where it is none. */
const native = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return "syntax"
  }
}

const ours = (text: string): unknown => {
  const parsed = parse(text, { levels: 1_000, values: 100_000, members: 10_000 })
  return Either.isRight(parsed) ? parsed.right : parsed.left.reason
}

const assertSame = (text: string) => {
  const [one, other] = [ours(text), native(text)]
  assert.deepStrictEqual(one, other)
  // deepStrictEqual looks at neither the order of names nor at -0.
  assert.strictEqual(JSON.stringify(one), JSON.stringify(other))
}

describe("the parser in steps", () => {
  it("reads any document as JSON.parse does", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.jsonValue(), FastCheck.constantFrom(undefined, 1, "\t"), (value, space) =>
        assertSame(JSON.stringify(value, null, space))
      ),
      { numRuns: runs(1_000) }
    )
  })

  it("reads any string as JSON.parse does, escaped or not", () => {
    const escaped = (text: string) =>
      Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
    FastCheck.assert(
      FastCheck.property(FastCheck.string({ unit: "binary" }), (text) => {
        assertSame(JSON.stringify(text))
        assertSame(`["${escaped(text)}"]`)
      }),
      { numRuns: runs(500) }
    )
  })

  it("refuses what JSON.parse refuses: documents with one thing replaced, added or left out", () => {
    const characters = FastCheck.constantFrom(
      ...`[]{}:,"\\0 1-+.eEtu/\n\u0001é`.split(""),
      "",
      '\\"',
      "null",
      "\\u12",
      "1e9"
    )
    FastCheck.assert(
      FastCheck.property(
        FastCheck.jsonValue(),
        FastCheck.nat(),
        FastCheck.nat(2),
        characters,
        (value, place, removed, inserted) => {
          const text = JSON.stringify(value)
          const at = place % (text.length + 1)
          assertSame(text.slice(0, at) + inserted + text.slice(at + removed))
        }
      ),
      { numRuns: runs(5_000) }
    )
  })

  it("agrees with JSON.parse on the corners of the grammar", () => {
    const texts = [
      ["", " ", "[", "]", "{", "}", "[,]", "[1,]", "{,}", '{"a"}', '{"a":}', '{"a":1,}', "{1:2}", "[1 2]", "1 2"],
      ["01", "-", "-0", "1.", ".5", "1e", "1e+", "1E400", "-1e-400", "0x1", "NaN", "Infinity", "nul", "truefalse"],
      ['"', '"\\"', '"\\x"', '"\\u12"', '"\\u12g4"', '"a\nb"', '"\\ud83d\\ude00"', '"\u2028"', "'a'"],
      ['{"a":1,"a":2,"b":3,"a":4}', '{"2":1,"1":2,"b":3}', '{"__proto__":{"a":1}}', '{"":0}', " [ 1 , 2 ] \n\t\r"],
      ["\u00a0 1", "[1]\u0000", "/**/1", "[1]]", '{"a":[{"b":[]}]}', "[[[[]]]]"]
    ].flat()
    for (const text of texts) assertSame(text)
    assert.notProperty(ours('{"__proto__":{"a":1}}'), "a")
  })

  it("reads long strings in pieces, wherever characters and escapes fall", () => {
    const long = 200_000
    for (const unit of ["x", "é", "漢", "😀", "\n", "\\", '"', "\u0001", "a\\é"]) {
      for (const shift of [0, 1, 2, 3, 4, 5]) assertSame(JSON.stringify("_".repeat(shift) + unit.repeat(long)))
    }
    for (const unit of ["\\u00e9", "\\ud83d\\ude00", "\\/"]) assertSame(`"_${unit.repeat(50_000)}"`)
    for (const bad of [`"${"x".repeat(long)}`, `"${"\\\\".repeat(long)}\\"`, `"${"é".repeat(long)}\\q"`])
      assertSame(bad)
  })

  it("reads a lone surrogate as U+FFFD, in strings and names, wherever a long string is cut", () => {
    assert.deepStrictEqual(ours(String.raw`{"\udc00a":["\ud83d","\\ud83d","\ud83d\ude00"]}`), {
      "\ufffda": ["\ufffd", String.raw`\ud83d`, "😀"]
    })
    for (const shift of [0, 1, 2, 3, 4, 5]) {
      const start = "_".repeat(shift)
      const [pair, half] = [String.raw`\ud83d\ude00`, String.raw`\ude00`]
      assert.isTrue(ours(`"${start}${pair.repeat(20_000)}"`) === start + "😀".repeat(20_000))
      assert.isTrue(ours(`"${start}${half.repeat(40_000)}"`) === start + "\ufffd".repeat(40_000))
    }
  })

  it("keeps what the text says of numbers and of the order of names", () => {
    for (const text of exactTexts) assert.strictEqual(stringify(ours(text)), text)
  })

  it("reads white space of any length", () => {
    const blank = " \n".repeat(100_000)
    assertSame(`${blank}{${blank}"a"${blank}:${blank}[${blank}1${blank},${blank}2${blank}]${blank}}${blank}`)
  })

  it("stops at its limits and not before", () => {
    const nest = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    const list = (values: number) =>
      `[${Array(values - 1)
        .fill("0")
        .join(",")}]`
    const object = (members: number) => `{${Array.from({ length: members }, (_, at) => `"${at}":0`).join(",")}}`
    for (const [make, limit, reason] of [
      [nest, limits.levels, "levels"],
      [list, limits.values, "values"],
      [object, limits.members, "members"],
      [(bytes: number) => `{"${"n".repeat(bytes)}":0}`, limits.nameBytes, "nameBytes"],
      [(digits: number) => "1".repeat(digits), limits.numberBytes, "numberBytes"]
    ] as const) {
      assert.strictEqual(reasonOf(make(limit)), "parsed")
      assert.strictEqual(reasonOf(make(limit + 1)), reason)
    }
  })

  it("stops where a limit is passed, whatever follows", () => {
    const [open, rest] = ["[".repeat(limits.levels + 1), "never read"]
    assert.strictEqual(reasonOf(open + rest), "levels")
    assert.strictEqual(reasonOf(`[${"{},".repeat(limits.values)}${rest}`), "values")
  })

  it("yields often: no step takes long", () => {
    const steps = parseJson(Buffer.from(`["${"x".repeat(4_000_000)}",${Array(900).fill("{}").join(",")}]`), limits)
    let count = 1
    while (steps.next().done !== true) count++
    assert.isAbove(count, 60)
  })
})

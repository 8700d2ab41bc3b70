import { Effect } from "effect"
import { parseBody } from "../../../src/http/body/BodyReader.ts"
import { assert, describe, it } from "../../harness/It.ts"

const nest = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
const mark = "\ufeff"
/** White space makes a document large without changing what it says. */
const blank = " ".repeat(100_000)

describe("the reader of JSON bodies", () => {
  for (const [size, padding] of [
    ["small", ""],
    ["large", blank]
  ] as const) {
    const read = (text: string | Buffer) => parseBody(Buffer.concat([Buffer.from(text), Buffer.from(padding)]))
    const message = (text: string | Buffer) => Effect.map(Effect.flip(read(text)), (problem) => problem.message)

    it.effect(`accepts a ${size} body with one byte order mark`, function* () {
      assert.deepStrictEqual(yield* read(`${mark}{"a":"é漢😀${mark}"}`), { a: `é漢😀${mark}` })
      assert.strictEqual(yield* message(`${mark}${mark}1`), "The body is not valid JSON.")
      assert.strictEqual(yield* message(mark), "The body is not valid JSON.")
    })

    it.effect(`refuses a ${size} body that is not UTF-8 at any position`, function* () {
      for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xfe, 0xff]]) {
        const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
        const problem = yield* Effect.flip(read(body))
        assert.deepInclude(problem, { message: "The body is not valid UTF-8.", param: null })
      }
    })

    it.effect(`refuses a ${size} body that nests too deep or is not JSON`, function* () {
      assert.deepStrictEqual(yield* read(nest(128)), JSON.parse(nest(128)))
      const tooDeep = "The body must nest at most 128 levels deep."
      for (const levels of [129, 15_000]) assert.strictEqual(yield* message(nest(levels)), tooDeep)
      assert.strictEqual(yield* message('{"a":'), "The body is not valid JSON.")
    })
  }

  it.effect("refuses a body that would take long, with the reason", function* () {
    const values = (count: number) => Buffer.from(`[${Array(count).fill("{}").join(",")}]`)
    const object = (members: number) =>
      Buffer.from(`{${Array.from({ length: members }, (_, at) => `"k${at}":${blank.slice(0, 20)}0`).join(",")}}`)
    assert.deepStrictEqual(
      yield* parseBody(values(99_999)),
      Array.from({ length: 99_999 }, () => ({}))
    )
    for (const [body, message] of [
      [values(100_000), "The body must hold at most 100,000 values."],
      [object(5_001), "An object in the body must have at most 5,000 members."],
      [Buffer.from(`{"${"k".repeat(70_000)}":0}`), "The name of an object's member must have at most 8,192 bytes."],
      [Buffer.from("1".repeat(70_000)), "A number in the body must have at most 1,024 characters."]
    ] as const) {
      assert.deepInclude(yield* Effect.flip(parseBody(body)), { message, param: null })
    }
  })
})

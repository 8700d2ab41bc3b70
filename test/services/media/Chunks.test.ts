import { randomBytes } from "node:crypto"
import { Base64Field, type ByteChunks, chunksOf, jsonChunks } from "../../../src/services/media/Base64.ts"
import { assert, describe, it } from "../../harness/It.ts"

const mark = "a mark that nobody can guess"
const MiB = 1024 * 1024

const whole = (pieces: ByteChunks): string => {
  const bytes = Buffer.concat([...pieces])
  assert.strictEqual(pieces.length, bytes.length)
  return bytes.toString("utf8")
}

describe("JSON in pieces", () => {
  const one = randomBytes(10)
  const other = randomBytes(2 * MiB + 1)

  it("equals the JSON in one piece", () => {
    const document = (first: unknown, second: unknown) => ({
      'quo"ted': "é€😀\u0000\ud800",
      nested: [{ data: first }, null, 1.5, { left: undefined, out: [second, first] }]
    })
    const url = `data:image/png;base64,${other.toString("base64")}`
    const pieces = jsonChunks(document(new Base64Field(one), new Base64Field(other, "data:image/png;base64,")), mark)
    assert.isTrue(whole(pieces) === JSON.stringify(document(one.toString("base64"), url)))
    assert.isBelow(Math.max(...Array.from(pieces, ({ length }) => length)), 1.5 * MiB)
  })

  it("can be iterated again, and only in part", () => {
    const pieces = jsonChunks({ data: new Base64Field(other) }, mark)
    for (const piece of pieces) {
      assert.strictEqual(Buffer.from(piece).toString(), `{"data":"`)
      break
    }
    assert.isTrue(whole(pieces) === JSON.stringify({ data: other.toString("base64") }))
    assert.isTrue(whole(pieces) === whole(pieces))
  })

  it("is unchanged without large values", () => {
    assert.strictEqual(whole(jsonChunks({ a: ["b"] }, mark)), `{"a":["b"]}`)
  })

  it("refuses a mark that occurs in the value", () => {
    assert.throws(() => jsonChunks({ text: `with ${mark} in it`, data: new Base64Field(one) }, mark), /the mark occurs/)
  })
})

describe("pieces", () => {
  it("are as long as their parts", () => {
    assert.strictEqual(whole(chunksOf([])), "")
    assert.strictEqual(whole(chunksOf([Buffer.from("é"), Buffer.from("x")])), "éx")
  })
})

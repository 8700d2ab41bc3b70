import { Either } from "effect"
import { decodeTextFile, TextFileDecoder } from "../../src/domain/TextDecoding.ts"
import { assert, describe, it } from "../harness/It.ts"

const text = "naïve 模型 €\n"
const little = Buffer.from(`\ufeff${text}`, "utf16le")

describe("the text of a file", () => {
  it("is the same in every encoding, whole or byte by byte", () => {
    for (const bytes of [Buffer.from(text), Buffer.from(`\ufeff${text}`), little, Buffer.from(little).swap16()]) {
      assert.strictEqual(Either.getOrThrow(decodeTextFile(bytes)), text)
      const decoder = new TextFileDecoder()
      const pieces = Array.from(bytes, (byte) => Either.getOrThrow(decoder.decode(Uint8Array.of(byte))))
      assert.strictEqual(pieces.join("") + Either.getOrThrow(decoder.end()), text)
    }
  })

  it("may be shorter than a byte order mark", () => {
    for (const short of ["", "a", "ab"])
      assert.strictEqual(Either.getOrThrow(decodeTextFile(Buffer.from(short))), short)
    assert.strictEqual(Either.getOrThrow(decodeTextFile(Buffer.from("\ufeff"))), "")
    assert.strictEqual(Either.getOrThrow(decodeTextFile(Buffer.from("\ufeff", "utf16le"))), "")
  })

  it("is refused with NUL characters, as UTF-16 without a mark and UTF-32 have them", () => {
    for (const bytes of [Buffer.from("ab", "utf16le"), Buffer.from("fffe000061000000", "hex")]) {
      assert.deepStrictEqual(decodeTextFile(bytes), Either.left("it contains NUL characters: save it as UTF-8"))
    }
  })
})

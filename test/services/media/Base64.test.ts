import { randomBytes } from "node:crypto"
import { base64Length, base64Pieces, fromBase64, toBase64 } from "../../../src/services/media/Base64.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("base64 in pieces", () => {
  for (const size of [0, 1, 2, 3, 4, 786_431, 786_432, 786_433, 786_434, 1_572_864, 1_572_865]) {
    it(`of ${size} bytes is the text that it is in one`, () => {
      // A view into a larger buffer: what is around it must not be read.
      const bytes = new Uint8Array(randomBytes(size + 7).buffer, 0, size + 7).subarray(5, 5 + size)
      const text = Buffer.concat([...base64Pieces(bytes)]).toString("latin1")
      assert.isTrue(text === Buffer.from(bytes).toString("base64"))
      assert.isTrue(text === toBase64(bytes))
      assert.strictEqual(base64Length(size), text.length)
    })
  }
})

describe("base64 as it is received", () => {
  const bytes = [0xfb, 0xff, 0xfe, 0x00]
  it.each([
    ["padded", "+//+AA=="],
    ["without padding", "+//+AA"],
    ["of the other alphabet", "-__-AA"],
    ["of both", "+_/-AA=="],
    ["in lines", "+//+\r\nAA==\r\n"],
    ["with blanks of any kind", " +/\t/+ A\n\u00a0A=="]
  ])("is read %s", (_, text) => assert.deepStrictEqual([...(fromBase64(text) ?? [])], bytes))

  it.each(["A", "AAAAA", "AA=A", "AA==AA==", "AA===", "A=A=", "{}", "é", "AAAA!", "data:image/png;base64,AAAA"])(
    "is none: %j",
    (text) => assert.isUndefined(fromBase64(text))
  )

  it("is decoded wherever its pieces end, in lines or not", () => {
    for (const size of [49_151, 49_152, 49_153, 98_304, 150_001]) {
      const large = randomBytes(size)
      const text = large.toString("base64")
      for (const form of [text, large.toString("base64url"), text.replaceAll(/.{76}/g, "$&\r\n"), ` ${text}\n\n`]) {
        assert.isTrue(large.equals(fromBase64(form) ?? new Uint8Array()), `${size} bytes`)
      }
      for (const bad of [`${text}A===`, text.replace(/^./, "*"), `AA==${text}`, `${"A".repeat(65_534)}==AA${text}`]) {
        assert.isUndefined(fromBase64(bad))
      }
    }
  })

  it("of no text is no bytes", () => assert.lengthOf(fromBase64("") ?? [1], 0))
})

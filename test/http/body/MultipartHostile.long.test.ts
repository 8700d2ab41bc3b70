import { Either, FastCheck } from "effect"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { boundary, filePart, formOf, formType, rawPart, readForm, readParts, textPart } from "./Forms.ts"

const malformed = "The form is not valid multipart/form-data."
const noBoundary = "The form has no boundary: let your HTTP client set `Content-Type: multipart/form-data; boundary=…`."
const cutOff = "The form is incomplete: its last boundary is missing."
const one = formOf([textPart("a", "1")])

describe("a malformed form", () => {
  it.each([
    ["no boundary", "multipart/form-data"],
    ["an empty boundary", "multipart/form-data; boundary="],
    ["a quoted empty boundary", 'multipart/form-data; boundary=""'],
    ["a boundary too long", formType("x".repeat(71))],
    ["a boundary that ends in a space", formType('"x "')],
    ["a boundary with a line's end", formType('"x\r\ny"')],
    ["two boundaries", "multipart/form-data; boundary=a; boundary=xYzZY"],
    ["an unclosed quote", 'multipart/form-data; boundary="xYzZY']
  ])("%s is refused", (_, type) => {
    assert.strictEqual(readParts(one, type), noBoundary)
  })

  const disposition = 'Content-Disposition: form-data; name="a"'

  it.each<[what: string, body: string | Buffer, message: string]>([
    ["nothing at all", "", "The form does not contain its boundary."],
    ["JSON", '{"a": 1}', "The form does not contain its boundary."],
    ["another boundary", formOf([textPart("a", "1")], "other"), "The form does not contain its boundary."],
    ["lines that end in LF", one.toString().replaceAll("\r\n", "\n"), malformed],
    ["lines that end in CR", one.toString().replaceAll("\r\n", "\r"), malformed],
    ["a boundary in mid-line", one.toString().replace("\r\n--xYzZY--", "--xYzZY--"), cutOff],
    ["a longer boundary", `--xYzZY1\r\n${disposition}\r\n\r\n1\r\n--xYzZY1--`, malformed],
    ["no last boundary", one.subarray(0, one.indexOf("\r\n--xYzZY--")), cutOff],
    ["a last boundary cut short", one.subarray(0, -3), malformed],
    ["headers cut short", `--xYzZY\r\n${disposition}`, cutOff],
    ["headers without their end", `--xYzZY\r\n${disposition}\r\n--xYzZY--`, malformed],
    ["no headers", formOf([Buffer.from("\r\n1")]), malformed],
    ["no disposition", formOf([rawPart("Content-Type: text/plain", "1")]), malformed],
    ["a disposition of another kind", formOf([rawPart('Content-Disposition: attachment; name="a"', "1")]), malformed],
    ["no name", formOf([rawPart('Content-Disposition: form-data; filename="a"', "1")]), malformed],
    ["two names", formOf([rawPart(`${disposition}; name="b"`, "1")]), malformed],
    ["two dispositions", formOf([rawPart(`${disposition}\r\n${disposition}`, "1")]), malformed],
    ["a name with an unclosed quote", formOf([rawPart('Content-Disposition: form-data; name="a', "1")]), malformed],
    ["a folded header", formOf([rawPart(`${disposition};\r\n filename="a"`, "1")]), malformed],
    ["a header without a name", formOf([rawPart(`: x\r\n${disposition}`, "1")]), malformed],
    ["a malformed header", formOf([rawPart(`evil\r\n${disposition}`, "1")]), malformed],
    ["a bare LF in a header", formOf([rawPart(`X: a\nb\r\n${disposition}`, "1")]), malformed],
    ["a NUL in a header", formOf([rawPart(`X: a\0b\r\n${disposition}`, "1")]), malformed],
    [
      "a form in a form",
      formOf([
        rawPart(`${disposition}\r\nContent-Type: multipart/mixed; boundary=b`, formOf([filePart("c", "1")], "b"))
      ]),
      "The form must not contain another form."
    ],
    [
      "base64",
      formOf([rawPart(`${disposition}\r\nContent-Transfer-Encoding: base64`, "MQ==")]),
      "The form has an encoded part: send its bytes without an encoding."
    ],
    [
      "a text not in UTF-8",
      formOf([rawPart(disposition, new Uint8Array([0xff]))]),
      "The form has a text part that is not UTF-8."
    ],
    [
      "headers without measure",
      formOf([rawPart(`${disposition}\r\nX: ${"a".repeat(16_384)}`, "1")]),
      "The form has a part with more than 16384 bytes of headers."
    ],
    [
      "parts without number",
      formOf(Array.from({ length: 101 }, () => textPart("a", "1"))),
      "The form has more than 100 parts."
    ]
  ])("%s is refused", (_, body, message) => {
    assert.strictEqual(readParts(body), message)
    assert.isNull(Either.flip(readForm(formType(), Buffer.from(body))).pipe(Either.getOrThrow).param)
  })

  it("is refused when it is cut at any byte", () => {
    const form = formOf([textPart("a", "1"), filePart("b", "PNG")])
    for (let length = 0; length < form.length - 2; length++) {
      assert.isString(readParts(form.subarray(0, length)), form.toString("latin1", 0, length))
    }
    assert.lengthOf(readParts(form), 2)
  })

  it("never makes the reader throw", () => {
    const piece = FastCheck.constantFrom(
      "--",
      boundary,
      "\r\n",
      "\r",
      "\n",
      ":",
      ";",
      '"',
      "\\",
      "=",
      "\0",
      "name",
      "a"
    )
    const line = FastCheck.constantFrom(`--${boundary}\r\n`, 'Content-Disposition: form-data; name="a"\r\n', "\r\n")
    const body = FastCheck.array(FastCheck.oneof(piece, line), { maxLength: 30 })
    FastCheck.assert(
      FastCheck.property(body, piece, (pieces, odd) => {
        readParts(pieces.join(""))
        readParts(formOf([textPart("a", "1")]), `multipart/form-data; boundary=${pieces.join("")}${odd}`)
      }),
      { numRuns: runs(2000) }
    )
  })

  it("is read in time that grows with its size only", () => {
    const bytes = 16 * 1024 * 1024
    const own = "a".repeat(70)
    for (const filler of ["a", "\r\n--", `\r\n--${"a".repeat(69)}`, "--", "\r\n\r\n", ";", '\\"']) {
      const body = Buffer.alloc(bytes, filler)
      readForm(formType(own), body)
      readForm(formType(own), Buffer.concat([Buffer.from(`--${own}\r\n`), body]))
      readForm(formType(own), formOf([filePart("a", body)], own))
    }
    const small = `--${boundary}\r\n`
    readForm(formType(), Buffer.alloc(bytes, small))
    readForm(formType(), formOf([rawPart(`Content-Disposition: form-data; name="${'\\"'.repeat(8000)}`, "")]))
    readForm(formType(), formOf([rawPart(`Content-Disposition: form-data${"; ".repeat(8000)}`, "")]))
  })
})

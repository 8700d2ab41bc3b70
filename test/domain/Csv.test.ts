import { encodeCsv } from "../../src/domain/Csv.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a CSV document", () => {
  it("has a line of names, then one for each row", () => {
    assert.strictEqual(
      encodeCsv(
        ["a", "b"],
        [
          ["x", 1],
          [null, -2.5]
        ]
      ),
      "a,b\r\nx,1\r\n,-2.5\r\n"
    )
    assert.strictEqual(encodeCsv(["a"], []), "a\r\n")
  })

  it.each([
    ["a,b", '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ["two\nlines", "two lines"],
    ["\u001b[31mred\u202e", `" [31mred "`],
    [" padded ", '" padded "'],
    ["Grüße", "Grüße"],
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["＝1+1", "'＝1+1"],
    ["\t=1", "' =1"],
    ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`]
  ])("writes the text %j as %s", (text, cell) => {
    assert.strictEqual(encodeCsv([], [[text]]), `\r\n${cell}\r\n`)
  })
})

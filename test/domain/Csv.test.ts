import { encodeCsv } from "../../src/domain/Csv.ts"
import { assert, describe, it } from "../harness/It.ts"

/** What spreadsheets run, also behind white space. */
const formula = /^[\s\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]/

/** The cells of a document as a spreadsheet reads them: quotes count only where a cell begins, and end anywhere. */
const cellsOf = (document: string, separator: string): ReadonlyArray<string> => {
  const cells: Array<string> = []
  let at = 0
  const isEnd = () => at >= document.length || document.startsWith(separator, at) || /[\r\n]/.test(document[at] ?? "")
  while (at < document.length) {
    let cell = ""
    if (document[at] === '"') {
      for (at++; at < document.length; at++) {
        if (document[at] !== '"') cell += document[at]
        else if (document[at + 1] === '"') cell += document[++at]
        else break
      }
      at++
    }
    while (!isEnd()) cell += document[at++]
    cells.push(cell)
    at += document.startsWith("\r\n", at) ? 2 : 1
  }
  return cells
}

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
    ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
    ["a;b", '"a;b"'],
    ["a;=1+1", `"a;'=1+1"`],
    ["a; +1;-1", `"a;' +1;'-1"`],
    ['a;"=1+1', `"a;'""=1+1"`]
  ])("writes the text %j as %s", (text, cell) => {
    assert.strictEqual(encodeCsv([], [[text]]), `\r\n${cell}\r\n`)
  })

  const starts = ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff201"]
  const befores = ["", " ", '"', '""', '" "', "'", "\u00a0", "\u200b", "\ufeff"]
  const separators = [",", ";", "\t", "\n", "\r", "\r\n", "\u0085", "\u2028", '";', ';"', ";;", ";\t", '"\n"', '";"']

  it.each([",", ";", "\t"])("has no formula where a spreadsheet separates cells by %j", (separator) => {
    for (const first of ["x", "", '"', " "])
      for (const between of separators)
        for (const before of befores)
          for (const start of starts) {
            const text = `${first}${between}${before}${start};${before}${start}`
            const lines = encodeCsv(["name", "text"], [["name", text, text, text.slice(first.length), 1]])
            for (const cell of cellsOf(lines, separator)) assert.notMatch(cell, formula, JSON.stringify([text, lines]))
          }
  })

  it("keeps cells whole for readers that split at commas", () => {
    const texts = ["a;b", 'a;"b"', "a,b;c", ";", '";"']
    assert.deepStrictEqual(cellsOf(encodeCsv(["text"], [texts]), ",").slice(1), texts)
  })
})

import { type Fields, table, textWidth, truncate } from "../../src/cli/Output.ts"
import { assert, describe, it } from "../harness/It.ts"

const row = {
  id: "org_01a204dc0f1a7c03",
  name: "A customer with quite a long name",
  note: "-".repeat(30),
  expires_at: null,
  balance_usd: 12_500_000_000n,
  held_usd: 0n
}
const columns = ["id", "name", "note", "expires_at", "balance_usd", "held_usd"]

const linesAt = (width: number, rows: ReadonlyArray<Fields> = [row]) => table(rows, columns, "", width).split("\n")

const widest = (lines: ReadonlyArray<string>) => Math.max(...lines.map(textWidth))

describe("a table", () => {
  it("is whole where it is piped, and where the terminal is wide enough", () => {
    const whole = table([row], columns, "")
    assert.strictEqual(whole.split("\n").length, 2)
    assert.strictEqual(table([row], columns, "", widest(whole.split("\n"))), whole)
    assert.include(whole, row.name)
  })

  it("cuts the widest prose first", () => {
    const [heading = "", line = ""] = linesAt(110)
    assert.isAtMost(widest([heading, line]), 110)
    assert.match(heading, /^ID +NAME +NOTE +EXPIRES_AT +BALANCE_USD +HELD_USD$/)
    assert.match(line, /^org_01a204dc0f1a7c03 {2}A customer.*… {2}-+… {2}- +12\.50 +0\.00$/)
  })

  it("hides columns without a value, then those on the right, and says which", () => {
    const [heading = "", line = "", remark] = linesAt(76)
    assert.match(heading, /^ID +NAME +NOTE +BALANCE_USD +HELD_USD$/)
    assert.match(line, / 12\.50 +0\.00$/)
    assert.strictEqual(remark, "1 column is hidden to fit: expires_at. Use --json for all.")
    const narrow = linesAt(50)
    assert.isAtMost(widest(narrow.slice(0, 2)), 50)
    assert.strictEqual(narrow[2], "3 columns are hidden to fit: expires_at, balance_usd, held_usd. Use --json for all.")
  })

  it("never cuts an id or an amount, however narrow the terminal is", () => {
    for (let width = 1; width < 120; width++) {
      const [heading = "", line = ""] = linesAt(width)
      assert.include(line, row.id, String(width))
      assert.strictEqual(heading.includes("BALANCE_USD"), line.includes("12.50"), String(width))
    }
    const identified = table([{ at: "now", request_id: "req_0123456789" }], ["at", "request_id"], "", 5)
    assert.include(identified, "req_0123456789")
  })

  it("aligns wide characters, and shows no control character", () => {
    const named = (name: string) => ({ ...row, note: null, name })
    const names = ["日本語のお客様", "emoji 👩‍🚀 🇩🇪 ❤️", "e\u0301tude", "\u001b[2Jgone\r\n\u202e\u0007x", "plain"]
    const [heading = "", ...lines] = linesAt(200, names.map(named))
    const column = heading.indexOf("NOTE")
    for (const line of lines) {
      assert.notMatch(line, /[\p{C}\p{Zl}\p{Zp}]/u)
      assert.strictEqual(textWidth(line.slice(0, line.indexOf("  -  "))) <= column - 2, true, line)
      assert.strictEqual(textWidth(line), textWidth(lines[0] ?? ""))
    }
  })
})

describe("a text", () => {
  it("is as wide as the terminal shows it", () => {
    const widths = ["", "plain", "日本", "é", "e\u0301", "👍🏽", "🇩🇪", "ｆｕ"].map(textWidth)
    assert.deepStrictEqual(widths, [0, 5, 4, 1, 1, 2, 2, 4])
  })

  it("is cut between characters, never within one", () => {
    assert.strictEqual(truncate("plain", 5), "plain")
    assert.strictEqual(truncate("plain", 4), "pla…")
    assert.strictEqual(truncate("日本語", 4), "日…")
    assert.strictEqual(truncate("a👍🏽b", 3), "a…")
  })
})

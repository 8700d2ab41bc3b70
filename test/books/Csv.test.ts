import { CsvReader, longestRow } from "../../src/books/CsvReader.ts"
import { parseTime, toNano } from "../../src/books/Values.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a file of books", () => {
  it("is read alike however its text is cut", () => {
    const text = 'a,"b ""c"", d"\r\n,"e\nf"\n\ng'
    const whole = [["a", 'b "c", d'], ["", "e\nf"], [""], ["g"]]
    for (const size of [1, 2, 3, 100]) {
      const reader = new CsvReader()
      const rows = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
        reader.read(text.slice(index * size, (index + 1) * size))
      ).flat()
      assert.deepStrictEqual([...rows, ...(reader.end() ?? [])], whole)
    }
  })

  it("ends with a quote that is closed", () => {
    const reader = new CsvReader()
    reader.read('a,"b')
    assert.isUndefined(reader.end())
  })

  it("is not read on in a line without an end", () => {
    const reader = new CsvReader()
    reader.read(`a,"${"b".repeat(longestRow / 2)}"\n"${"b".repeat(longestRow / 2)}`)
    assert.isFalse(reader.isTooLong)
    reader.read("\n".repeat(longestRow / 2))
    assert.isTrue(reader.isTooLong)
  })
})

describe("an amount of a vendor", () => {
  it("is exact, and rounded to the nano-dollar where it is finer", () => {
    assert.deepStrictEqual(
      ["0.06", 1e-7, "199.99999", "0.0000000005", "0.0000000004", "-2", "1e3"].map((value) => toNano(value)),
      [60_000_000n, 100n, 199_999_990_000n, 1n, 0n, -2_000_000_000n, 1_000_000_000_000n]
    )
    assert.strictEqual(toNano("123.78912", 2), 1_237_891_200n)
    assert.strictEqual(toNano(45_000_000, 9), 45_000_000n)
  })

  it("is refused where it is none, or beyond all reason", () => {
    for (const value of [
      "",
      "1,5",
      "NaN",
      Number.NaN,
      Number.POSITIVE_INFINITY,
      null,
      {},
      "1e300",
      "2000000000",
      "1e999"
    ]) {
      assert.isUndefined(toNano(value))
    }
  })
})

describe("a time of a vendor", () => {
  it("is UTC where it names no zone", () => {
    const at = Date.UTC(2026, 9, 1, 2)
    for (const text of [
      "2026-10-01T02:00:00Z",
      "2026-10-01 02:00:00",
      "2026-10-01 02:00:00 UTC",
      "2026-10-01T04:00:00+02:00",
      "2026-10-01T02:00",
      String(at / 1000)
    ]) {
      assert.strictEqual(parseTime(text), at)
    }
    for (const text of [
      "",
      "2026-13-01",
      "2026-02-31",
      "2026-02-29T01:00:00Z",
      "yesterday",
      "7d",
      "2026-10-01T25:00:00Z"
    ]) {
      assert.isUndefined(parseTime(text), text)
    }
    assert.strictEqual(parseTime("2028-02-29"), Date.UTC(2028, 1, 29))
  })
})

import { formatLocal, formatMillis, formatSpan, formatUtc, parseMoment } from "../../src/console/format/Dates.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a moment", () => {
  it("is formatted in UTC and in local time", () => {
    const at = Date.parse("2026-03-01T23:05:09Z") / 1000
    assert.strictEqual(formatUtc(at), "2026-03-01 23:05:09")
    assert.strictEqual(Date.parse(formatLocal(at)) / 1000, at)
  })

  it("of a filter is a duration before now, or a local time", () => {
    assert.strictEqual(parseMoment("90m", 1_000_000), 1_000_000 - 5400)
    assert.strictEqual(parseMoment("24h", 1_000_000), 1_000_000 - 86_400)
    assert.strictEqual(parseMoment("7d", 1_000_000.7), 1_000_000 - 7 * 86_400)
    assert.strictEqual(parseMoment("2026-03-01T10:00", 0), Date.parse("2026-03-01T10:00") / 1000)
  })

  it("of a filter is a UTC day or month, in any zone", () => {
    const now = Date.parse("2026-11-24T21:31:53Z") / 1000
    assert.strictEqual(parseMoment("yesterday", now), Date.parse("2026-11-23T00:00Z") / 1000)
    assert.strictEqual(parseMoment("last-month", now), Date.parse("2026-10-01T00:00Z") / 1000)
  })

  it("of an invalid filter is undefined", () => {
    for (const text of [undefined, "", "soon", "5y", "2026-02-31", "2026-02-31T10:00"])
      assert.isUndefined(parseMoment(text, 0))
  })
})

it("a span has at most two units", () => {
  assert.deepStrictEqual([-1, 0, 59.9, 60, 3661, 90_000, 86_400 * 9 + 60].map(formatSpan), [
    "0 s",
    "0 s",
    "59 s",
    "1 min",
    "1 h 1 min",
    "1 d 1 h",
    "9 d"
  ])
})

it("durations are formatted in a suitable unit", () => {
  assert.deepStrictEqual([0, 12.4, 999, 1234, 59_000, 61_000].map(formatMillis), [
    "0 ms",
    "12 ms",
    "999 ms",
    "1.23 s",
    "59 s",
    "1 min 1 s"
  ])
})

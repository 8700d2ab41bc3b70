import {
  beginningOf,
  calendarWords,
  isCalendarWord,
  moment,
  pastForms,
  pastMoment,
  toPast
} from "../../src/domain/Moment.ts"
import { assert, describe, it } from "../harness/It.ts"

const beginnings = (now: string) =>
  calendarWords.map((word) => new Date(beginningOf(word, Date.parse(now))).toISOString().slice(0, 16))

describe("a UTC day or month", () => {
  it("begins at its midnight", () => {
    assert.deepStrictEqual(beginnings("2026-11-24T21:31:53.123Z"), [
      "2026-11-24T00:00",
      "2026-11-23T00:00",
      "2026-11-01T00:00",
      "2026-10-01T00:00"
    ])
  })

  it("has begun with its first millisecond, and not before", () => {
    assert.deepStrictEqual(beginnings("2027-01-01T00:00:00Z"), [
      "2027-01-01T00:00",
      "2026-12-31T00:00",
      "2027-01-01T00:00",
      "2026-12-01T00:00"
    ])
    assert.deepStrictEqual(beginnings("2028-02-29T23:59:59.999Z"), [
      "2028-02-29T00:00",
      "2028-02-28T00:00",
      "2028-02-01T00:00",
      "2028-01-01T00:00"
    ])
  })

  it("does not depend on a time zone", () => {
    assert.strictEqual(
      beginningOf("today", Date.parse("2026-03-29T01:30:00+14:00")),
      Date.parse("2026-03-28T00:00:00Z")
    )
  })
})

describe("a moment in the past", () => {
  const now = Date.parse("2026-11-24T21:31:53Z")
  const at = (text: string) => {
    const when = pastMoment(text)
    return when === undefined ? undefined : new Date(toPast(when, now)).toISOString()
  }

  it("may be a word for a day or month, and the error lists the words", () => {
    assert.strictEqual(at("yesterday"), "2026-11-23T00:00:00.000Z")
    assert.strictEqual(at("last-month"), "2026-10-01T00:00:00.000Z")
    assert.strictEqual(at("7d"), "2026-11-17T21:31:53.000Z")
    assert.strictEqual(at("2026-11-01"), "2026-11-01T00:00:00.000Z")
    for (const word of calendarWords) assert.include(pastForms, word)
  })

  it("is none of other words, of theirs in capitals, or of names of objects", () => {
    for (const text of ["tomorrow", "Today", "this month", "last_month", "", "constructor", "toString"]) {
      assert.isUndefined(pastMoment(text), text)
    }
  })

  it("does not accept words for future moments, such as the expiry of a key", () => {
    for (const word of calendarWords) {
      assert.isTrue(isCalendarWord(word))
      assert.isUndefined(moment(word))
    }
  })
})

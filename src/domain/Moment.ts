import { beginningOf, type CalendarWord, calendarWords, isCalendarWord } from "./Calendar.ts"

/** A point in time, or a distance from now; in milliseconds. */
export type Moment = { readonly at: number } | { readonly distance: number }

/** Of what has happened: or the beginning of a UTC day or month. */
export type PastMoment = Moment | { readonly beginning: CalendarWord }

const units = new Map([
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
  ["w", 604_800_000]
])

export const durationForms = "a duration such as 90s, 30m, 1h, 7d or 2w"
export const momentForms = `a date, a date and time, Unix seconds, or ${durationForms}`
export const pastForms = `a date, a date and time, Unix seconds, ${calendarWords.join(", ")}, or ${durationForms}`

/** The year 1: the database's calendar does not reach as far back as a date can. */
const earliest = -62_135_596_800_000
const farthest = 8.64e15

/** In milliseconds. */
export const duration = (text: string): number | undefined => {
  const [, amount = "", unit = ""] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  const length = units.get(unit)
  return length === undefined ? undefined : Number(amount) * length
}

/** Returns Unix milliseconds, or undefined for a day that does not exist: `Date.parse` reads February 31 as March 3. */
export const instantOf = (date: string, time = "00:00:00", zone = "Z"): number | undefined => {
  const at = Date.parse(`${date}T${time}${zone.toUpperCase()}`)
  return Number.isFinite(at) && new Date(Date.parse(date)).toISOString().startsWith(date) ? at : undefined
}

/** Returns Unix milliseconds of Unix seconds, a date, or a date and time. What names no zone is UTC, a date its midnight. */
export const instant = (text: string): number | undefined => {
  if (/^\d{9,11}(?:\.\d+)?$/.test(text)) return Number(text) * 1000
  const [, date, time, zone = "Z"] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?\s?(Z|UTC|[+-]\d{2}:?\d{2})?$/i.exec(text) ?? []
  return date === undefined ? undefined : instantOf(date, time, zone.replace(/^UTC$/i, "Z"))
}

export const moment = (text: string): Moment | undefined => {
  const [distance, at] = [duration(text), instant(text)]
  return distance !== undefined ? { distance } : at === undefined ? undefined : { at }
}

export const pastMoment = (text: string): PastMoment | undefined =>
  isCalendarWord(text) ? { beginning: text } : moment(text)

export const toPast = (when: PastMoment, now: number) => {
  if ("beginning" in when) return beginningOf(when.beginning, now)
  return Math.max(earliest, "at" in when ? when.at : now - when.distance)
}
export const toFuture = (when: Moment, now: number) =>
  "at" in when ? when.at : Math.min(farthest, now + when.distance)

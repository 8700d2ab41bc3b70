// The console bundles this file, so it imports nothing.

export const calendarWords = ["today", "yesterday", "this-month", "last-month"] as const
type CalendarWord = (typeof calendarWords)[number]

export const isCalendarWord = (text: string): text is CalendarWord => calendarWords.some((word) => word === text)

/** Returns the start of the word's UTC day or month, in Unix milliseconds. */
export const beginningOf = (word: CalendarWord, now: number): number => {
  const date = new Date(now)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (word === "today") return Date.UTC(year, month, day)
  if (word === "yesterday") return Date.UTC(year, month, day - 1)
  return Date.UTC(year, word === "this-month" ? month : month - 1)
}

/** A point in time, or a distance from now, in milliseconds. */
type Moment = { readonly at: number } | { readonly distance: number }

/** A moment in the past, or the beginning of a UTC day or month. */
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

/** The start of year 1, because PostgreSQL rejects some earlier dates that JavaScript has. */
const minInstant = -62_135_596_800_000
const maxInstant = 8.64e15

/** Returns milliseconds. */
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

/**
 * Parses Unix seconds, a date, or a date and time. Returns Unix milliseconds. The default zone is UTC, the default time
 * midnight.
 */
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
  return Math.max(minInstant, "at" in when ? when.at : now - when.distance)
}
export const toFuture = (when: Moment, now: number) =>
  "at" in when ? when.at : Math.min(maxInstant, now + when.distance)

// Read by the console too: it imports nothing.

export const calendarWords = ["today", "yesterday", "this-month", "last-month"] as const
export type CalendarWord = (typeof calendarWords)[number]

export const isCalendarWord = (text: string): text is CalendarWord => calendarWords.some((word) => word === text)

/** When the UTC day or month of the word begins, in Unix milliseconds. */
export const beginningOf = (word: CalendarWord, now: number): number => {
  const date = new Date(now)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (word === "today") return Date.UTC(year, month, day)
  if (word === "yesterday") return Date.UTC(year, month, day - 1)
  return Date.UTC(year, word === "this-month" ? month : month - 1)
}

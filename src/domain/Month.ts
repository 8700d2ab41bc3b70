import { DateTime } from "effect"

/** A UTC month. */
export interface Month {
  /** Such as `2026-11`. */
  readonly name: string
  /** The start, in Unix milliseconds. */
  readonly from: number
  /** The exclusive end, in Unix milliseconds. */
  readonly to: number
}

export const monthForms = "a month such as 2026-11"

/** Returns the month of a time from 1970 to 9999. */
export const monthAt = (at: number): Month => {
  const start = DateTime.startOf(DateTime.unsafeMake(at), "month")
  return {
    name: DateTime.formatIsoDateUtc(start).slice(0, 7),
    from: DateTime.toEpochMillis(start),
    to: DateTime.toEpochMillis(DateTime.add(start, { months: 1 }))
  }
}

export const month = (text: string): Month | undefined =>
  /^(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])$/.test(text) ? monthAt(Date.parse(text)) : undefined

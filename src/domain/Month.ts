/** A month of UTC, in Unix milliseconds up to and not including `to`. */
export interface Month {
  /** Such as `2026-11`. */
  readonly name: string
  readonly from: number
  readonly to: number
}

export const monthForms = "a month such as 2026-11"

export const month = (text: string): Month | undefined => {
  const [, year, number] = /^(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])$/.exec(text) ?? []
  if (year === undefined) return undefined
  const [from, to] = [Number(number) - 1, Number(number)].map((index) => Date.UTC(Number(year), index))
  return from === undefined || to === undefined ? undefined : { name: text, from, to }
}

/** The month of a time from 1970 to 9999. */
export const monthAt = (at: number): Month => {
  const date = new Date(at)
  const [year, index] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { name: date.toISOString().slice(0, 7), from: Date.UTC(year, index), to: Date.UTC(year, index + 1) }
}

/** Unix milliseconds, up to and not including `to`; infinite where it has no end. */
export interface Range {
  readonly from: number
  readonly to: number
}

export interface Bounds {
  /** From where on the totals have every row. */
  readonly filledFrom: number
  /** From where on every row is still there. */
  readonly rowsFrom: number
}

/** What is to be read from where; together they cover a time once. */
export interface UsageRanges {
  readonly rows: ReadonlyArray<Range>
  readonly hours: ReadonlyArray<Range>
  readonly days: ReadonlyArray<Range>
}

const hour = 3_600_000
const day = 24 * hour

const floor = (at: number, unit: number) => Math.floor(at / unit) * unit
const ceil = (at: number, unit: number) => Math.ceil(at / unit) * unit

const dropEmpty = (ranges: ReadonlyArray<Range>) => ranges.filter(({ from, to }) => from < to)

/** What has whole units of it, and what remains at its ends. */
const split = ({ from, to }: Range, unit: number) => {
  const whole = { from: ceil(from, unit), to: floor(to, unit) }
  if (whole.from >= whole.to) return { whole: [], ends: dropEmpty([{ from, to }]) }
  return {
    whole: [whole],
    ends: dropEmpty([
      { from, to: whole.from },
      { from: whole.to, to }
    ])
  }
}

/** Rows tell of broken hours and of what the totals lack yet; where they are gone, an hour counts by its beginning. */
export const rangesOf = ({ from, to }: Range, { filledFrom, rowsFrom }: Bounds, byHour: boolean): UsageRanges => {
  const toWhole = (at: number) => (at < rowsFrom ? ceil(at, hour) : at)
  const totalled = { from: Math.max(toWhole(from), filledFrom), to: toWhole(to) }
  const hours = split(totalled, hour)
  const days = byHour ? { whole: [], ends: hours.whole } : split(hours.whole[0] ?? { from: 0, to: 0 }, day)
  return {
    rows: dropEmpty([{ from, to: Math.min(to, filledFrom) }, ...hours.ends]),
    hours: days.ends,
    days: days.whole
  }
}

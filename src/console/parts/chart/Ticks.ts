/** From 0 in steps of 1, 2 or 5 times a power of ten, up to the first that is not below the most. */
export const valueTicks = (most: number, count = 3): ReadonlyArray<number> => {
  if (!(most > 0)) return [0, 1]
  const rough = most / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10) * power
  return Array.from({ length: Math.ceil((most / step) * 0.999_999) + 1 }, (_, at) =>
    Number((at * step).toPrecision(12))
  )
}

const hour = 3600
const day = 24 * hour
const steps = [hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 84 * day]

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

const labelOf = (at: number, isNewDay: boolean): string => {
  const date = new Date(at * 1000)
  if (isNewDay) return `${date.getDate()} ${months[date.getMonth()]}`
  return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`
}

/** Which of the times, in Unix seconds, begin a round hour or day of the reader's zone, at most so many. */
export const timeTicks = (
  times: ReadonlyArray<number>,
  most: number
): ReadonlyArray<{ readonly index: number; readonly label: string }> => {
  const local = times.map((at) => at - new Date(at * 1000).getTimezoneOffset() * 60)
  const begins = (index: number, step: number): boolean => {
    const [before, at] = [local[index - 1], local[index]]
    return before !== undefined && at !== undefined && Math.floor(before / step) !== Math.floor(at / step)
  }
  const indexes = (step: number) => times.flatMap((_, index) => (begins(index, step) ? [index] : []))
  const step = steps.find((one) => indexes(one).length <= most) ?? 365 * day
  return indexes(step).map((index) => ({ index, label: labelOf(times[index] ?? 0, begins(index, day)) }))
}

import { type Dimension, labelOf, type UsageRow } from "./UsageRow.ts"

export type Measure = "spend_usd" | "cost_usd" | "requests"

export interface Stack {
  /** The beginnings of days or hours, in Unix seconds, without gaps. */
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<{ readonly label: string; readonly values: ReadonlyArray<number> }>
}

const lengths = { day: 86_400, hour: 3600 } as const
export type Step = keyof typeof lengths

interface Wanted {
  readonly step: Step
  readonly by: Dimension | undefined
  readonly measure: Measure
  /** Where undefined, there are the days or hours from the first to the last with requests. */
  readonly since: number | undefined
  readonly until: number
}

const maxShown = 5
/** Amounts have nine decimals: sums of doubles have more. */
const round = (value: number): number => Math.round(value * 1e9) / 1e9

const timeOf = (row: UsageRow, step: Step): number => Date.parse(row[step] ?? "") / 1000

const fill = (moments: ReadonlyArray<number>, step: Step): ReadonlyArray<number> => {
  const length = lengths[step]
  const [first, last] = [Math.min(...moments), Math.max(...moments)].map((at) => Math.floor(at / length) * length)
  if (first === undefined || last === undefined || !Number.isFinite(last - first)) return []
  return Array.from({ length: (last - first) / length + 1 }, (_, index) => first + index * length)
}

/** The largest groups of each day or hour, and what is left of its total. */
export const stackOf = (
  totals: ReadonlyArray<UsageRow>,
  parts: ReadonlyArray<UsageRow>,
  { by, measure, since, step, until }: Wanted
): Stack => {
  const bounds = since === undefined ? [] : [since, until - 1]
  const times = fill([...totals.map((row) => timeOf(row, step)), ...bounds], step)
  const whole = new Map(totals.map((row) => [timeOf(row, step), row[measure]]))
  const groups = new Map<string, { id: string; label: string; sum: number; values: Map<number, number> }>()
  for (const row of parts) {
    if (by === undefined) break
    const id = row[by] ?? ""
    const group = groups.get(id) ?? { id, label: labelOf(row, by, false), sum: 0, values: new Map() }
    group.sum += row[measure]
    group.values.set(timeOf(row, step), row[measure])
    groups.set(id, group)
  }
  const largest = [...groups.values()].toSorted((a, b) => b.sum - a.sum).slice(0, maxShown)
  const rest = times.map((at) =>
    round((whole.get(at) ?? 0) - largest.reduce((sum, { values }) => sum + (values.get(at) ?? 0), 0))
  )
  const shown = largest.map(({ id, label, values }) => ({
    label: largest.some((other) => other.id !== id && other.label === label) ? `${label} ${id}` : label,
    values: times.map((at) => values.get(at) ?? 0)
  }))
  if (largest.length === 0) return { times, series: [{ label: "all", values: rest }] }
  return { times, series: rest.some((value) => value > 0) ? [...shown, { label: "all others", values: rest }] : shown }
}

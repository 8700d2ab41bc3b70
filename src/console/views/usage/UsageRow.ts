import type { UsagePage } from "../../../http/admin/UsageResource.ts"
import { utcMinuteOf } from "../../format/Dates.ts"
import { link, type Query } from "../../Route.ts"

interface DimensionFacts {
  readonly title: string
  /** The name of the request list's filter for this dimension. */
  readonly filter?: string
  /** Hidden from members. */
  readonly isInternal?: boolean
  /** A value that stands for several others. No filter finds its requests. */
  readonly collective?: string
  /** The duration of a day or hour. */
  readonly seconds?: number
}

const facts = {
  org: { title: "Organization", filter: "organization", isInternal: true },
  key: { title: "Key", filter: "key" },
  model: { title: "Model", filter: "model", collective: "unknown" },
  route: { title: "Route", filter: "route", isInternal: true },
  provider: { title: "Provider", isInternal: true },
  surface: { title: "Endpoint type", filter: "surface" },
  status: { title: "Status", filter: "status" },
  tag: { title: "Tag", filter: "tag", collective: "other" },
  day: { title: "Day (UTC)", seconds: 86_400 },
  hour: { title: "Hour (UTC)", seconds: 3600 }
} as const
export type Dimension = keyof typeof facts
export const dimensions: Readonly<Record<Dimension, DimensionFacts>> = facts

/** Amounts in USD. The totals cover all matching rows, not only this page. */
export type UsageAnswer = typeof UsagePage.Encoded
export type UsageRow = UsageAnswer["data"][number]

const isDimension = (text: string | undefined): text is Dimension =>
  text !== undefined && Object.hasOwn(dimensions, text)

/** Returns the one or two dimensions of the address. */
export const readDimensions = (
  by: string | undefined,
  thenBy: string | undefined
): readonly [Dimension] | readonly [Dimension, Dimension] => {
  const first = isDimension(by) ? by : "model"
  return isDimension(thenBy) && thenBy !== first ? [first, thenBy] : [first]
}

export const isOfTime = (dimension: Dimension): boolean => dimensions[dimension].seconds !== undefined

/** Returns the name of the row's value, or the value if it has none. `row.name` is the name in the first dimension. */
export const labelOf = (row: UsageRow, dimension: Dimension, isFirst: boolean): string => {
  const isNamed = dimension === "org" || dimension === "key"
  const name = isNamed ? (isFirst ? row.name : row[`${dimension}_name`]) : undefined
  return name ?? row[dimension] ?? "none"
}

const filterOf = (dimension: Dimension, value: string): Readonly<Record<string, string>> | undefined => {
  const { filter: name, seconds: length } = dimensions[dimension]
  if (length === undefined) return name === undefined ? undefined : { [name]: value }
  const from = Date.parse(value) / 1000
  return Number.isNaN(from) ? undefined : { since: utcMinuteOf(from), until: utcMinuteOf(from + length) }
}

/** Links to the requests of a row. Returns undefined if no filter finds exactly those, such as requests without a model. */
export const requestsOf = (row: UsageRow, by: ReadonlyArray<Dimension>, query: Query): string | undefined => {
  const { and: _and, by: _by, sort: _sort, ...filters } = query
  const valueFilters = by.map((dimension) => {
    const value = row[dimension]
    const isNamed = value !== null && value !== undefined && value !== dimensions[dimension].collective
    return isNamed ? filterOf(dimension, value) : undefined
  })
  return valueFilters.includes(undefined)
    ? undefined
    : link(["requests"], Object.assign({ ...filters }, ...valueFilters))
}

export type Measure = "spend_usd" | "cost_usd" | "requests"

interface Stack {
  /** Starts of days or hours, in Unix seconds, without gaps. */
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<{ readonly label: string; readonly values: ReadonlyArray<number> }>
}

const lengths = { day: 86_400, hour: 3600 } as const
export type Step = keyof typeof lengths

interface StackOptions {
  readonly step: Step
  readonly by: Dimension | undefined
  readonly measure: Measure
  /** If undefined, the stack begins with the first day or hour that has requests. */
  readonly since: number | undefined
  readonly until: number
}

const maxGroups = 5
/** Rounds to nine decimals, because sums of doubles have more. */
const round = (value: number): number => Math.round(value * 1e9) / 1e9

const timeOf = (row: UsageRow, step: Step): number => Date.parse(row[step] ?? "") / 1000

const fillGaps = (moments: ReadonlyArray<number>, step: Step): ReadonlyArray<number> => {
  const length = lengths[step]
  const [first, last] = [Math.min(...moments), Math.max(...moments)].map((at) => Math.floor(at / length) * length)
  if (first === undefined || last === undefined || !Number.isFinite(last - first)) return []
  return Array.from({ length: (last - first) / length + 1 }, (_, index) => first + index * length)
}

/** Returns one series for each of the largest groups of the whole range, and the rest of each total as `Other`. */
export const stackOf = (
  totals: ReadonlyArray<UsageRow>,
  parts: ReadonlyArray<UsageRow>,
  { by, measure, since, step, until }: StackOptions
): Stack => {
  const bounds = since === undefined ? [] : [since, until - 1]
  const times = fillGaps([...totals.map((row) => timeOf(row, step)), ...bounds], step)
  const totalByTime = new Map(totals.map((row) => [timeOf(row, step), row[measure]]))
  const groups = new Map<string, { id: string; label: string; sum: number; values: Map<number, number> }>()
  for (const row of parts) {
    if (by === undefined) break
    const id = row[by] ?? ""
    const group = groups.get(id) ?? { id, label: labelOf(row, by, false), sum: 0, values: new Map() }
    group.sum += row[measure]
    group.values.set(timeOf(row, step), row[measure])
    groups.set(id, group)
  }
  const topGroups = [...groups.values()].toSorted((a, b) => b.sum - a.sum).slice(0, maxGroups)
  const rest = times.map((at) =>
    round((totalByTime.get(at) ?? 0) - topGroups.reduce((sum, { values }) => sum + (values.get(at) ?? 0), 0))
  )
  const series = topGroups.map(({ id, label, values }) => ({
    label: topGroups.some((other) => other.id !== id && other.label === label) ? `${label} ${id}` : label,
    values: times.map((at) => values.get(at) ?? 0)
  }))
  if (topGroups.length === 0) return { times, series: [{ label: "All", values: rest }] }
  return { times, series: rest.some((value) => value > 0) ? [...series, { label: "Other", values: rest }] : series }
}

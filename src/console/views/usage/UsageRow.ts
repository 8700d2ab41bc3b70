import type { UsagePage } from "../../../http/admin/Usage.ts"
import { utcMinuteOf } from "../../format/Moment.ts"
import { link, type Query } from "../../Route.ts"

interface DimensionFacts {
  readonly title: string
  /** The filter of requests that finds those of a value. */
  readonly filter?: string
  /** Not for members. */
  readonly isInternal?: boolean
  /** The value that several share. */
  readonly collective?: string
  /** How long each value of a time is. */
  readonly seconds?: number
}

const known = {
  org: { title: "Organization", filter: "organization", isInternal: true },
  key: { title: "Key", filter: "key" },
  model: { title: "Model", filter: "model", collective: "unknown" },
  route: { title: "Route", filter: "route", isInternal: true },
  provider: { title: "Provider", isInternal: true },
  surface: { title: "Surface", filter: "surface" },
  status: { title: "Status", filter: "status" },
  tag: { title: "Tag", filter: "tag", collective: "other" },
  day: { title: "Day (UTC)", seconds: 86_400 },
  hour: { title: "Hour (UTC)", seconds: 3600 }
} as const
export type Dimension = keyof typeof known
export const dimensions: Readonly<Record<Dimension, DimensionFacts>> = known

/** Amounts in USD; the totals are those of everything that matches, whatever the page. */
export type UsageAnswer = typeof UsagePage.Encoded
export type UsageRow = UsageAnswer["data"][number]

const isDimension = (text: string | undefined): text is Dimension =>
  text !== undefined && Object.hasOwn(dimensions, text)

/** One or two, of what the address asks for. */
export const readDimensions = (
  by: string | undefined,
  thenBy: string | undefined
): readonly [Dimension] | readonly [Dimension, Dimension] => {
  const first = isDimension(by) ? by : "model"
  return isDimension(thenBy) && thenBy !== first ? [first, thenBy] : [first]
}

export const isOfTime = (dimension: Dimension): boolean => dimensions[dimension].seconds !== undefined

/** The name where there is one; `name` is that of the first dimension. */
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

/** The requests of a row; undefined where no filter finds just them, such as those without a model. */
export const requestsOf = (row: UsageRow, by: ReadonlyArray<Dimension>, query: Query): string | undefined => {
  const { and: _and, by: _by, sort: _sort, ...kept } = query
  const chosen = by.map((dimension) => {
    const value = row[dimension]
    const isNamed = value !== null && value !== undefined && value !== dimensions[dimension].collective
    return isNamed ? filterOf(dimension, value) : undefined
  })
  return chosen.includes(undefined) ? undefined : link(["requests"], Object.assign({ ...kept }, ...chosen))
}

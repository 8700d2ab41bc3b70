import type { UsagePage } from "../../../http/admin/Usage.ts"
import { utcMinuteOf } from "../../format/Moment.ts"
import { link, type Query } from "../../Route.ts"

export const dimensions = [
  "org",
  "key",
  "model",
  "route",
  "provider",
  "surface",
  "status",
  "tag",
  "day",
  "hour"
] as const
export type Dimension = (typeof dimensions)[number]

/** What members see nothing of. */
export const internalDimensions: ReadonlyArray<Dimension> = ["org", "route", "provider"]

/** Amounts in USD; the totals are those of everything that matches, whatever the page. */
export type UsageAnswer = typeof UsagePage.Encoded
export type UsageRow = UsageAnswer["data"][number]

const isDimension = (text: string | undefined): text is Dimension => dimensions.some((one) => one === text)

/** One or two, of what the address asks for. */
export const readDimensions = (
  by: string | undefined,
  thenBy: string | undefined
): readonly [Dimension] | readonly [Dimension, Dimension] => {
  const first = isDimension(by) ? by : "model"
  return isDimension(thenBy) && thenBy !== first ? [first, thenBy] : [first]
}

export const isOfTime = (dimension: Dimension): boolean => dimension === "day" || dimension === "hour"

/** The name where there is one; `name` is that of the first dimension. */
export const labelOf = (row: UsageRow, dimension: Dimension, isFirst: boolean): string => {
  const isNamed = dimension === "org" || dimension === "key"
  const name = isNamed ? (isFirst ? row.name : row[`${dimension}_name`]) : undefined
  return name ?? row[dimension] ?? "none"
}

const filters: Readonly<Partial<Record<Dimension, string>>> = {
  org: "organization",
  key: "key",
  model: "model",
  route: "route",
  surface: "surface",
  status: "status",
  tag: "tag"
}

/** Names of several. */
const collective: Readonly<Partial<Record<Dimension, string>>> = { model: "unknown", tag: "other" }

const seconds: Readonly<Partial<Record<Dimension, number>>> = { day: 86_400, hour: 3600 }

const filterOf = (dimension: Dimension, value: string): Readonly<Record<string, string>> | undefined => {
  const length = seconds[dimension]
  const name = filters[dimension]
  if (length === undefined) return name === undefined ? undefined : { [name]: value }
  const from = Date.parse(value) / 1000
  return Number.isNaN(from) ? undefined : { since: utcMinuteOf(from), until: utcMinuteOf(from + length) }
}

/** The requests of a row; undefined where no filter finds just them, such as those without a model. */
export const requestsOf = (row: UsageRow, by: ReadonlyArray<Dimension>, query: Query): string | undefined => {
  const { and: _and, by: _by, sort: _sort, ...kept } = query
  const chosen = by.map((dimension) => {
    const value = row[dimension]
    const isNamed = value !== null && value !== undefined && value !== collective[dimension]
    return isNamed ? filterOf(dimension, value) : undefined
  })
  return chosen.includes(undefined) ? undefined : link(["requests"], Object.assign({ ...kept }, ...chosen))
}

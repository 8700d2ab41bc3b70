import { formatUtc } from "../../format/Moment.ts"
import { link, type Query } from "../../Route.ts"
import type { Dimension, UsageRow } from "./UsageRow.ts"

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

/** As the filter bar has moments. */
const momentOf = (at: number): string => `${formatUtc(at).slice(0, 16).replace(" ", "T")}Z`

const filterOf = (dimension: Dimension, value: string): Readonly<Record<string, string>> | undefined => {
  const length = seconds[dimension]
  const name = filters[dimension]
  if (length === undefined) return name === undefined ? undefined : { [name]: value }
  const from = Date.parse(value) / 1000
  return Number.isNaN(from) ? undefined : { since: momentOf(from), until: momentOf(from + length) }
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

export const dimensions = ["org", "key", "model", "route", "provider", "surface", "status", "day", "hour"] as const
export type Dimension = (typeof dimensions)[number]

/** Amounts in USD. */
interface Sums {
  readonly requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cache_hit_rate: number | null
  readonly spend_usd: number
  readonly cost_usd: number
  readonly margin_usd: number | null
  /** Charged requests whose cost nobody knows. */
  readonly cost_unknown: number
}

/** What the rows are grouped by, and what it is called where it is an organization or a key. */
type Group = { readonly [D in Dimension]?: string | null } & {
  readonly name?: string | null
  readonly org_name?: string | null
  readonly key_name?: string | null
}

export type UsageRow = Sums & Group

export interface UsageAnswer {
  readonly data: ReadonlyArray<UsageRow>
  /** Of everything that matches, whatever the page. */
  readonly totals: Sums
  readonly has_more: boolean
  readonly next: string | null
}

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
export const labelOf = (row: Group, dimension: Dimension, isFirst: boolean): string => {
  const isNamed = dimension === "org" || dimension === "key"
  const name = isNamed ? (isFirst ? row.name : row[`${dimension}_name`]) : undefined
  return name ?? row[dimension] ?? "none"
}

import type { UsagePage } from "../../../http/admin/Usage.ts"

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

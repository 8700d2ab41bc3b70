import { nounFor } from "../../domain/Plural.ts"

/** Smaller numbers are less than a nano-dollar apart. */
const exactBelow = 2 ** 22

const group = (digits: string): string => digits.replace(/\B(?=(?:\d{3})+$)/g, ",")

export const formatCount = (count: number): string => group(String(Math.round(count)))

/** `1 request`, `1,200 requests`. */
export const formatCounted = (count: number, one: string, several?: string): string =>
  `${formatCount(count)} ${nounFor(count, one, several)}`

interface UsdParts {
  readonly sign: "" | "−"
  /** Dollars and whole cents. */
  readonly main: string
  /** The digits after the cents, without trailing zeros. */
  readonly fine: string
}

/** Every digit to the nano-dollar, or to more decimals: parts of an amount may be finer. */
export const partsOfUsd = (usd: number, precision = 9): UsdParts => {
  const size = Math.abs(usd)
  const [dollars = "0", decimals = ""] = (size < exactBelow ? size.toFixed(precision) : String(size)).split(".")
  return {
    sign: usd < 0 ? "−" : "",
    main: `$${group(dollars)}.${decimals.slice(0, 2).padEnd(2, "0")}`,
    fine: decimals.slice(2).replace(/0+$/, "")
  }
}

export const formatUsd = (usd: number): string => {
  const { fine, main, sign } = partsOfUsd(usd)
  return sign + main + fine
}

const [billions, millions, thousands, ones] = [
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""]
] as const

/** For axes and tiles of shares, not for amounts: at most two significant decimals. */
export const formatShort = (value: number): string => {
  const size = Math.abs(value)
  const [unit, suffix] = size >= 1e9 ? billions : size >= 1e6 ? millions : size >= 1e4 ? thousands : ones
  const scaled = value / unit
  return `${Number(scaled.toPrecision(Math.abs(scaled) >= 1000 ? 4 : 3))}${suffix}`
}

/** A share of 1 as a percentage. */
export const formatShare = (share: number): string => `${Number((share * 100).toPrecision(3))} %`

const nanoPerUsd = 1e9

const toNano = (usd: number): number => Math.round(usd * nanoPerUsd)

/** In whole nano-dollars, exact up to nine million dollars. */
export const subtractUsd = (from: number, amount: number): number => (toNano(from) - toNano(amount)) / nanoPerUsd

/** As `subtractUsd`. */
export const addUsd = (amount: number, other: number): number => (toNano(amount) + toNano(other)) / nanoPerUsd

/**
 * What is left of charges after their cost, such as `16.7 %`; null where nothing was charged. A margin leaves out what has no
 * known cost, as the cost does, so both together are the charges that it is of.
 */
export const formatMarginShare = (
  margin: number | null | undefined,
  cost: number | null | undefined
): string | null => {
  if (margin === null || margin === undefined || cost === null || cost === undefined) return null
  const charged = margin + cost
  // Sums of doubles miss zero by less than a nano-dollar.
  if (charged < 1e-9 / 2) return null
  const tenths = Math.round((margin / charged) * 1000)
  return `${tenths < 0 ? "−" : ""}${Math.abs(tenths) / 10} %`
}

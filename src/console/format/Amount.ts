import { changeByPercent } from "../../domain/Percent.ts"
import { nounFor } from "../../domain/Wording.ts"

/** Neighbouring doubles below this differ by less than a nano-dollar. */
const exactLimit = 2 ** 22

const group = (digits: string): string => digits.replace(/\B(?=(?:\d{3})+$)/g, ",")

export const formatCount = (count: number): string => group(String(Math.round(count)))

/** `1 request`, `1,200 requests`. */
export const formatCounted = (count: number, singular: string, plural?: string): string =>
  `${formatCount(count)} ${nounFor(count, singular, plural)}`

interface UsdParts {
  /** Sign, `$` and whole dollars. */
  readonly dollars: string
  /** At least two digits, without other trailing zeros. */
  readonly decimals: string
}

/** Splits an amount without rounding to less than a nano-dollar. Unit prices need a higher precision. */
export const partsOfUsd = (usd: number, precision = 9): UsdParts => {
  const size = Math.abs(usd)
  const [dollars = "0", decimals = ""] = (size < exactLimit ? size.toFixed(precision) : String(size)).split(".")
  return {
    dollars: `${usd < 0 ? "−" : ""}$${group(dollars)}`,
    decimals: decimals.replace(/0+$/, "").padEnd(2, "0")
  }
}

export const formatUsd = (usd: number): string => {
  const { decimals, dollars } = partsOfUsd(usd)
  return `${dollars}.${decimals}`
}

const [billions, millions, thousands, ones] = [
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""]
] as const

/** For axes: rounds, so do not use it for amounts of money. */
export const formatShort = (value: number): string => {
  const size = Math.abs(value)
  const [unit, suffix] = size >= 1e9 ? billions : size >= 1e6 ? millions : size >= 1e4 ? thousands : ones
  const scaled = value / unit
  return `${Number(scaled.toPrecision(Math.abs(scaled) >= 1000 ? 4 : 3))}${suffix}`
}

/** For axes: rounds to `$1.50` or `$12k`. */
export const formatShortUsd = (usd: number): string => `$${formatShort(usd).replace(/\.\d$/, "$&0")}`

/** Formats a fraction of 1 as a percentage. */
export const formatShare = (share: number): string => `${Number((share * 100).toPrecision(3))} %`

const nanoPerUsd = 1e9

const toNano = (usd: number): number => Math.round(usd * nanoPerUsd)

/** Returns a price less a discount in percent, rounded as the gateway rounds it. */
export const discountUsd = (price: number, percent: number): number =>
  Number(changeByPercent(BigInt(toNano(price)), -percent)) / nanoPerUsd

/** Subtracts in whole nano-dollars, exact up to nine million dollars. */
export const subtractUsd = (from: number, amount: number): number => (toNano(from) - toNano(amount)) / nanoPerUsd

/** Adds in whole nano-dollars, exact up to nine million dollars. */
export const addUsd = (amount: number, other: number): number => (toNano(amount) + toNano(other)) / nanoPerUsd

/**
 * Returns the margin as a share of the charges, such as `16.7 %`, or null if nothing was charged. Margin and cost both exclude
 * requests with unknown cost, so their sum is the charge of the others.
 */
export const formatMarginShare = (
  margin: number | null | undefined,
  cost: number | null | undefined
): string | null => {
  if (margin === null || margin === undefined || cost === null || cost === undefined) return null
  const charge = margin + cost
  // Sums of doubles that should be zero differ from it by less than a nano-dollar.
  if (charge < 1e-9 / 2) return null
  const tenths = Math.round((margin / charge) * 1000)
  return `${tenths < 0 ? "−" : ""}${Math.abs(tenths) / 10} %`
}

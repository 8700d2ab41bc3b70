import { Brand, Schema } from "effect"

/** Integer nano-dollars (1e-9 USD). */
export type NanoUsd = bigint & Brand.Brand<"NanoUsd">
export const NanoUsd = Brand.nominal<NanoUsd>()

export const zero: NanoUsd = NanoUsd(0n)

export const maxStored: NanoUsd = NanoUsd(2n ** 63n - 1n)

/** PostgreSQL's `bigint` arrives as a string. */
export const NanoUsdFromRow = Schema.BigInt.pipe(Schema.fromBrand(NanoUsd))

/** The maximum of one payment or adjustment. */
const maxEntered = 10n ** 18n

const isEnterable = (amount: bigint): boolean => amount <= maxEntered && amount >= -maxEntered

const nanoPerUsd = 1_000_000_000n
const decimal = /^(-?)(\d+)(?:\.(\d+))?$/

/**
 * Parses a decimal exactly: `"0.15"` is 150000000. Returns undefined for other notations and for more than nine decimals.
 */
export const fromUsd = (text: string): NanoUsd | undefined => {
  const match = decimal.exec(text.trim())
  if (match === null) return undefined
  const [, sign, integer = "", fraction = ""] = match
  const digits = fraction.replace(/0+$/, "")
  if (digits.length > 9) return undefined
  const nano = BigInt(integer) * nanoPerUsd + BigInt(digits.padEnd(9, "0"))
  return NanoUsd(sign === "-" ? -nano : nano)
}

/** As `fromUsd`, but also returns undefined for an amount above the maximum that operators may enter. */
export const parseEnteredUsd = (text: string): NanoUsd | undefined => {
  const amount = fromUsd(text)
  return amount !== undefined && isEnterable(amount) ? amount : undefined
}

const usdInput = (amount: string, isValid: (amount: NanoUsd) => boolean, remark = "") => {
  const limits = `up to 1000000000, with at most 9 decimals${remark}`
  return {
    isValid,
    /** The problem with an invalid amount, which follows the field's name in a message. */
    problem: `must be ${amount.replace(/,$/, "")}, ${limits}`,
    /** The accepted amounts, for the help of commands. */
    accepts: `${amount} such as 12.50, ${limits}`,
    read: (text: string): NanoUsd | undefined => {
      const parsed = parseEnteredUsd(text)
      return parsed !== undefined && isValid(parsed) ? parsed : undefined
    }
  }
}

/** The amounts that operators enter, by sign. */
export const usdInputs = {
  positive: usdInput("an amount above 0 in USD", (amount) => amount > 0n),
  nonNegative: usdInput("an amount in USD, 0 or more,", (amount) => amount >= 0n),
  nonZero: usdInput("an amount in USD, not 0,", (amount) => amount !== 0n, "; a negative amount lowers the balance")
}

/** Returns the exact decimal text of `amount / unit`. `unit` is a power of ten. */
const formatQuotient = (amount: bigint, unit: bigint): string => {
  const magnitude = amount < 0n ? -amount : amount
  const fraction = ((magnitude % unit) + unit).toString().slice(1).replace(/0+$/, "")
  const text = (magnitude / unit).toString() + (fraction === "" ? "" : `.${fraction}`)
  return amount < 0n ? `-${text}` : text
}

export const toUsdText = (amount: bigint): string => formatQuotient(amount, nanoPerUsd)

/** Converts nano-USD per million tokens to USD per token, exactly. */
export const toUsdPerToken = (perMillion: bigint): string => formatQuotient(perMillion, nanoPerUsd * 1_000_000n)

/** Inexact, so only for JSON. */
export const toUsd = (amount: bigint): number => Number(toUsdText(amount))

export const max = (...amounts: ReadonlyArray<NanoUsd>): NanoUsd =>
  amounts.reduce((largest, amount) => (amount > largest ? amount : largest), zero)

export const min = (a: NanoUsd, b: NanoUsd): NanoUsd => (a < b ? a : b)

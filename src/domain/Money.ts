import { Brand, Schema } from "effect"

/** Integer nano-dollars (1e-9 USD). */
export type NanoUsd = bigint & Brand.Brand<"NanoUsd">
export const NanoUsd = Brand.nominal<NanoUsd>()

export const zero: NanoUsd = NanoUsd(0n)

export const maxStored: NanoUsd = NanoUsd(2n ** 63n - 1n)

/** PostgreSQL's `bigint` arrives as a string. */
export const NanoUsdFromRow = Schema.BigInt.pipe(Schema.fromBrand(NanoUsd))

const maxEntered = 10n ** 18n

/** The limit of one payment or adjustment. */
const isEnterable = (amount: bigint): boolean => amount <= maxEntered && amount >= -maxEntered

const nanoPerUsd = 1_000_000_000n
const decimal = /^(-?)(\d+)(?:\.(\d+))?$/

/** Exact: `"0.15"` is 150000000; undefined if it is no plain decimal or finer than a nano-dollar. */
export const fromUsd = (text: string): NanoUsd | undefined => {
  const match = decimal.exec(text.trim())
  if (match === null) return undefined
  const [, sign, whole = "", fraction = ""] = match
  const digits = fraction.replace(/0+$/, "")
  if (digits.length > 9) return undefined
  const nano = BigInt(whole) * nanoPerUsd + BigInt(digits.padEnd(9, "0"))
  return NanoUsd(sign === "-" ? -nano : nano)
}

/** As `fromUsd`, of no larger amount than operators may enter. */
export const enteredUsd = (text: string): NanoUsd | undefined => {
  const amount = fromUsd(text)
  return amount !== undefined && isEnterable(amount) ? amount : undefined
}

const usdInput = (amount: string, holds: (amount: NanoUsd) => boolean, remark = "") => {
  const limits = `with at most 9 decimals and at most 1000000000${remark}`
  return {
    holds,
    /** The end of a sentence about a field. */
    problem: `must be ${amount.replace(/,$/, "")}, ${limits}`,
    /** What a command accepts. */
    accepts: `${amount} such as 12.50, ${limits}`,
    read: (text: string): NanoUsd | undefined => {
      const entered = enteredUsd(text)
      return entered !== undefined && holds(entered) ? entered : undefined
    }
  }
}

/** Amounts that operators enter, by their sign. */
export const usdInputs = {
  positive: usdInput("an amount above 0 in USD", (amount) => amount > 0n),
  nonNegative: usdInput("an amount in USD, 0 or more,", (amount) => amount >= 0n),
  nonZero: usdInput("an amount in USD, not 0,", (amount) => amount !== 0n, "; negative takes away")
}

/** `unit` is a power of ten. */
const quotientText = (amount: bigint, unit: bigint): string => {
  const magnitude = amount < 0n ? -amount : amount
  const fraction = ((magnitude % unit) + unit).toString().slice(1).replace(/0+$/, "")
  const text = (magnitude / unit).toString() + (fraction === "" ? "" : `.${fraction}`)
  return amount < 0n ? `-${text}` : text
}

export const toUsdText = (amount: bigint): string => quotientText(amount, nanoPerUsd)

/** Exact: of nano-USD per million tokens, the USD of one. */
export const toUsdPerToken = (perMillion: bigint): string => quotientText(perMillion, nanoPerUsd * 1_000_000n)

/** For the wire only. */
export const toUsd = (amount: bigint): number => Number(toUsdText(amount))

export const max = (...amounts: ReadonlyArray<NanoUsd>): NanoUsd =>
  amounts.reduce((most, amount) => (amount > most ? amount : most), zero)

export const min = (a: NanoUsd, b: NanoUsd): NanoUsd => (a < b ? a : b)

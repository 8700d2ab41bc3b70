import { Brand, Schema } from "effect"

/** An amount in integer nano-dollars (1e-9 USD). */
export type NanoUsd = bigint & Brand.Brand<"NanoUsd">
export const NanoUsd = Brand.nominal<NanoUsd>()

export const zero: NanoUsd = NanoUsd(0n)

/** The largest amount that a row can carry. */
export const mostStored: NanoUsd = NanoUsd(2n ** 63n - 1n)

/** Rows carry amounts as PostgreSQL `bigint`, which arrives as a string. */
export const NanoUsdFromRow = Schema.BigInt.pipe(Schema.fromBrand(NanoUsd))

const nanoPerUsd = 1_000_000_000n
const decimal = /^(-?)(\d+)(?:\.(\d+))?$/

/**
 * Reads a decimal amount of USD exactly, e.g. `"0.15"` is 150000000 nano-dollars.
 * Undefined when the text is no plain decimal or is finer than a nano-dollar.
 */
export const fromUsd = (text: string): NanoUsd | undefined => {
  const match = decimal.exec(text.trim())
  if (match === null) return undefined
  const [, sign, whole = "", fraction = ""] = match
  const digits = fraction.replace(/0+$/, "")
  if (digits.length > 9) return undefined
  const nano = BigInt(whole) * nanoPerUsd + BigInt(digits.padEnd(9, "0"))
  return NanoUsd(sign === "-" ? -nano : nano)
}

/** The exact decimal, without trailing zeros: 150000000 is `"0.15"`. */
export const toUsdText = (amount: bigint): string => {
  const magnitude = amount < 0n ? -amount : amount
  const fraction = (magnitude % nanoPerUsd).toString().padStart(9, "0").replace(/0+$/, "")
  const text = (magnitude / nanoPerUsd).toString() + (fraction === "" ? "" : `.${fraction}`)
  return amount < 0n ? `-${text}` : text
}

/** USD as a JSON number, for the wire only. */
export const toUsd = (amount: bigint): number => Number(toUsdText(amount))

export const max = (...amounts: ReadonlyArray<NanoUsd>): NanoUsd =>
  amounts.reduce((most, amount) => (amount > most ? amount : most), zero)

export const min = (a: NanoUsd, b: NanoUsd): NanoUsd => (a < b ? a : b)

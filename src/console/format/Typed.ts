import { partsOfUsd } from "./Amount.ts"
import { formatLocal } from "./Moment.ts"

/** What a text becomes in a field of one line. */
export const typedOf = (text: string): string => text.replace(/[\r\n]/g, "").trim()

/** For a field that holds an amount. */
export const decimalOf = (usd: number): string => {
  const { fine, main } = partsOfUsd(usd)
  return `${usd < 0 ? "-" : ""}${main.replace(/[$,]/g, "")}${fine}`
}

/** For a field that holds a local time, to the minute. */
export const localMinuteOf = (at: number): string => formatLocal(at).slice(0, 16).replace(" ", "T")

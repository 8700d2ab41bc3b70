/** In hundredths of a percent. */
const hundredPercent = 10_000n

/** Markups and discounts have at most two decimals. */
export const isPercent = (percent: number): boolean => Number(percent.toFixed(2)) === percent

/** Returns the amount plus `percent` of it, rounded half up. Needs no package, because the console uses it too. */
export const changeByPercent = (amount: bigint, percent: number): bigint => {
  const factor = hundredPercent + BigInt(Math.round(percent * 100))
  return (amount * factor + hundredPercent / 2n) / hundredPercent
}

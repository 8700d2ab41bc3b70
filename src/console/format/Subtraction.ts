const nanoPerUsd = 1e9

/** In whole nano-dollars, exact up to nine million dollars. */
export const subtractUsd = (from: number, amount: number): number =>
  (Math.round(from * nanoPerUsd) - Math.round(amount * nanoPerUsd)) / nanoPerUsd

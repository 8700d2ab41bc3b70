const nanoPerUsd = 1e9

const toNano = (usd: number): number => Math.round(usd * nanoPerUsd)

/** In whole nano-dollars, exact up to nine million dollars. */
export const subtractUsd = (from: number, amount: number): number => (toNano(from) - toNano(amount)) / nanoPerUsd

/** As `subtractUsd`. */
export const addUsd = (amount: number, other: number): number => (toNano(amount) + toNano(other)) / nanoPerUsd

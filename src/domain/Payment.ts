import { maxStored, NanoUsd, zero } from "./Money.ts"

const nanoPerCent = 10_000_000n

/** The maximum that the ledger can store, in cents. */
export const maxCents = Number(maxStored / nanoPerCent)

export const fromCents = (cents: number): NanoUsd => NanoUsd(BigInt(cents) * nanoPerCent)

/** Returns undefined if the amount is not a whole number of cents. */
export const toCents = (amount: bigint): number | undefined =>
  amount % nanoPerCent === 0n ? Number(amount / nanoPerCent) : undefined

/** A refund or dispute of a payment, as the payment provider currently reports it. */
export interface Reversal {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly status: string
  /** Whether its outcome may still change. */
  readonly isOpen: boolean
  /**
   * In nano-USD; zero for a failed refund or a won dispute. Undefined if the provider reports it only in another currency.
   */
  readonly amount: NanoUsd | undefined
  /** The amount in another currency, such as `1500 JPY`. */
  readonly foreignAmount: string | undefined
  readonly createdAt: Date
}

interface ReversalAmount extends Pick<Reversal, "id" | "createdAt"> {
  readonly amount: NanoUsd
}

const byAge = (a: ReversalAmount, b: ReversalAmount): number =>
  a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1)

/**
 * Returns how much of the payment each reversal takes, in total at most the payment. Older reversals come first, so the
 * result does not depend on the order in which they became known.
 */
export const allocateReversals = (
  payment: NanoUsd,
  reversals: ReadonlyArray<ReversalAmount>
): ReadonlyMap<string, NanoUsd> => {
  const shares = new Map<string, NanoUsd>()
  let remaining: bigint = payment
  for (const { amount, id } of reversals.toSorted(byAge)) {
    const share = amount < remaining ? amount : NanoUsd(remaining)
    shares.set(id, share)
    remaining -= share
  }
  return shares
}

/** A payment page, as the payment provider currently reports it. */
export interface CheckoutSession {
  readonly id: string
  /** Undefined if the page no longer accepts payments. */
  readonly url: string | undefined
  readonly isPaid: boolean
  readonly isExpired: boolean
  /** Whether the payment failed after the customer completed the page. */
  readonly hasFailed: boolean
  readonly amount: NanoUsd | undefined
  /** Lower case. */
  readonly currency: string | undefined
  readonly paymentIntent: string | undefined
  /** The gateway's payment id; undefined for pages that the gateway did not create. */
  readonly payment: string | undefined
}

/** Returns the amount paid in USD; null if nothing was paid in USD. */
export const usdPaid = ({ amount = zero, currency }: CheckoutSession): NanoUsd | null =>
  currency === "usd" && amount > 0n ? amount : null

/** Returns why the payment differs from the expected one; undefined if it does not. */
export const problemOf = (
  { amount = zero, currency = "no currency" }: CheckoutSession,
  expected: NanoUsd,
  format: (amount: bigint) => string
): string | undefined => {
  if (currency !== "usd") return `It was paid in ${currency.toUpperCase()}, not in USD.`
  return amount === expected
    ? undefined
    : `The amount due was ${format(expected)} USD, but ${format(amount)} USD were paid.`
}

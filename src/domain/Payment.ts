import { maxStored, NanoUsd, zero } from "./Money.ts"

const nanoPerCent = 10_000_000n

/** The largest amount that the ledger can store. */
export const maxCents = Number(maxStored / nanoPerCent)

export const fromCents = (cents: number): NanoUsd => NanoUsd(BigInt(cents) * nanoPerCent)

/** Undefined where it is no whole number of cents. */
export const toCents = (amount: bigint): number | undefined =>
  amount % nanoPerCent === 0n ? Number(amount / nanoPerCent) : undefined

/** What takes money of a payment back, as the provider has it now. */
export interface Reversal {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly status: string
  /** Whether it may still come out otherwise. */
  readonly isOpen: boolean
  /**
   * In USD; zero for a failed refund or a dispute that was won. Undefined if the provider states another currency only.
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
 * What each reversal takes of its payment. The older one takes first, and together they take no more than the payment: the
 * result is the same in whatever order they became known.
 */
export const shareOut = (payment: NanoUsd, reversals: ReadonlyArray<ReversalAmount>): ReadonlyMap<string, NanoUsd> => {
  const shares = new Map<string, NanoUsd>()
  let left: bigint = payment
  for (const { amount, id } of reversals.toSorted(byAge)) {
    const share = amount < left ? amount : NanoUsd(left)
    shares.set(id, share)
    left -= share
  }
  return shares
}

/** A page where a customer pays, as the provider has it now. */
export interface CheckoutSession {
  readonly id: string
  /** Undefined once nobody can pay there. */
  readonly url: string | undefined
  readonly isPaid: boolean
  readonly isExpired: boolean
  /** Whether the money of a page that was used will not come. */
  readonly hasFailed: boolean
  readonly amount: NanoUsd | undefined
  /** Lower case. */
  readonly currency: string | undefined
  readonly paymentIntent: string | undefined
  /** The id that it was given here, if it was made here. */
  readonly payment: string | undefined
}

/** Null where it was not paid in USD. */
export const usdPaid = ({ amount = zero, currency }: CheckoutSession): NanoUsd | null =>
  currency === "usd" && amount > 0n ? amount : null

/** Why what was paid is not what was asked for; undefined where it is. */
export const problemOf = (
  { amount = zero, currency = "no currency" }: CheckoutSession,
  asked: NanoUsd,
  show: (amount: bigint) => string
): string | undefined => {
  if (currency !== "usd") return `It was paid in ${currency.toUpperCase()}, not in USD.`
  return amount === asked ? undefined : `${show(asked)} USD were asked for, and ${show(amount)} USD were paid.`
}

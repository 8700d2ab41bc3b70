import { Schema } from "effect"
import { CapPeriod, type CapSpend, type KeyId } from "./ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow, zero } from "./Money.ts"
import { Balance, type OrgId } from "./Organization.ts"

/** A request beside others of its organization may hold one of these equal parts of the balance. */
export const balanceShares = 4n

/** Whether a hold is placed alone, as the ledger's statements decide. */
export const fitsBalance = (amount: NanoUsd, { balance, held }: Balance, hasFittedHold: boolean): boolean => {
  const available = balance - held
  const fitsShare = !hasFittedHold || held === 0n || amount <= balance / balanceShares
  return available > 0n && amount <= available && fitsShare
}

/** Closed once: settled with a charge, or released. */
export interface Hold {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly amount: NanoUsd
  /** The output that it covers, in tokens, if it was fitted to the balance. */
  readonly cap?: number | undefined
}

export interface Settlement {
  readonly charged: NanoUsd
  /** The cost was above the hold; the operator bears the excess. */
  readonly exceeded: boolean
  /** The hold was released while this process counted as dead: nothing was charged. */
  readonly wasReleased: boolean
  readonly logged?: true
}

/** What an organization has, and its spending cap; without a cap its fields are null. */
export const Funds = Schema.Struct({
  ...Balance.fields,
  cap: Schema.NullOr(NanoUsdFromRow),
  capPeriod: Schema.NullOr(CapPeriod),
  /** Charged in the running period. */
  capSpent: Schema.NullOr(NanoUsdFromRow),
  /** Null also where the period never ends. */
  capResetsAt: Schema.NullOr(Schema.DateFromSelf)
})
export type Funds = typeof Funds.Type

/** A cap that is spent, and what it comes to. */
export const reachedCap = ({
  cap,
  capPeriod,
  capResetsAt,
  capSpent
}: Funds): { readonly period: CapPeriod; readonly spend: CapSpend } | undefined =>
  cap !== null && capPeriod !== null && capSpent !== null && capSpent >= cap
    ? { period: capPeriod, spend: { cap, spent: capSpent, held: zero, resetsAt: capResetsAt ?? undefined } }
    : undefined

import { Schema } from "effect"
import { CapPeriod, type CapSpend, type KeyId } from "./ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow, zero } from "./Money.ts"
import { Balance, type OrgId } from "./Organization.ts"

/** With `canReduceHold`, a request may hold at most a quarter of the balance while others of its organization run. */
export const balanceShares = 4n

/** Whether the balance covers a hold. The ledger's SQL has the same rule. */
export const fitsBalance = (amount: NanoUsd, { balance, held }: Balance, canReduceHold: boolean): boolean => {
  const available = balance - held
  const fitsShare = !canReduceHold || held === 0n || amount <= balance / balanceShares
  return available > 0n && amount <= available && fitsShare
}

/** An amount reserved for a request. A hold closes once: settled with a charge, or released. */
export interface Hold {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly amount: NanoUsd
  /** If the hold was reduced to fit the balance: the output tokens that it covers. */
  readonly cap?: number | undefined
}

export interface Settlement {
  readonly charged: NanoUsd
  /** The cost exceeded the hold. The operator pays the excess. */
  readonly isExceeded: boolean
  /** Nothing was charged: another instance released the hold while it treated this process as dead. */
  readonly wasReleased: boolean
  readonly isLogged?: true
}

/** The balance and the spending cap of an organization. Without a cap the cap's fields are null. */
export const Funds = Schema.Struct({
  ...Balance.fields,
  cap: Schema.NullOr(NanoUsdFromRow),
  capPeriod: Schema.NullOr(CapPeriod),
  /** The amount charged in the current period of the cap. */
  capSpent: Schema.NullOr(NanoUsdFromRow),
  /** When the current period of the cap ends. Null also if it never ends. */
  capResetsAt: Schema.NullOr(Schema.DateFromSelf)
})
export type Funds = typeof Funds.Type

/** Returns the spending cap if it is reached. */
export const reachedCap = ({
  cap,
  capPeriod,
  capResetsAt,
  capSpent
}: Funds): { readonly period: CapPeriod; readonly spend: CapSpend } | undefined =>
  cap !== null && capPeriod !== null && capSpent !== null && capSpent >= cap
    ? { period: capPeriod, spend: { cap, spent: capSpent, held: zero, resetsAt: capResetsAt ?? undefined } }
    : undefined

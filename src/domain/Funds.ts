import { Schema } from "effect"
import { CapPeriod, type CapSpend } from "./ApiKey.ts"
import { NanoUsdFromRow, zero } from "./Money.ts"
import { Balance } from "./Organization.ts"

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

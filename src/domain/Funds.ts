import { Schema } from "effect"
import { CapPeriod } from "./ApiKey.ts"
import { NanoUsdFromRow } from "./Money.ts"
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

/** The period of a cap that is spent. */
export const reachedPeriod = ({ cap, capPeriod, capSpent }: Funds): CapPeriod | undefined =>
  cap !== null && capPeriod !== null && capSpent !== null && capSpent >= cap ? capPeriod : undefined

import { Schema } from "effect"
import { NanoUsdFromRow } from "./Money.ts"

export const OrgId = Schema.String.pipe(Schema.brand("OrgId"))
export type OrgId = typeof OrgId.Type

/** `available` is `balance` minus open holds. */
export const Balance = Schema.Struct({
  balance: NanoUsdFromRow,
  held: NanoUsdFromRow
})
export type Balance = typeof Balance.Type

export const availableOf = (of: Balance): bigint => of.balance - of.held

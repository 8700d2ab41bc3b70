import { Schema } from "effect"
import { NanoUsdFromRow } from "./Money.ts"

export const OrgId = Schema.String.pipe(Schema.brand("OrgId"))
export type OrgId = typeof OrgId.Type

/** `held` is the total of the open holds, which `balance` still includes. */
export const Balance = Schema.Struct({
  balance: NanoUsdFromRow,
  held: NanoUsdFromRow
})
export type Balance = typeof Balance.Type

export const availableOf = ({ balance, held }: Balance): bigint => balance - held

/** In ascending order: each role has all rights of the ones before it. */
export const Role = Schema.Literal("read", "write", "owner")
export type Role = typeof Role.Type

export const isAtLeast = (role: Role, needed: Role): boolean =>
  Role.literals.indexOf(role) >= Role.literals.indexOf(needed)

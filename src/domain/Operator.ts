import { Schema } from "effect"

/** Each may do all that those before it may. */
export const Role = Schema.Literal("read", "write", "owner")
export type Role = typeof Role.Type

export const isAtLeast = (role: Role, needed: Role): boolean =>
  Role.literals.indexOf(role) >= Role.literals.indexOf(needed)

import { Schema } from "effect"
import { Role } from "../../domain/Operator.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/Record.ts"

export const Operator = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Role,
  org: Schema.NullOr(OrgId).annotations({
    description: "Whose member it is: it sees and changes this organization alone; null for operators of the gateway."
  }),
  org_name: TextOrNull,
  created_at: UnixSeconds,
  used_at: TimeOrNull.annotations({ description: "Of the token, to about a minute." }),
  revoked_at: TimeOrNull
}).annotations({ identifier: "Operator" })
export type Operator = typeof Operator.Type

export type NewOperator = Pick<Operator, "name" | "role"> & {
  /** An organization's id or name: the operator is its member. */
  readonly organization?: string | undefined
}

export const scopeOf = ({ org }: Pick<Operator, "org">): OrganizationScope =>
  org === null ? OrganizationScope.all : OrganizationScope.only(org)

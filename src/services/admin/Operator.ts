import { Schema } from "effect"
import { Role } from "../../domain/Operator.ts"
import { TimeOrNull, UnixSeconds } from "../resources/Record.ts"

export const Operator = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Role,
  created_at: UnixSeconds,
  used_at: TimeOrNull.annotations({ description: "Of the token, to about a minute." }),
  revoked_at: TimeOrNull
}).annotations({ identifier: "Operator" })
export type Operator = typeof Operator.Type

export type NewOperator = Pick<Operator, "name" | "role">

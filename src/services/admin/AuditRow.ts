import { Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, UnixSeconds } from "../resources/Record.ts"

// The platform's schema of anything has an $id, which no document may have twice.
const recordOrNull = (description: string) =>
  Schema.Unknown.annotations({ jsonSchema: { type: ["object", "null"], description } })

export const AuditRow = Schema.Struct({
  id: Schema.Number,
  at: UnixSeconds,
  actor: Schema.String.annotations({ description: "An operator's name, or `cli:` and who ran the command." }),
  via: Schema.Literal("cli", "api", "console"),
  action: Schema.String.annotations({ description: "Such as `organizations.suspend`." }),
  target: TextOrNull,
  org: Schema.NullOr(OrgId),
  org_name: TextOrNull,
  before: recordOrNull("The record before the change; null where there was none."),
  after: recordOrNull("The record after the change; null where there is none.")
}).annotations({ identifier: "AuditRow" })
export type AuditRow = typeof AuditRow.Type

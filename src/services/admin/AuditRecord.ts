import { Schema } from "effect"
import { TextOrNull, UnixSeconds } from "../resources/Record.ts"
import type { AuditRow } from "./Audit.ts"

// The platform's schema of anything has an $id, which no document may have twice.
const recordOrNull = (description: string) =>
  Schema.Unknown.annotations({ jsonSchema: { type: ["object", "null"], description } })

export const AuditRecord = Schema.Struct({
  id: Schema.Number,
  at: UnixSeconds,
  actor: Schema.String.annotations({ description: "An operator's name, or `cli:` and who ran the command." }),
  via: Schema.Literal("cli", "api", "console"),
  action: Schema.String.annotations({ description: "Such as `organizations.suspend`." }),
  target: TextOrNull,
  org: TextOrNull,
  org_name: TextOrNull,
  before: recordOrNull("The record before the change; null where there was none."),
  after: recordOrNull("The record after the change; null where there is none.")
}).annotations({ identifier: "AuditRow" })

export const auditRecord = ({ orgId, orgName, ...row }: AuditRow): typeof AuditRecord.Type => ({
  id: row.id,
  at: row.at,
  actor: row.actor,
  via: row.via,
  action: row.action,
  target: row.target,
  org: orgId,
  org_name: orgName,
  before: row.before,
  after: row.after
})

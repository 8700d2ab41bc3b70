import { Schema } from "effect"
import type { AuditRow } from "./Audit.ts"
import { TextOrNull, UnixSeconds } from "./Record.ts"

export const AuditRecord = Schema.Struct({
  id: Schema.Number,
  at: UnixSeconds,
  actor: Schema.String.annotations({ description: "An operator's name, or `cli:user@host`." }),
  via: Schema.Literal("cli", "api", "console"),
  action: Schema.String.annotations({ description: "Such as `organizations.suspend`." }),
  target: TextOrNull,
  org: TextOrNull,
  org_name: TextOrNull,
  before: Schema.Unknown.annotations({ description: "The record before the change; null where there was none." }),
  after: Schema.Unknown
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

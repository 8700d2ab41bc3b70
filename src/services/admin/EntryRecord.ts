import { Schema } from "effect"
import type { Entry } from "../ledger/LedgerAdmin.ts"
import { UnixSeconds, Usd } from "./Record.ts"

export const EntryRecord = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds,
  org: Schema.String,
  kind: Schema.Literal("top_up", "charge", "adjustment"),
  amount_usd: Usd,
  ref: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  key_id: Schema.NullOr(Schema.String),
  hold_id: Schema.NullOr(Schema.String)
}).annotations({ identifier: "Entry" })
export type EntryRecord = typeof EntryRecord.Type

export const entryRecord = (entry: Entry): EntryRecord => ({
  id: entry.id,
  at: entry.at,
  org: entry.orgId,
  kind: entry.kind,
  amount_usd: entry.amount,
  ref: entry.ref,
  note: entry.note,
  key_id: entry.keyId,
  hold_id: entry.holdId
})

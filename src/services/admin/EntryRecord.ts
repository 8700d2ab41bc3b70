import { Schema } from "effect"
import type { Entry } from "../ledger/Entry.ts"
import type { ListedEntry, OpenHold } from "../ledger/LedgerPages.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

export const EntryRecord = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds,
  org: Schema.String,
  kind: Schema.Literal("top_up", "charge", "adjustment"),
  amount_usd: Usd,
  ref: TextOrNull,
  note: TextOrNull,
  key_id: TextOrNull,
  hold_id: TextOrNull
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

export const ListedEntryRecord = Schema.Struct({
  ...EntryRecord.fields,
  org_name: Schema.String,
  /** The row of the request that was charged or given back, while the log has it. */
  request: TextOrNull,
  request_id: TextOrNull,
  key_name: TextOrNull
}).annotations({ identifier: "ListedEntry" })
export type ListedEntryRecord = typeof ListedEntryRecord.Type

export const listedEntryRecord = (entry: ListedEntry): ListedEntryRecord => ({
  ...entryRecord(entry),
  org_name: entry.orgName,
  request: entry.request,
  request_id: entry.requestId,
  key_name: entry.keyName
})

export const OpenHoldRecord = Schema.Struct({
  id: Schema.String,
  org: Schema.String,
  org_name: Schema.String,
  key_id: Schema.String,
  amount_usd: Usd,
  state: Schema.Literal("open"),
  created_at: UnixSeconds,
  /** Of a video that is being made. */
  video: TextOrNull
}).annotations({ identifier: "OpenHold" })

export const openHoldRecord = (hold: OpenHold): typeof OpenHoldRecord.Type => ({
  id: hold.id,
  org: hold.orgId,
  org_name: hold.orgName,
  key_id: hold.keyId,
  amount_usd: hold.amount,
  state: "open",
  created_at: hold.createdAt,
  video: hold.video
})

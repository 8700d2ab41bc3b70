import { Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"
import { idFor } from "../sql/PublicIds.ts"

/** `refund` gives back what a request was charged, `payment_reversal` is a refund or a dispute of a payment. */
export const EntryKind = Schema.Literal("top_up", "charge", "refund", "payment_reversal", "adjustment")
export type EntryKind = typeof EntryKind.Type

/** Begins the reference of every refund, and of no other entry. */
export const refundPrefix = "refund:"

/** Refunds are stored as adjustments; spelt as in their partial index. */
export const isRefund = (from: string): string => `${from}.kind = 'adjustment' AND ${from}.ref LIKE '${refundPrefix}%'`

/** The kind of a stored entry; `from` is a table or an alias. */
export const kindOf = (from: string): string => `CASE WHEN ${isRefund(from)} THEN 'refund' ELSE ${from}.kind END`

/** The condition for entries of a kind, by what the indexes know. */
export const isOfKind = (kind: EntryKind, from: string): string => {
  if (kind === "refund") return isRefund(from)
  if (kind === "adjustment") return `${from}.kind = 'adjustment' AND (${from}.ref LIKE '${refundPrefix}%') IS NOT TRUE`
  return `${from}.kind = '${kind}'`
}

/** Money that moved; never changed, never taken back. */
export const Entry = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds,
  org: OrgId,
  kind: EntryKind,
  amount_usd: Usd,
  ref: TextOrNull,
  note: TextOrNull,
  key_id: Schema.NullOr(KeyId),
  hold_id: TextOrNull
}).annotations({ identifier: "Entry" })
export type Entry = typeof Entry.Type

/** The select list of an entry; `from` is a table or an alias. */
export const entryColumns = (from: string, scope = OrganizationScope.all): string => {
  const columns = ["at", "org_id AS org", "amount AS amount_usd", "ref", "note", "key_id", "hold_id"]
  const id = idFor(scope, "ledger_entries", from)
  return [`${id} AS id`, `${kindOf(from)} AS kind`, ...columns.map((column) => `${from}.${column}`)].join(", ")
}

export const ListedEntry = Schema.Struct({
  ...Entry.fields,
  org_name: Schema.String,
  request: TextOrNull.annotations({
    description: "The row of the request that was charged or given back, while the log has it."
  }),
  request_id: TextOrNull,
  key_name: TextOrNull
}).annotations({ identifier: "ListedEntry" })
export type ListedEntry = typeof ListedEntry.Type

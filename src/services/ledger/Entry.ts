import { Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

/** Money that moved; never changed, never taken back. */
export const Entry = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds,
  org: OrgId,
  kind: Schema.Literal("top_up", "charge", "adjustment"),
  amount_usd: Usd,
  ref: TextOrNull,
  note: TextOrNull,
  key_id: Schema.NullOr(KeyId),
  hold_id: TextOrNull
}).annotations({ identifier: "Entry" })
export type Entry = typeof Entry.Type

/** The select list of an entry; `from` is a table or an alias. */
export const entryColumns = (from: string): string =>
  ["id", "at", "org_id AS org", "kind", "amount AS amount_usd", "ref", "note", "key_id", "hold_id"]
    .map((column) => `${from}.${column}`)
    .join(", ")

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

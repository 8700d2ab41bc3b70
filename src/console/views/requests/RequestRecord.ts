import type { ShownRequest } from "../../../http/admin/Requests.ts"
import type { NamedLogRecord } from "../../../services/admin/requests/Record.ts"

/** Amounts in USD, moments in Unix seconds; members get no field that is internal. */
export type RequestRecord = typeof NamedLogRecord.Encoded
export type RequestDetail = typeof ShownRequest.Encoded

export type Attempt = RequestRecord["attempts"][number]
export type TimelineEvent = RequestDetail["timeline"][number]
export type Price = RequestDetail["price"]
export type LedgerEntry = RequestDetail["entries"][number]

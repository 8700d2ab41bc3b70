import type { ShownRequest } from "../../../http/admin/Requests.ts"
import type { NamedLogRecord } from "../../../services/admin/requests/Record.ts"
import type { Status } from "../../parts/Status.ts"

/** Amounts in USD, moments in Unix seconds; members get no field that is internal. */
export type RequestRecord = typeof NamedLogRecord.Encoded
export type RequestDetail = typeof ShownRequest.Encoded

export type Attempt = RequestRecord["attempts"][number]
export type TimelineEvent = RequestDetail["timeline"][number]
export type Price = RequestDetail["price"]
export type LedgerEntry = RequestDetail["entries"][number]

/** What became of an attempt. */
const outcomes: Readonly<Record<string, Status>> = {
  ok: { text: "answered", tone: "good" },
  retry: { text: "failed", tone: "bad" },
  limit: { text: "rate limited", tone: "warn" },
  account: { text: "account refused", tone: "bad" },
  network: { text: "connection broke", tone: "bad" },
  timeout: { text: "too slow", tone: "bad" },
  request: { text: "request refused", tone: "warn" },
  moderation: { text: "content refused", tone: "warn" },
  skipped: { text: "skipped, circuit open", tone: "soft" },
  cancelled: { text: "cancelled by us", tone: "soft" }
}

export const outcomeOf = (outcome: string): Status => outcomes[outcome] ?? { text: outcome, tone: "bad" }

/** Broken after a status 200 is an error as well. */
export const statusOf = (status: number, code: string | null): Status => ({
  text: code === null ? String(status) : `${status} ${code}`,
  tone: status >= 500 || code === "stream_error" ? "bad" : status >= 400 ? "warn" : "good"
})

import { organizationColumn, timeColumn } from "../../parts/columns.tsx"
import type { Status } from "../../parts/Status.ts"
import type { Column } from "../../parts/Table.tsx"
import type { PaymentRecord } from "./PaymentRecord.ts"

/** The status of each, and what it is called. */
export const statuses: Readonly<Record<PaymentRecord["status"], Status>> = {
  open: { text: "waiting for payment", tone: "warn" },
  paid: { text: "paid", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  expired: { text: "expired", tone: "soft" },
  refused: { text: "not credited", tone: "bad" }
}

export const statusOf = ({ amount_usd, disputed, reversed_usd, status }: PaymentRecord): Status => {
  if (disputed) return { text: "disputed", tone: "bad" }
  if (reversed_usd === 0) return statuses[status]
  return { text: reversed_usd === amount_usd ? "taken back" : "partly taken back", tone: "warn" }
}

export const paymentColumns: ReadonlyArray<Column<PaymentRecord>> = [
  timeColumn("payments", ({ created_at }) => created_at),
  { title: "Status", kind: "status", value: statusOf },
  organizationColumn,
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  { title: "Taken back", kind: "usd", value: ({ reversed_usd }) => reversed_usd || null },
  { title: "Paid", kind: "time", value: ({ paid_at }) => paid_at },
  { title: "Problem", kind: "text", isInternal: true, value: ({ problem }) => problem },
  { title: "Id", kind: "code", isInternal: true, value: ({ id }) => id }
]

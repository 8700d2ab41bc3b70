import { shorten } from "../../format/Short.ts"
import { keyColumn } from "../../parts/columns.tsx"
import type { Column } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import type { ListedEntry } from "../organizations/records.ts"

const kinds: Readonly<Record<string, string>> = { top_up: "top-up", payment_reversal: "payment reversal" }

export const entryColumns: ReadonlyArray<Column<ListedEntry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", value: ({ kind }) => kinds[kind] ?? kind },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  {
    title: "Request",
    kind: "link",
    share: 20,
    hint: ({ request, request_id }) => request_id ?? request,
    value: ({ request, request_id }) =>
      request === null ? null : { href: link(["requests", request]), text: shorten(request_id ?? request, 16) }
  },
  { title: "Reference", kind: "code", share: 20, value: ({ ref }) => ref },
  { title: "Note", kind: "text", share: 22, value: ({ note }) => note },
  { ...keyColumn, share: 18 }
]

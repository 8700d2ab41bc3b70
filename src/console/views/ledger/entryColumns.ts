import { shorten } from "../../format/Short.ts"
import type { Column } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import type { ListedEntry } from "../organizations/records.ts"

const kinds: Readonly<Record<string, string>> = { top_up: "top-up" }

export const entryColumns: ReadonlyArray<Column<ListedEntry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", value: ({ kind }) => kinds[kind] ?? kind },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  {
    title: "Request",
    kind: "link",
    value: ({ request, request_id }) =>
      request === null ? null : { href: link(["requests", request]), text: shorten(request_id ?? request, 16) }
  },
  { title: "Reference", kind: "code", value: ({ ref }) => ref },
  { title: "Note", kind: "text", value: ({ note }) => note },
  { title: "Key", kind: "code", value: ({ key_id }) => key_id }
]

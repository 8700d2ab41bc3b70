import type { OpenHold as OpenHoldSchema } from "../../../services/ledger/OpenHolds.ts"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import type { Tone } from "../../parts/Status.ts"
import type { Column } from "../../parts/Table.tsx"
import { keyColumn, organizationColumn } from "../../parts/Table.tsx"
import { Time } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"

export type OpenHold = typeof OpenHoldSchema.Encoded

const tones: Readonly<Record<OpenHold["waits_for"], Tone>> = {
  request: "soft",
  video: "soft",
  refund: "warn",
  sweep: "warn",
  nothing: "bad"
}

export const holdColumns: ReadonlyArray<Column<OpenHold>> = [
  { title: "Held", kind: "custom", value: ({ created_at }) => <Time at={created_at} ago /> },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  { title: "Waits for", kind: "status", value: ({ waits_for }) => ({ text: waits_for, tone: tones[waits_for] }) },
  { title: "Why", kind: "text", value: ({ detail }) => detail },
  { title: "Model", kind: "code", value: ({ model }) => model },
  keyColumn,
  {
    title: "Video",
    kind: "link",
    value: ({ video }) => (video === null ? null : { href: link(["videos", video]), text: video })
  },
  { title: "Request", kind: "code", value: ({ request_id }) => request_id },
  { title: "Hold", kind: "code", value: ({ id }) => id }
]

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
  {
    kind: "select",
    name: "older_than",
    label: "Older than",
    options: [
      ["1m", "a minute"],
      ["10m", "ten minutes"],
      ["1h", "an hour"],
      ["2h", "two hours"]
    ]
  }
]

const columns = holdColumns.toSpliced(1, 0, organizationColumn)

export const Holds = () => (
  <ListPage
    title="Open holds"
    path="/ledger/holds"
    filters={filters}
    hasCsv
    hasRefresh
    empty="Nothing is held."
    columns={columns}
  />
)

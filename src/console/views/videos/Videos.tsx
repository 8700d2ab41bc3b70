import { usePages } from "../../api/usePages.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { organizationColumn, timeColumn } from "../../parts/columns.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import type { Column } from "../../parts/Table.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { Charge } from "../../parts/Values.tsx"
import type { VideoRecord } from "./Video.tsx"
import { statusOf } from "./Video.tsx"

const filters: ReadonlyArray<Filter> = [
  { kind: "range" },
  {
    kind: "select",
    name: "status",
    label: "Status",
    options: ["queued", ["in_progress", "in progress"], "completed", "failed"]
  },
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "text", name: "model", label: "Model" }
]

const columns: ReadonlyArray<Column<VideoRecord>> = [
  timeColumn("videos", ({ at }) => at),
  { title: "Status", kind: "status", value: statusOf },
  organizationColumn,
  { title: "Model", kind: "code", value: ({ model }) => model },
  { title: "Length", kind: "amount", value: ({ seconds }) => `${seconds} s` },
  { title: "Route", kind: "code", isInternal: true, value: ({ route }) => route },
  { title: "Routes asked", kind: "number", isInternal: true, value: ({ tried }) => tried.length || null },
  {
    title: "Charge",
    kind: "custom",
    isAmount: true,
    value: ({ charge_usd, refunded_usd }) =>
      charge_usd === null ? null : <Charge charged={charge_usd} refunded={refunded_usd} />
  },
  { title: "Finished", kind: "time", value: ({ completed_at }) => completed_at }
]

export const Videos = () => {
  const { model, organization, status } = useRoute().query
  const videos = usePages<VideoRecord>("/videos", { organization, model, status, ...useRange() })
  return (
    <Page title="Videos" actions={<button onClick={videos.refresh}>Refresh</button>}>
      <FilterBar filters={filters} />
      <PagedTable label="Videos" pages={videos} empty="No video matches." rowKey={({ id }) => id} columns={columns} />
    </Page>
  )
}
